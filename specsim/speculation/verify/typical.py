"""Typical acceptance: drafts are kept that the target does not find unusual; lossy."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.verify.chain import at_tokens, is_drafted, refused_node


@VERIFIERS.register
class TypicalSpec(Spec):
    """Typical acceptance (Medusa); the output does not follow the target's distribution."""

    kind: Literal["typical"] = "typical"
    """Typical acceptance; lossy."""
    threshold: float = Field(default=0.09, gt=0, le=1)
    """Target probability above which a draft is kept whatever the entropy (epsilon)."""
    entropy_factor: float = Field(default=0.3, gt=0, le=1)
    """Scale of exp(-entropy), above which a draft is kept as well (delta)."""

    def build(self, context: BuildContext) -> TypicalVerifier:
        """Return the rule."""
        return TypicalVerifier(threshold=self.threshold, entropy_factor=self.entropy_factor)


class TypicalVerifier:
    """Keep a draft iff p(x) > min(epsilon, delta exp(-H(p))); emit the target's most probable token after.

    Cai et al. 2024 (Medusa), Section 3.3.1, with the replacement of a refused draft by the most probable
    token. Where all drafts are kept the next token is a sample of p. Lossy: more is kept than p allows, and a
    text recorded from the target is not one of its own.
    """

    is_lossless = False
    needs: Literal["conditional"] = "conditional"
    siblings: tuple[Siblings, ...] = ("one",)

    def __init__(self, *, threshold: float = 0.09, entropy_factor: float = 0.3) -> None:
        self._threshold = threshold
        self._entropy_factor = entropy_factor

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """1 for drafts above the threshold of their place, else 0, [B, N]."""
        p = target[:, :-1]
        is_kept = at_tokens(draft, p) > self.thresholds(p)
        return np.where(is_drafted(draft), is_kept, False).astype(np.float64)

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Return the most probable token after a refusal, [B, V], else the target's law."""
        rows = np.arange(last.size)
        p = target[rows, last + 1]
        if draft.token.shape[1] == 0:
            return p
        _, is_rejected = refused_node(draft, last)
        best = np.zeros_like(p)
        best[rows, p.argmax(axis=1)] = 1.0
        law: Floats = np.where(is_rejected[:, np.newaxis], best, p)
        return law

    def thresholds(self, p: Floats) -> Floats:
        """Least probability that is kept, over laws [..., V].

        Examples
        --------
        >>> TypicalVerifier().thresholds(np.full(20, 0.05)).round(12).item()
        0.015
        """
        entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)
        limit: Floats = np.minimum(self._threshold, self._entropy_factor * np.exp(-entropy))
        return limit
