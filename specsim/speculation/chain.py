"""The chain draft: one token after another, each from the draft's distribution after the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import DRAFT_SOURCES, BuildContext
from specsim.speculation.prefixes import extended, last_tokens
from specsim.speculation.sampling import draw


@DRAFT_SOURCES.register
class ChainSpec(Spec):
    """A chain of ``num_speculative_tokens`` tokens, drawn as ``draft_sample_method`` says."""

    kind: Literal["chain"] = "chain"
    """Chain draft."""

    def build(self, context: BuildContext, distributions: ConditionalDistributions) -> ChainDraft:
        """Return the source."""
        return ChainDraft(
            distributions,
            num_tokens=context.num_speculative_tokens,
            is_greedy=context.draft_sample_method == "greedy",
        )


class ChainDraft:
    """Drafts N tokens in a row from the draft distribution.

    Parameters
    ----------
    distributions
        Where q comes from.
    num_tokens
        Length of the chain, N.
    is_greedy
        Take the most probable token, the lowest of equals, instead of a sample: its q is 1.
    """

    siblings: Siblings = "one"

    def __init__(
        self, distributions: ConditionalDistributions, *, num_tokens: int, is_greedy: bool = False
    ) -> None:
        self._distributions = distributions
        self._num_tokens = num_tokens
        self._is_greedy = is_greedy
        self.num_nodes = self.depth = num_tokens
        self.num_context_tokens = distributions.num_context_tokens
        self.pass_positions = (1,) * num_tokens

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """One chain a row, node i drawn with ``uniforms[:, i]``; uniforms are [B, N]."""
        num_rows, num_nodes = prefix.position.size, self._num_tokens
        shape = (num_rows, num_nodes, self._distributions.vocabulary_size)
        token: Ints = np.empty((num_rows, num_nodes), dtype=np.int64)
        law: Floats = np.empty(shape)
        prefix = last_tokens(prefix, self.num_context_tokens)
        for node in range(num_nodes):
            law[:, node] = self._distributions.draft(prefix)
            token[:, node] = (
                law[:, node].argmax(axis=1) if self._is_greedy else draw(law[:, node], uniforms[:, node])
            )
            prefix = extended(prefix, token[:, node])
        parent = _chain_parents(num_rows, num_nodes)
        return (
            Draft(token, parent, certain(token, shape[2]), law)
            if self._is_greedy
            else Draft(token, parent, law)
        )

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """All chains of a one-row prefix that can be drawn, with their probabilities."""
        if self._is_greedy:
            yield 1.0, self.propose(prefix, np.zeros((1, self._num_tokens)))
            return
        empty = np.empty((0, self._distributions.vocabulary_size))
        for probability, tokens, laws in self._walk(
            last_tokens(prefix, self.num_context_tokens), 1.0, (), empty
        ):
            token = np.array([tokens], dtype=np.int64).reshape(1, self._num_tokens)
            yield probability, Draft(token, _chain_parents(1, self._num_tokens), laws[np.newaxis])

    def _walk(
        self, prefix: Prefixes, probability: float, tokens: tuple[int, ...], laws: Floats
    ) -> Iterator[tuple[float, tuple[int, ...], Floats]]:
        if len(tokens) == self._num_tokens:
            yield probability, tokens, laws
            return
        law = self._distributions.draft(prefix)
        for token in np.flatnonzero(law[0] > 0).tolist():
            longer = extended(prefix, np.array([token]))
            yield from self._walk(
                longer, probability * float(law[0, token]), (*tokens, token), np.concatenate([laws, law])
            )


def certain(token: Ints, vocabulary_size: int) -> Floats:
    """Distributions that are certain of tokens [B, N], [B, N, V]; nothing where there is none (-1).

    Examples
    --------
    >>> certain(np.array([[1, -1]]), 2).tolist()
    [[[0.0, 1.0], [0.0, 0.0]]]
    """
    law: Floats = np.zeros((*token.shape, vocabulary_size))
    row, node = np.nonzero(token >= 0)
    law[row, node, token[row, node]] = 1.0
    return law


def _chain_parents(num_rows: int, num_nodes: int) -> Ints:
    return np.broadcast_to(np.arange(-1, num_nodes - 1), (num_rows, num_nodes))
