"""Greedy verification: drafts are kept while they are what the target is certain of."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Bools, Floats, Ints
from specsim.config.base import Spec
from specsim.errors import DomainError
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.verify.candidates import is_first_of_its_token


@VERIFIERS.register
class GreedySpec(Spec):
    """Longest prefix of the target's own tokens, for a target at temperature 0."""

    kind: Literal["greedy"] = "greedy"
    """Greedy verification."""

    def build(self, context: BuildContext) -> GreedyVerifier:
        """Return the rule."""
        return GreedyVerifier()


class GreedyVerifier:
    """Keep a draft iff it is the target's token; emit the target's token after.

    Stern et al. 2018 (blockwise parallel decoding). Lossless where the target is certain, as at
    temperature 0 (ties go to the lowest token); a target that is not certain is a DomainError, since the
    rule would emit its most probable token instead of a sample. Equals token verification there.
    """

    is_lossless = True
    needs: Literal["path"] = "path"
    siblings: tuple[Siblings, ...] = ("one", "independent", "distinct", "certain")
    needs_certain_target = True
    """Proofs are given for targets at temperature 0."""

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """1 for the first child that is the target's token, else 0, [B, N]."""
        _refuse_uncertain(target.max(axis=2))
        rows = np.arange(len(draft.token))[:, np.newaxis]
        best = target.argmax(axis=2)[rows, draft.parent + 1]
        is_kept: Bools = (draft.token == best) & is_first_of_its_token(draft)
        keep: Floats = is_kept.astype(np.float64)
        return keep

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Return the target's certain token after the last kept node, [B, V]."""
        _refuse_uncertain(target.max(axis=2))
        law: Floats = target[np.arange(last.size), last + 1]
        return law

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        """Return q, [B, D]: the text holds the target's tokens, and a draft is kept iff it is one."""
        _refuse_uncertain(target)
        return draft


def _refuse_uncertain(largest: Floats) -> None:
    if not (largest == 1).all():
        raise DomainError(
            f"greedy: the target is not certain (largest probability {largest.min():.3g});"
            " use token, or a target at temperature 0"
        )
