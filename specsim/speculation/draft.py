"""What a draft proposes in one round, and who proposes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.distributions import Prefixes

Siblings = Literal["one", "independent", "distinct", "certain"]
"""How the children of one node are made.

``one``: a chain. ``independent``: drawn from one q, each on its own, so that they may be equal.
``distinct``: drawn without replacement, each from the q that is left. ``certain``: not drawn at all, but
a function of the prefix, so that each has a q of 1.
"""


@dataclass(slots=True)
class Draft:
    """B proposals of up to N nodes over V tokens; a chain has ``parent[i] = i - 1``."""

    token: Ints
    """Token of each node, [B, N]; -1 pads."""
    parent: Ints
    """Parent node, [B, N]; -1 is the root. A parent comes before its children."""
    probabilities: Floats
    """The q that each node was drawn from, [B, N, V]."""
    model_law: Floats | None = None
    """The draft model's own distribution at each node, [B, N, V], where q is not it: a greedy draft has a q
    of 1 at one token, while a confidence rule reads the model."""


class DraftSource(Protocol):
    """Proposes drafts from uniforms, and can list all of them with their probabilities for proofs."""

    siblings: Siblings
    """How the children of one node are made; a rule that is not exact for it is refused."""
    num_nodes: int
    """Nodes of a draft at most, N."""
    num_context_tokens: int
    """How many last tokens of a prefix the source reads, those that its distributions read included."""
    pass_positions: tuple[int, ...]
    """Positions that each pass of the draft computes for one sequence."""
    depth: int
    """Drafts that can be kept in a row at most."""

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """One draft a row; ``uniforms`` [B, N] in [0, 1), node i drawn with uniform i."""
        ...

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """All drafts of a one-row prefix with their probabilities."""
        ...


def is_chain(parent: Ints) -> bool:
    """Tell whether the parent of every node is the node before it, in all rows.

    Examples
    --------
    >>> is_chain(np.array([[-1, 0, 1]])), is_chain(np.array([[-1, -1]]))
    (True, False)
    """
    return bool((parent == np.arange(-1, parent.shape[1] - 1)).all())


def node_depths(parent: Ints) -> Ints:
    """Depth of each node, [B, N]: 0 for children of the root.

    Examples
    --------
    >>> node_depths(np.array([[-1, -1, 0, 2]])).tolist()
    [[0, 0, 1, 2]]
    """
    if is_chain(parent):
        return np.broadcast_to(np.arange(parent.shape[1]), parent.shape)
    depth = np.zeros_like(parent)
    rows = np.arange(parent.shape[0])
    for node in range(parent.shape[1]):
        above = parent[:, node]
        depth[:, node] = np.where(above < 0, 0, depth[rows, above] + 1)
    return depth
