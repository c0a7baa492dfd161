"""SpecTr's drafts: several chains, each drawn on its own, that share the prefix on which they agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.speculation.cells import enumerated
from specsim.speculation.chain import ChainDraft
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import DRAFT_SOURCES, BuildContext


@DRAFT_SOURCES.register
class IndependentChainsSpec(Spec):
    """Independent chains (SpecTr); ``num_speculative_tokens`` counts the tokens of all of them."""

    kind: Literal["independent_chains"] = "independent_chains"
    """Independent chains."""
    num_chains: int = Field(ge=1)
    """Chains drawn, each of equal length."""

    def build(self, context: BuildContext, distributions: ConditionalDistributions) -> IndependentChainsDraft:
        """Return the source."""
        length, rest = divmod(context.num_speculative_tokens, self.num_chains)
        if rest:
            raise ConfigError.at(
                "draft_source.num_chains",
                f"num_speculative_tokens {context.num_speculative_tokens} is not a"
                f" multiple of {self.num_chains}",
            )
        return IndependentChainsDraft(distributions, num_chains=self.num_chains, length=length)


class IndependentChainsDraft:
    """Draws K chains of L tokens; where chains begin alike they go on below the first of them.

    Sun et al. 2023 (SpecTr), Algorithm 1. Node d K + c is token d of chain c. All K L tokens are drafted
    and verified, equal ones as well, as a batch of K sequences would.

    Parameters
    ----------
    distributions
        Where q comes from.
    num_chains, length
        K and L.
    """

    siblings: Siblings = "independent"

    def __init__(self, distributions: ConditionalDistributions, *, num_chains: int, length: int) -> None:
        self._chain = ChainDraft(distributions, num_tokens=length)
        self._num_chains = num_chains
        self.num_nodes, self.depth = num_chains * length, length
        self.num_context_tokens = distributions.num_context_tokens
        self.pass_positions = (1,) * min(length, 1) + (num_chains,) * (length - 1)

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """K chains a row, node i drawn with ``uniforms[:, i]``; uniforms are [B, K L]."""
        num_rows, k, length = prefix.position.size, self._num_chains, self.depth
        many = Prefixes(
            np.repeat(prefix.request, k), np.repeat(prefix.position, k), np.repeat(prefix.tokens, k, axis=0)
        )
        own = uniforms.reshape(num_rows, length, k).transpose(0, 2, 1).reshape(num_rows * k, length)
        drawn = self._chain.propose(many, own)
        token = drawn.token.reshape(num_rows, k, length).transpose(0, 2, 1)
        law = drawn.probabilities.reshape(num_rows, k, length, -1).transpose(0, 2, 1, 3)
        return Draft(
            token.reshape(num_rows, k * length), _shared_parents(token), law.reshape(num_rows, k * length, -1)
        )

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """All draws of a one-row prefix with their probabilities."""
        return enumerated(self, prefix)


def _shared_parents(token: Ints) -> Ints:
    """Parent of each node, [B, L K], for tokens [B, L, K]: the first chain that agrees up to there."""
    num_rows, length, k = token.shape
    parent: Ints = np.full((num_rows, length, k), -1)
    agrees = np.ones((num_rows, k, k), dtype=bool)
    for level in range(1, length):
        agrees &= token[:, level - 1, :, np.newaxis] == token[:, level - 1, np.newaxis, :]
        parent[:, level] = (level - 1) * k + agrees.argmax(axis=2)
    return parent.reshape(num_rows, length * k)
