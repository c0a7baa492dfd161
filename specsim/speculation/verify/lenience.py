"""Lenience: token verification that forgives a draft some of its excess; lossy."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.sampling import keep_probabilities
from specsim.speculation.verify.chain import at_tokens, is_drafted
from specsim.speculation.verify.token import TokenVerifier


@VERIFIERS.register
class LenienceSpec(Spec):
    """Token verification with lenience; the output does not follow the target's distribution."""

    kind: Literal["lenience"] = "lenience"
    """Lenience; lossy."""
    lenience: float = Field(gt=0, le=1)
    """Factor on q in the comparison; 1 is token verification, which is lossless."""

    def build(self, context: BuildContext) -> LenienceVerifier:
        """Return the rule."""
        return LenienceVerifier(lenience=self.lenience)


class LenienceVerifier:
    """Keep a draft with probability min(1, p / (l q)); else as token verification.

    Leviathan et al. 2023, Appendix A.5: q is multiplied by l before it is compared with p. No token becomes
    more probable than p/l. Lossy below l = 1, so that a text recorded from the target is not one of its own.
    """

    needs: Literal["conditional"] = "conditional"
    siblings: tuple[Siblings, ...] = ("one",)

    def __init__(self, *, lenience: float) -> None:
        self._lenience = lenience
        self._token = TokenVerifier()
        self.is_lossless = lenience == 1

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Probability that each node is kept given that its parent was, [B, N]; 0 at padding."""
        p, q = at_tokens(draft, target[:, :-1]), at_tokens(draft, draft.probabilities)
        return np.where(is_drafted(draft), keep_probabilities(p, self._lenience * q), 0.0)

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Law of the final token, [B, V]: that of token verification."""
        return self._token.next_token(draft, target, last)
