"""Optimal transport from drafts to the target: the most that any lossless rule can keep; the yardstick."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.errors import DomainError
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.sampling import Vector, distribution_pair, kept_given_text

MAX_TUPLES = 1024
"""The most tuples of siblings that a transport plan is made over."""
_MAX_SETS = 2**16


@VERIFIERS.register
class OptimalSpec(Spec):
    """Optimal transport by linear programming, for small vocabularies: a yardstick."""

    kind: Literal["optimal"] = "optimal"
    """Optimal transport."""

    def build(self, context: BuildContext) -> OptimalVerifier:
        """Return the rule."""
        return OptimalVerifier()


def optimal_acceptance(p: Vector, q: Vector, num_siblings: int, *, is_distinct: bool = False) -> float:
    """Largest probability that any lossless rule keeps one of k sampled siblings, by its minimum cut.

    1 + min over sets H of p(H) - Pr(all siblings in H); Sun et al. 2023 (SpecTr), Section 4, as a maximum
    flow from tuples to tokens. Independent siblings have Pr = q(H)^k, which is convex in q(H), so the best
    H are the tokens of smallest p/q. For distinct ones all sets are tried, up to 16 tokens.

    Raises
    ------
    DomainError
        Where p and q are no pair, or there are too many sets.

    Examples
    --------
    >>> round(optimal_acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2), 12)
    0.86
    """
    target, draft = distribution_pair(p, q)
    if not is_distinct:
        ratio = np.where(draft > 0, target / np.where(draft > 0, draft, 1.0), np.inf)
        order = np.argsort(ratio)
        cut = np.cumsum(target[order]) - np.minimum(np.cumsum(draft[order]), 1.0) ** num_siblings
        return float(1 + min(cut.min(), 0.0))
    if 2**target.size > _MAX_SETS:
        raise DomainError(f"optimal: {target.size} tokens have too many sets to try; at most 16")
    tuples, chance = _tuples(draft, num_siblings, is_distinct=True)
    sets = (np.arange(2**target.size)[:, np.newaxis] >> np.arange(target.size)) & 1
    is_inside = sets.astype(bool)[:, tuples].all(axis=2)
    return float(1 + (sets @ target - is_inside @ chance).min())


@dataclass(frozen=True, slots=True)
class _Plan:
    """A transport plan: which sibling each tuple keeps, and what is left of p."""

    keep: dict[tuple[int, ...], Floats]
    """Probability of keeping each sibling of a tuple, [k]; a token counts at its first sibling."""
    left: Floats
    """Law of the token where none is kept, [V]."""


class OptimalVerifier:
    """Keep as much as any lossless rule can.

    Sun et al. 2023 (SpecTr), Section 4: the coupling of sampled siblings with the target's token that
    maximises the probability of a match, by linear programming over all tuples of siblings. Where none is
    kept the token is drawn from what is left of p, the same for all tuples. It is exact whatever the
    solver's rounding, since what is left is computed from the plan.

    Raises
    ------
    DomainError
        From both methods: where V^k exceeds 1024 tuples.
    """

    is_lossless = True
    needs: Literal["path"] = "path"
    siblings: tuple[Siblings, ...] = ("one", "independent", "distinct")

    def __init__(self) -> None:
        self._plans: dict[tuple[bytes, bytes, int, bool], _Plan] = {}

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Probability that each node is the one kept of its siblings, [B, N]; 0 at padding."""
        keep: Floats = np.zeros(draft.token.shape)
        for row in range(len(draft.token)):
            for place in np.unique(draft.parent[row][draft.token[row] >= 0]).tolist():
                children = _children(draft, row, place)
                plan = self._plan(draft, target[row, place + 1], row, children)
                keep[row, children] = plan.keep[tuple(draft.token[row, children].tolist())]
        return keep

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Return what the plan has left of p, [B, V]; p where the last node has no children."""
        law: Floats = target[np.arange(last.size), last + 1].copy()
        for row, place in enumerate(last.tolist()):
            children = _children(draft, row, place)
            if children.size:
                law[row] = self._plan(draft, law[row], row, children).left
        return law

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        """Return min(1, q/p), [B, D]: the plan that keeps most of a single draft is token verification."""
        return kept_given_text(target, draft)

    def _plan(self, draft: Draft, p: Floats, row: int, children: Ints) -> _Plan:
        q = draft.probabilities[row, children]
        # Without replacement the first token is gone from the second q; with it, two askings of a live model
        # may still differ in a last digit. For one child both ways are the same.
        is_distinct = len(q) > 1 and bool(q[1, draft.token[row, children[0]]] == 0)
        key = (p.tobytes(), q[0].tobytes(), len(q), is_distinct)
        if key not in self._plans:
            self._plans[key] = _solved(p, q[0], len(q), is_distinct=is_distinct)
        return self._plans[key]


def _children(draft: Draft, row: int, place: int) -> Ints:
    return np.flatnonzero((draft.parent[row] == place) & (draft.token[row] >= 0))


def _tuples(q: Floats, num_siblings: int, *, is_distinct: bool) -> tuple[Ints, Floats]:
    """All tuples of siblings that can be drawn, [tuples, k], and their probabilities."""
    support = np.flatnonzero(q > 0).tolist()
    if len(support) ** num_siblings > MAX_TUPLES:
        raise DomainError(
            f"optimal: {len(support)} tokens have {len(support) ** num_siblings} tuples of {num_siblings};"
            f" at most {MAX_TUPLES}"
        )
    tuples, chances = [], []
    for tokens in product(support, repeat=num_siblings):
        if is_distinct and len(set(tokens)) < num_siblings:
            continue
        chance, left = 1.0, 1.0
        for token in tokens:
            chance *= float(q[token]) / left
            left -= float(q[token]) if is_distinct else 0.0
        tuples.append(tokens)
        chances.append(chance)
    return np.array(tuples, dtype=np.int64).reshape(-1, num_siblings), np.array(chances)


def _solved(p: Floats, q: Floats, num_siblings: int, *, is_distinct: bool) -> _Plan:
    # Only where the rule is used: importing the solver takes a third of a second.
    from scipy.optimize import linprog

    tuples, chance = _tuples(q, num_siblings, is_distinct=is_distinct)
    is_first = np.ones(tuples.shape, dtype=bool)
    for sibling in range(1, num_siblings):
        is_same = tuples[:, :sibling] == tuples[:, sibling, np.newaxis]
        is_first[:, sibling] = ~is_same.any(axis=1)
    row, place = np.nonzero(is_first)
    token = tuples[row, place]
    edges = np.arange(row.size)
    limits: Floats = np.zeros((len(tuples) + p.size, row.size))
    limits[row, edges] = 1.0
    limits[len(tuples) + token, edges] = 1.0
    solution = linprog(
        -np.ones(row.size), A_ub=limits, b_ub=np.concatenate([chance, p]), bounds=(0, None), method="highs"
    )
    flow: Floats = np.maximum(np.asarray(solution.x, dtype=np.float64), 0.0)
    # Pulled inside the limits, so that the solver's rounding costs acceptance and not exactness.
    kept = np.bincount(token, flow, minlength=p.size)
    flow *= np.where(kept > p, p / np.where(kept > 0, kept, 1.0), 1.0)[token]
    used = np.bincount(row, flow, minlength=len(tuples))
    flow *= np.where(used > chance, chance / np.where(used > 0, used, 1.0), 1.0)[row]
    keep = np.zeros(tuples.shape)
    keep[row, place] = flow / chance[row]
    left = np.maximum(p - np.bincount(token, flow, minlength=p.size), 0.0)
    mass = left.sum()
    return _Plan(
        {tuple(tokens): keep[number] for number, tokens in enumerate(tuples.tolist())},
        left / mass if mass > 0 else p,
    )
