"""Sampler match: the target draws its token as always, and a draft is kept iff it is that token."""

from __future__ import annotations

from typing import Literal

from specsim.config.base import Spec
from specsim.speculation.draft import Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.verify.candidates import CandidatesVerifier


@VERIFIERS.register
class SamplerMatchSpec(Spec):
    """Draw from the target, keep the draft that equals the draw."""

    kind: Literal["sampler_match"] = "sampler_match"
    """Sampler match."""

    def build(self, context: BuildContext) -> SamplerMatchVerifier:
        """Return the rule."""
        return SamplerMatchVerifier()


class SamplerMatchVerifier(CandidatesVerifier):
    """Keep draft x with probability p(x), emit from p without x after.

    The engine draws y from p, keeps x iff y = x, and emits y either way: as a law, candidates on a chain.
    Lossless for any q, with acceptance probability sum p q, never above token verification's sum min(p, q).
    """

    siblings: tuple[Siblings, ...] = ("one",)
