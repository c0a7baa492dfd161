"""K-SEQ: independent siblings, each kept with the same thinned probability."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.sampling import kept_given_text

_BISECTIONS = 60
"""Halvings of [1, k]: more than a float64 has bits."""


@VERIFIERS.register
class KSeqSpec(Spec):
    """K-SEQ selection among independent drafts (SpecTr)."""

    kind: Literal["kseq"] = "kseq"
    """K-SEQ."""

    def build(self, context: BuildContext) -> KSeqVerifier:
        """Return the rule."""
        return KSeqVerifier()


class KSeqVerifier:
    """Scan the k independent children, keep x with probability min(1, p(x) / (rho q(x))).

    Sun et al. 2023 (SpecTr, arXiv 2310.15141), Algorithm 3. With beta = sum min(q, p/rho), rho in [1, k]
    solves 1 - (1 - beta)^k = rho beta; where none is kept the token is drawn from
    p - min(q, p/rho) (1 - (1 - beta)^k) / beta, normalised. Keeps at least (1 - 1/e) of what the optimal
    transport keeps. Equal siblings share one node: the first has the mass of all.
    """

    is_lossless = True
    needs: Literal["path"] = "path"
    siblings: tuple[Siblings, ...] = ("one", "independent")

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Probability that each node is the one kept of its siblings, [B, N]; 0 at padding."""
        num_rows, num_nodes = draft.token.shape
        rows = np.arange(num_rows)
        keep: Floats = np.zeros((num_rows, num_nodes))
        not_yet = np.ones((num_rows, num_nodes + 1))
        count = _num_children(draft)
        known: Floats = np.full((num_rows, num_nodes + 1), np.nan)
        for node in range(num_nodes):
            token, place = draft.token[:, node], draft.parent[:, node] + 1
            x = np.maximum(token, 0)
            p, q = target[rows, place], draft.probabilities[:, node]
            # Siblings share p, q and k, so rho is solved for at the first of them.
            fresh = np.flatnonzero(np.isnan(known[rows, place]) & (token >= 0))
            known[fresh, place[fresh]] = solve_rho(p[fresh], q[fresh], count[fresh, place[fresh]])
            rho = np.where(token >= 0, known[rows, place], 1.0)
            thinned, drafted = p[rows, x] / rho, q[rows, x]
            ratio = thinned / np.where(drafted > 0, drafted, 1.0)
            accepts = np.where((token >= 0) & (drafted > 0), np.minimum(ratio, 1.0), 0.0)
            gained = not_yet[rows, place] * accepts
            not_yet[rows, place] *= 1 - accepts
            earlier = (draft.token[:, :node] == token[:, np.newaxis]) & (
                draft.parent[:, :node] == draft.parent[:, node, np.newaxis]
            )
            first = (
                np.where(earlier.any(axis=1), earlier.argmax(axis=1), node) if node else np.full(num_rows, 0)
            )
            keep[rows, first] += np.where(token >= 0, gained, 0.0)
        return keep

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Return what k independent children have left of p, [B, V]; p where there are none."""
        rows = np.arange(last.size)
        p = target[rows, last + 1]
        is_child = (draft.parent == last[:, np.newaxis]) & (draft.token >= 0)
        count = is_child.sum(axis=1)
        if not count.any():
            return p
        q = draft.probabilities[rows, is_child.argmax(axis=1)]
        k = np.maximum(count, 1)
        rho = solve_rho(p, q, k)
        thinned = np.minimum(q, p / rho[:, np.newaxis])
        beta = thinned.sum(axis=1)
        accepted = 1 - (1 - np.minimum(beta, 1.0)) ** k
        per_mass = np.where(beta > 0, accepted / np.where(beta > 0, beta, 1.0), 0.0)
        left = np.maximum(p - thinned * per_mass[:, np.newaxis], 0.0)
        mass = left.sum(axis=1)
        is_left = (count > 0) & (mass > 0)
        law: Floats = np.where(is_left[:, np.newaxis], left / np.where(mass > 0, mass, 1.0)[:, np.newaxis], p)
        return law

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        """Return min(1, q/p), [B, D]: a single draft has rho = 1, which is token verification."""
        return kept_given_text(target, draft)


def solve_rho(p: Floats, q: Floats, k: Ints) -> Floats:
    """Rho in [1, k] where 1 - (1 - beta)^k = rho beta, with beta = sum min(q, p/rho); [rows].

    The left side less the right falls with rho; the upper end of the last bracket is returned, where no
    token is kept more often than p allows.

    Examples
    --------
    >>> p, q = np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]])
    >>> solve_rho(p, q, np.array([2])).round(5).tolist()
    [1.45678]
    """
    low, high = np.ones(len(p)), k.astype(np.float64)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        beta = np.minimum(np.minimum(q, p / middle[:, np.newaxis]).sum(axis=1), 1.0)
        is_below = 1 - (1 - beta) ** k > middle * beta
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return high


def _num_children(draft: Draft) -> Ints:
    """Children of the root and of each node, [B, N + 1]."""
    places = np.arange(-1, draft.token.shape[1])
    is_child = (draft.parent[:, :, np.newaxis] == places) & (draft.token >= 0)[:, :, np.newaxis]
    count: Ints = is_child.sum(axis=1)
    return count
