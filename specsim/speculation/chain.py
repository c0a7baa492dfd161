"""The chain draft: one token after another, each from the draft's distribution after the last."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.draft import Draft
from specsim.speculation.sampling import draw


class ChainDraft:
    """Drafts N tokens in a row by sampling from the draft distribution.

    Parameters
    ----------
    distributions
        Where q comes from.
    num_tokens
        Length of the chain, N.
    """

    def __init__(self, distributions: ConditionalDistributions, *, num_tokens: int) -> None:
        self._distributions = distributions
        self._num_tokens = num_tokens

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """One chain a row, node i drawn with ``uniforms[:, i]``; uniforms are [B, N]."""
        num_rows, num_nodes = prefix.position.size, self._num_tokens
        token: Ints = np.empty((num_rows, num_nodes), dtype=np.int64)
        probabilities: Floats = np.empty((num_rows, num_nodes, self._distributions.vocabulary_size))
        for node in range(num_nodes):
            probabilities[:, node] = self._distributions.draft(prefix)
            token[:, node] = draw(probabilities[:, node], uniforms[:, node])
            prefix = extended(prefix, token[:, node])
        return Draft(token=token, parent=_chain_parents(num_rows, num_nodes), probabilities=probabilities)

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """All chains of a one-row prefix that can be drawn, with their probabilities."""
        empty = np.empty((0, self._distributions.vocabulary_size))
        for probability, tokens, laws in self._walk(prefix, 1.0, (), empty):
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


def extended(prefix: Prefixes, token: Ints) -> Prefixes:
    """Return prefixes one token longer, [rows]; as many last tokens are kept as before."""
    tokens = prefix.tokens
    if tokens.shape[1] > 0:
        tokens = np.concatenate([tokens[:, 1:], token[:, np.newaxis]], axis=1)
    return Prefixes(request=prefix.request, position=prefix.position + 1, tokens=tokens)


def _chain_parents(num_rows: int, num_nodes: int) -> Ints:
    return np.broadcast_to(np.arange(-1, num_nodes - 1), (num_rows, num_nodes))
