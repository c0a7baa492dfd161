"""Trees of the draft's most probable tokens along a path: which of them hold the path's token is recorded.

Such a tree is a function of the text before it. The child of rank r holds the path's token iff r is the rank
of that token among the draft's, so a walk down the tree by ranks says how deep the path runs inside it. A
trace with unions of the k most probable tokens of both models knows every rank below k. Ranks come from
stored logarithms: of two tokens less than 0.2 % apart the wrong one may come first, except at the top.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation.distributions import (
    HasProbabilities,
    Path,
    PathDistributions,
    PathProbabilities,
    Signals,
)
from specsim.speculation.sampling import kept_given_text
from specsim.speculation.tree_shape import TreeShape


@runtime_checkable
class HasRanks(Protocol):
    """Path distributions that know the path's token by its rank among the draft's."""

    @property
    def num_ranked(self) -> int:
        """Ranks below it are known; 0: none."""
        ...

    def ranks(self, request: Ints, position: Ints, depth: int) -> Ints:
        """Rank of the path's token at each depth of a round started at ``position``, [B, depth].

        0 is the draft's most probable token, ``num_ranked`` all that are not known, and past the path's end.
        """
        ...


class TreePaths:
    """Path distributions of a draft tree whose children are the most probable tokens.

    Parameters
    ----------
    paths
        What is known along the paths.
    shape
        The tree.

    Raises
    ------
    ConfigError
        The paths do not know as many ranks as a node has children.
    """

    offers: Literal["path"] = "path"
    records_tails = False
    drafts_in_one_pass = False

    def __init__(self, paths: PathDistributions, shape: TreeShape) -> None:
        children = shape.children
        known = paths.num_ranked if isinstance(paths, HasRanks) else 0
        if not isinstance(paths, HasRanks) or not isinstance(paths, HasProbabilities) or known == 0:
            raise ConfigError.at(
                "draft_source",
                "a tree along a recorded text needs the ranks of its tokens in the draft, from"
                " the trace of a model's draft, with unions where a node has more than one child",
            )
        if children.shape[1] > known:
            raise ConfigError.at(
                "draft_source",
                f"a node has {children.shape[1]} children, but the trace ranks only the draft's"
                f" {known} most probable tokens; record it with larger unions",
            )
        self._paths: PathDistributions = paths
        self._ranks, self._probabilities = paths.ranks, paths.probabilities
        self._children = np.concatenate([children, np.full((len(children), 1), -1)], axis=1)

    def path(self, request: int) -> Path | None:
        """Return the path of a request."""
        return self._paths.path(request)

    def acceptance(self, request: Ints, position: Ints, depth: int) -> Floats:
        """1 at each depth where the tree holds the path's token, else 0, [B, depth]."""
        known = self.probabilities(request, position, depth)
        return kept_given_text(known.target, known.draft)

    def probabilities(self, request: Ints, position: Ints, depth: int) -> PathProbabilities:
        """Return p of the path's token and whether the tree holds it, 1 or 0, at each depth, [B, depth]."""
        # The last column of the table is of no child.
        ranks = np.minimum(self._ranks(request, position, depth), self._children.shape[1] - 1)
        node: Ints = np.full(position.size, -1)
        is_inside = np.ones(position.size, dtype=bool)
        draft: Floats = np.zeros(ranks.shape)
        for at in range(depth):
            node = self._children[node + 1, ranks[:, at]]
            is_inside &= node >= 0
            draft[:, at] = is_inside
        return PathProbabilities(self._probabilities(request, position, depth).target, draft)

    def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
        """Signals at each depth, along the path."""
        return self._paths.signals(request, position, depth)
