"""Draft trees of a fixed shape: children are drawn without replacement, or are the most probable."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.speculation.cells import enumerated
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import DRAFT_SOURCES, BuildContext
from specsim.speculation.prefixes import last_tokens
from specsim.speculation.sampling import draw
from specsim.speculation.tree_shape import TreeShape, best_tree, optimal_tree

SiblingMethod = Literal["independent", "distinct", "certain"]


class FixedTreeSpec(Spec):
    """What all trees of a shape may say of how siblings are made."""

    siblings: SiblingMethod | None = None
    """``distinct``: drawn without replacement; ``independent``: with; ``certain``: the most probable.
    Absent: distinct, or certain where ``draft_sample_method`` is greedy."""

    @abstractmethod
    def shape(self, context: BuildContext) -> TreeShape:
        """Return the tree."""

    def siblings_in(self, context: BuildContext) -> SiblingMethod:
        """Return how siblings are made in a scenario."""
        return self.siblings or ("certain" if context.draft_sample_method == "greedy" else "distinct")

    def build(self, context: BuildContext, distributions: ConditionalDistributions) -> TreeDraft:
        """Return the source."""
        return TreeDraft(distributions, self.shape(context), siblings=self.siblings_in(context))


@DRAFT_SOURCES.register
class TreeSpec(FixedTreeSpec):
    """A tree of a given shape."""

    kind: Literal["tree"] = "tree"
    """Fixed tree."""
    branching: tuple[int, ...] | None = None
    """Children of every node, level by level, such as [3, 2, 1]."""
    paths: tuple[tuple[int, ...], ...] | None = None
    """Nodes by their ranks from the root, such as [[0], [1], [0, 0]]; vLLM's and Medusa's way."""

    @model_validator(mode="after")
    def _is_one_tree(self) -> Self:
        if (self.branching is None) == (self.paths is None):
            raise ValueError("give one of branching and paths")
        if any(width < 1 for width in self.branching or ()):
            raise ValueError("branching: a level needs at least one child a node")
        self._tree()
        return self

    def _tree(self) -> TreeShape:
        if self.branching is not None:
            return TreeShape.of_branching(self.branching)
        return TreeShape.of_paths(self.paths or ())

    def shape(self, context: BuildContext) -> TreeShape:
        """Return the tree, which must have as many nodes as a round drafts."""
        shape = self._tree()
        if shape.num_nodes != context.num_speculative_tokens:
            raise ConfigError.at(
                "draft_source",
                f"a tree of {shape.num_nodes} nodes, but num_speculative_tokens is"
                f" {context.num_speculative_tokens}; they must be equal",
            )
        return shape


@DRAFT_SOURCES.register
class SequoiaSpec(FixedTreeSpec):
    """The tree with the most expected tokens a second on the scenario's device (Chen et al. 2024)."""

    kind: Literal["sequoia"] = "sequoia"
    """Optimal tree for the device."""
    acceptance_by_rank: tuple[float, ...] = Field(min_length=1)
    """Probability that the child of each rank is kept; non-increasing, sum at most 1."""
    max_depth: int | None = Field(default=None, ge=1)
    """Most levels; with it the tree has all ``num_speculative_tokens`` nodes, whatever the device."""

    def shape(self, context: BuildContext) -> TreeShape:
        """Return the tree; it has all ``num_speculative_tokens`` nodes where no cost weighs against them."""
        most, round_s = context.num_speculative_tokens, context.tree_round_s
        if self.max_depth is not None or round_s is None:
            return optimal_tree(self.acceptance_by_rank, num_nodes=most, max_depth=self.max_depth)
        return best_tree(
            self.acceptance_by_rank,
            max_nodes=most,
            round_s=lambda tree: round_s(tree.pass_positions, tree.num_nodes + 1),
        )


class TreeDraft:
    """Drafts a tree of one shape after every prefix.

    Parameters
    ----------
    distributions
        Where q comes from.
    shape
        The tree.
    siblings
        ``distinct``: each child from the q that its elder siblings leave (Sequoia); where q has fewer tokens
        than there are children, the rest is padding. ``independent``: each from q (SpecInfer). ``certain``:
        the most probable tokens in order, each with a q of 1 (EAGLE, Medusa).
    """

    def __init__(
        self,
        distributions: ConditionalDistributions,
        shape: TreeShape,
        *,
        siblings: SiblingMethod = "distinct",
    ) -> None:
        self._distributions = distributions
        self._shape = shape
        self.siblings: Siblings = siblings
        self.num_nodes, self.depth = shape.num_nodes, shape.depth
        self.num_context_tokens = distributions.num_context_tokens
        self.pass_positions = shape.pass_positions

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """One tree a row, node i drawn with ``uniforms[:, i]``; uniforms are [B, N]."""
        prefix = last_tokens(prefix, self.num_context_tokens)
        num_rows, size = prefix.position.size, self._distributions.vocabulary_size
        token: Ints = np.full((num_rows, self.num_nodes), -1)
        law: Floats = np.zeros((num_rows, self.num_nodes, size))
        model: Floats = np.empty_like(law)
        contexts = {-1: prefix.tokens}
        for parent, children in self._families():
            depth = 0 if parent < 0 else self._shape.depths[parent] + 1
            at = Prefixes(prefix.request, prefix.position + depth, contexts.pop(parent))
            q = self._distributions.draft(at)
            has_parent = np.ones(num_rows, dtype=bool) if parent < 0 else token[:, parent] >= 0
            remaining = np.where(has_parent[:, np.newaxis], q, 0.0)
            for node in children:
                token[:, node], law[:, node], remaining = self._child(remaining, uniforms[:, node])
                model[:, node] = q
                contexts[node] = _appended(at.tokens, np.maximum(token[:, node], 0))
        parents = np.broadcast_to(np.array(self._shape.parent, dtype=np.int64), token.shape)
        return Draft(token, parents, law, model)

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """All trees of a one-row prefix that can be drawn, with their probabilities."""
        return enumerated(self, prefix)

    def _families(self) -> Iterator[tuple[int, list[int]]]:
        """Parents with their children, parents before children."""
        families: dict[int, list[int]] = {}
        for node, parent in enumerate(self._shape.parent):
            families.setdefault(parent, []).append(node)
        yield from sorted(families.items())

    def _child(self, remaining: Floats, uniforms: Floats) -> tuple[Ints, Floats, Floats]:
        """One more child a row: its token, the q that it was drawn from, and what is left for the next."""
        mass = remaining.sum(axis=1)
        has_mass = mass > 0
        rows = np.flatnonzero(has_mass)
        token: Ints = np.full(mass.size, -1)
        if self.siblings == "certain":
            token[rows] = remaining[rows].argmax(axis=1)
        else:
            token[rows] = draw(remaining[rows], uniforms[rows])
        law = np.where(has_mass[:, np.newaxis], remaining / np.where(has_mass, mass, 1.0)[:, np.newaxis], 0.0)
        if self.siblings == "independent":
            return token, law, remaining
        left = remaining.copy()
        left[rows, token[rows]] = 0.0
        if self.siblings == "certain":
            law = np.zeros_like(law)
            law[rows, token[rows]] = 1.0
        return token, law, left


def _appended(tokens: Ints, token: Ints) -> Ints:
    if tokens.shape[1] == 0:
        return tokens
    return np.concatenate([tokens[:, 1:], token[:, np.newaxis]], axis=1)
