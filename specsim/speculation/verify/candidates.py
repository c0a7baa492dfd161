"""Deterministic candidates: the target draws, and whichever child it drew is kept."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Bools, Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext


@VERIFIERS.register
class CandidatesSpec(Spec):
    """Deterministic candidates: EAGLE-2, Medusa's greedy tree, prompt lookup, target-only sampling."""

    kind: Literal["candidates"] = "candidates"
    """Deterministic candidates."""

    def build(self, context: BuildContext) -> CandidatesVerifier:
        """Return the rule."""
        return CandidatesVerifier()


class CandidatesVerifier:
    """Keep child x with probability p(x); emit from p without the children where none is kept.

    Li et al. 2024 (EAGLE-2), Section 4 and its code: the rule of recursive rejection with a q of 1 at each
    candidate. It reads no q, so it is lossless however the candidates came about; the acceptance
    probability is the target's mass on them.
    """

    is_lossless = True
    needs: Literal["path"] = "path"
    siblings: tuple[Siblings, ...] = ("one", "independent", "distinct", "certain")

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Target probability of each node's token, [B, N]; a token counts once among siblings."""
        rows = np.arange(len(draft.token))[:, np.newaxis]
        p = target[rows, draft.parent + 1, np.maximum(draft.token, 0)]
        return np.where(is_first_of_its_token(draft), p, 0.0)

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Return the target's law without the children of the last kept node, [B, V]."""
        p = target[np.arange(last.size), last + 1].copy()
        whole = p.copy()
        is_child = (draft.parent == last[:, np.newaxis]) & (draft.token >= 0)
        row, node = np.nonzero(is_child)
        p[row, draft.token[row, node]] = 0.0
        mass = p.sum(axis=1, keepdims=True)
        # Where the children hold all mass, one of them is kept for sure and this law is never used.
        law: Floats = np.where(mass > 0, p / np.where(mass > 0, mass, 1.0), whole)
        return law

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        """Return q, [B, D]: the text is what the target drew, and a draft is kept iff it is the text's."""
        return draft


def is_first_of_its_token(draft: Draft) -> Bools:
    """Nodes that are no padding and no repeat of an earlier sibling's token, [B, N]."""
    is_first = draft.token >= 0
    for node in range(1, draft.token.shape[1]):
        is_same = (draft.token[:, :node] == draft.token[:, node, np.newaxis]) & (
            draft.parent[:, :node] == draft.parent[:, node, np.newaxis]
        )
        is_first[:, node] &= ~is_same.any(axis=1)
    return is_first
