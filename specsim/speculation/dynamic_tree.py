"""EAGLE-2's dynamic tree: grown where the draft is confident, then cut to its most valuable nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.chain import certain
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import DRAFT_SOURCES, BuildContext
from specsim.speculation.prefixes import last_tokens


@DRAFT_SOURCES.register
class DynamicTreeSpec(Spec):
    """EAGLE-2's dynamic tree (Li et al. 2024); ``num_speculative_tokens`` is how many nodes are verified."""

    kind: Literal["eagle2"] = "eagle2"
    """Dynamic tree."""
    depth: int = Field(default=6, ge=1, le=64)
    """Levels that are grown."""
    top_k: int = Field(default=10, ge=1, le=64)
    """Nodes expanded in a level, and children of each."""

    def build(self, context: BuildContext, distributions: ConditionalDistributions) -> DynamicTreeDraft:
        """Return the source."""
        return DynamicTreeDraft(
            distributions, num_nodes=context.num_speculative_tokens, depth=self.depth, top_k=self.top_k
        )


class DynamicTreeDraft:
    """Grows level by level from the most valuable nodes, and keeps the most valuable of all.

    Li et al. 2024 (EAGLE-2), Sections 4.1 and 4.2: the value of a node is the product of the draft's
    probabilities along its path. A function of the prefix: nothing is drawn.

    Parameters
    ----------
    distributions
        Where q comes from.
    num_nodes
        Nodes kept, N.
    depth
        Levels grown.
    top_k
        Nodes expanded in a level, and children of each.
    """

    siblings: Siblings = "certain"

    def __init__(
        self, distributions: ConditionalDistributions, *, num_nodes: int, depth: int, top_k: int
    ) -> None:
        self._distributions = distributions
        self._top_k = min(top_k, distributions.vocabulary_size)
        self.num_nodes = num_nodes
        self.depth = min(depth, num_nodes)
        self.num_context_tokens = distributions.num_context_tokens
        self.pass_positions = (1,) * min(self.depth, 1) + (self._top_k,) * (self.depth - 1)

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """One tree a row; uniforms are [B, N] and are not read."""
        prefix = last_tokens(prefix, self.num_context_tokens)
        token, parent, value = self._grown(prefix)
        num_rows = len(token)
        # Value falls along a path and the sort is stable, so a parent always comes before its children.
        kept = np.argsort(-value, axis=1, kind="stable")[:, : self.num_nodes]
        rows = np.arange(num_rows)[:, np.newaxis]
        place: Ints = np.full((num_rows, token.shape[1] + 1), -1)
        place[rows, kept] = np.arange(kept.shape[1])
        # A node of no value is not drafted; its parent index -1 finds the last column, which is -1.
        tokens = np.where(value[rows, kept] > 0, token[rows, kept], -1)
        parents = place[rows, parent[rows, kept]]
        short = self.num_nodes - tokens.shape[1]
        if short > 0:
            tokens = np.pad(tokens, ((0, 0), (0, short)), constant_values=-1)
            parents = np.pad(parents, ((0, 0), (0, short)), constant_values=-1)
        return Draft(tokens, parents, certain(tokens, self._distributions.vocabulary_size))

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """Yield the one tree of a one-row prefix."""
        yield 1.0, self.propose(prefix, np.zeros((1, self.num_nodes)))

    def _grown(self, prefix: Prefixes) -> tuple[Ints, Ints, Floats]:
        """Token, parent and value of all nodes grown, [B, nodes]."""
        num_rows, k = prefix.position.size, self._top_k
        root = np.zeros((num_rows, 1), dtype=np.int64)
        tokens, parents, values = [], [], []
        contexts = prefix.tokens[:, np.newaxis]
        above, above_value = root - 1, np.ones((num_rows, 1))
        count = 0
        for level in range(self.depth):
            width = above.shape[1]
            at = Prefixes(
                np.repeat(prefix.request, width),
                np.repeat(prefix.position + level, width),
                contexts.reshape(num_rows * width, -1),
            )
            q = self._distributions.draft(at).reshape(num_rows, width, -1)
            best = np.argsort(-q, axis=2, kind="stable")[:, :, :k]
            token = best.reshape(num_rows, -1)
            value = (np.take_along_axis(q, best, axis=2) * above_value[:, :, np.newaxis]).reshape(
                num_rows, -1
            )
            tokens.append(token)
            parents.append(np.repeat(above, k, axis=1))
            values.append(value)
            chosen = np.argsort(-value, axis=1, kind="stable")[:, :k]
            contexts = _grown_contexts(contexts, chosen // k, np.take_along_axis(token, chosen, axis=1))
            above, above_value = chosen + count, np.take_along_axis(value, chosen, axis=1)
            count += token.shape[1]
        return np.concatenate(tokens, axis=1), np.concatenate(parents, axis=1), np.concatenate(values, axis=1)


def _grown_contexts(contexts: Ints, parent: Ints, token: Ints) -> Ints:
    """Contexts of chosen children, [B, k, L], from those of a level, [B, W, L]."""
    if contexts.shape[2] == 0:
        return np.empty((*token.shape, 0), dtype=np.int64)
    of_parent = np.take_along_axis(contexts, parent[:, :, np.newaxis], axis=1)
    grown: Ints = np.concatenate([of_parent[:, :, 1:], token[:, :, np.newaxis]], axis=2)
    return grown
