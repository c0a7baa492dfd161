"""Shapes of draft trees: given, or the best for an acceptance by rank and the cost of a round.

A node's children are ranked: rank r is drafted only with all ranks below it, and is kept with probability
P_r whatever stands elsewhere in the tree. The expected number of tokens of a round is then one and the sum
over all nodes of the product of P along the path to each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import DomainError


@dataclass(frozen=True)
class TreeShape:
    """A tree of N nodes, level by level; siblings in order of rank."""

    parent: tuple[int, ...]
    """Parent of each node; -1 is the root, which is the last emitted token and no node."""

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Depth of each node: 0 for children of the root."""
        depths: list[int] = []
        for above in self.parent:
            depths.append(0 if above < 0 else depths[above] + 1)
        return tuple(depths)

    @property
    def depth(self) -> int:
        """Levels of the tree."""
        return max(self.depths, default=-1) + 1

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.parent)

    @property
    def pass_positions(self) -> tuple[int, ...]:
        """Positions that each pass of the draft computes: the nodes with children, level by level."""
        above = [
            {place for place, level in zip(self.parent, self.depths, strict=True) if level == at}
            for at in range(self.depth)
        ]
        return tuple(len(places) for places in above)

    @property
    def children(self) -> Ints:
        """Children of the root and of each node by rank, [N + 1, most children]; -1: none.

        Examples
        --------
        >>> TreeShape.of_branching([2, 1]).children.tolist()
        [[0, 1], [2, -1], [3, -1], [-1, -1], [-1, -1]]
        """
        families: list[list[int]] = [[] for _ in range(self.num_nodes + 1)]
        for node, above in enumerate(self.parent):
            families[above + 1].append(node)
        table: Ints = np.full((len(families), max(map(len, families))), -1)
        for place, family in enumerate(families):
            table[place, : len(family)] = family
        return table

    def expected_tokens(self, acceptance_by_rank: Sequence[float]) -> float:
        """Tokens of a round, the final one included.

        Examples
        --------
        >>> TreeShape.of_branching([2, 1]).expected_tokens([0.5, 0.25])
        2.125
        """
        value: list[float] = []
        ranks, total = [0] * (self.num_nodes + 1), 1.0
        for above in self.parent:
            rank = ranks[above + 1]
            ranks[above + 1] += 1
            rate = acceptance_by_rank[rank] if rank < len(acceptance_by_rank) else 0.0
            value.append(rate * (1.0 if above < 0 else value[above]))
            total += value[-1]
        return total

    @classmethod
    def of_branching(cls, branching: Sequence[int]) -> TreeShape:
        """Tree whose nodes at depth d all have ``branching[d]`` children.

        Examples
        --------
        >>> TreeShape.of_branching([2, 1]).parent
        (-1, -1, 0, 1)
        """
        parent: list[int] = []
        level = [-1]
        for width in branching:
            first = len(parent)
            parent += [above for above in level for _ in range(width)]
            level = list(range(first, len(parent)))
        return cls(tuple(parent))

    @classmethod
    def of_paths(cls, nodes: Sequence[tuple[int, ...]]) -> TreeShape:
        """Tree of nodes given by their ranks from the root; (0,) is the first child, (0, 1) its second."""
        ordered = sorted(nodes, key=lambda path: (len(path), path))
        number = {path: place for place, path in enumerate(ordered)}
        for path in ordered:
            lacking = [(*path[:-1], path[-1] - 1)] if path[-1] > 0 else []
            lacking += [path[:-1]] if len(path) > 1 else []
            for other in lacking:
                if other not in number:
                    raise DomainError(f"tree: node {list(path)} needs node {list(other)}, which is missing")
        return cls(tuple(number[path[:-1]] if len(path) > 1 else -1 for path in ordered))


def optimal_tree(
    acceptance_by_rank: Sequence[float], *, num_nodes: int, max_depth: int | None = None
) -> TreeShape:
    """Tree of at most ``num_nodes`` nodes (root not counted) with the most expected tokens.

    Chen et al. 2024 (Sequoia), Section 3.1, by dynamic programming over subtrees: the best tree of n nodes
    and depth d whose root has children up to rank b. Where P falls with the rank it is the tree of the n
    largest path products, which the tests compare it with.

    Parameters
    ----------
    acceptance_by_rank
        P_r, each in [0, 1], their sum at most 1.
    num_nodes
        The most nodes, root not counted.
    max_depth
        The most levels; None: as many as there are nodes.

    Examples
    --------
    >>> tree = optimal_tree([0.6, 0.2, 0.08, 0.04], num_nodes=3)
    >>> round(tree.expected_tokens([0.6, 0.2, 0.08, 0.04]), 4)
    2.176
    """
    rates = _checked(acceptance_by_rank)
    depth = num_nodes if max_depth is None else min(max_depth, num_nodes)
    if depth == 0:
        return TreeShape(())
    gain, take = _subtrees(rates, num_nodes, depth)
    return _tree(take, int(np.argmax(gain[depth])), depth)


def _subtrees(rates: Floats, num_nodes: int, depth: int) -> tuple[Floats, Ints]:
    """Best gain of n nodes below a place with d levels left, [d, n]; and how they are split by rank.

    ``take[d, r, n]``: nodes given to the child of rank r and its subtree when ranks r and above share n.
    """
    num_ranks = rates.size
    gain: Floats = np.full((depth + 1, num_nodes + 1), 0.0)
    gain[0, 1:] = -np.inf
    take: Ints = np.zeros((depth + 1, num_ranks, num_nodes + 1), dtype=np.int64)
    for level in range(1, depth + 1):
        # A child costs one node and has what its subtree gains, both times its rate.
        child = np.concatenate([[-np.inf], 1 + gain[level - 1, :-1]])
        after = np.full(num_nodes + 1, -np.inf)
        after[0] = 0.0
        for rank in range(num_ranks - 1, -1, -1):
            here = np.full(num_nodes + 1, -np.inf)
            here[0] = 0.0
            for total in range(1, num_nodes + 1):
                sizes = np.arange(1, total + 1)
                reached = np.where(np.isinf(child[sizes]), -np.inf, rates[rank] * np.maximum(child[sizes], 0))
                values = reached + after[total - sizes]
                choice = int(np.argmax(values))
                here[total], take[level, rank, total] = values[choice], sizes[choice]
            after = here
        gain[level] = after
    return gain, take


def _tree(take: Ints, num_nodes: int, depth: int) -> TreeShape:
    """Tree of exactly so many nodes within so many levels, as the splits say."""
    paths: list[tuple[int, ...]] = []
    waiting: list[tuple[int, int, tuple[int, ...]]] = [(num_nodes, depth, ())]
    while waiting:
        count, level, path = waiting.pop()
        rank = 0
        while count > 0:
            size = int(take[level, rank, count])
            paths.append((*path, rank))
            waiting.append((size - 1, level - 1, (*path, rank)))
            count -= size
            rank += 1
    return TreeShape.of_paths(paths)


def largest_products(acceptance_by_rank: Sequence[float], *, num_nodes: int) -> TreeShape:
    """Tree of the nodes with the largest products of P along their paths; optimal where P falls."""
    rates = _checked(acceptance_by_rank)
    heap: list[tuple[float, tuple[int, ...]]] = [(-float(rates[0]), (0,))]
    paths: list[tuple[int, ...]] = []
    while heap and len(paths) < num_nodes:
        value, path = heappop(heap)
        paths.append(path)
        heappush(heap, (value * float(rates[0]), (*path, 0)))
        if path[-1] + 1 < rates.size:
            above = value / float(rates[path[-1]]) if rates[path[-1]] > 0 else 0.0
            heappush(heap, (above * float(rates[path[-1] + 1]), (*path[:-1], path[-1] + 1)))
    return TreeShape.of_paths(paths)


def best_tree(
    acceptance_by_rank: Sequence[float], *, max_nodes: int, round_s: Callable[[TreeShape], float]
) -> TreeShape:
    """Tree with the most expected tokens a second on a device.

    Chen et al. 2024 (Sequoia), Section 3.3: the optimal tree of every size and depth is weighed against
    what its round costs.

    Parameters
    ----------
    acceptance_by_rank
        P_r, each in [0, 1], their sum at most 1.
    max_nodes
        The most nodes.
    round_s
        Time of a round that drafts and verifies a tree, s; above 0.

    Examples
    --------
    >>> cheap = best_tree([0.6, 0.2], max_nodes=8, round_s=lambda tree: 1.0)
    >>> dear = best_tree([0.6, 0.2], max_nodes=8, round_s=lambda tree: 1.0 + tree.num_nodes)
    >>> cheap.num_nodes, dear.num_nodes
    (8, 0)
    """
    rates = _checked(acceptance_by_rank)
    gain, take = _subtrees(rates, max_nodes, max_nodes)
    trees = [TreeShape(())] + [
        _tree(take, nodes, depth)
        for nodes in range(1, max_nodes + 1)
        for depth in range(1, nodes + 1)
        if np.isfinite(gain[depth, nodes])
    ]
    return max(trees, key=lambda tree: tree.expected_tokens(acceptance_by_rank) / round_s(tree))


def _checked(acceptance_by_rank: Sequence[float]) -> Floats:
    rates = np.asarray(acceptance_by_rank, dtype=np.float64)
    if rates.ndim != 1 or rates.size == 0 or not ((rates >= 0) & (rates <= 1)).all():
        raise DomainError(f"acceptance by rank: {list(acceptance_by_rank)} are not rates in [0, 1]")
    if rates.sum() > 1 + 1e-9:
        raise DomainError(f"acceptance by rank: sums to {rates.sum():.9g}; siblings exclude each other")
    return rates
