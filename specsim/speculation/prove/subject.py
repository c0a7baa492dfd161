"""What is proved: distributions, draft, rule and policy, as the engine would run them."""

from __future__ import annotations

from dataclasses import dataclass, field

from specsim.arrays import Ints
from specsim.speculation.distributions import ConditionalDistributions
from specsim.speculation.draft import DraftSource
from specsim.speculation.lookahead.fixed import Fixed
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.sampled_rounds import SampledRounds
from specsim.speculation.uniforms import RoundUniforms
from specsim.speculation.verify.rule import Verifier


@dataclass(frozen=True)
class Subject:
    """All that rounds by sampling are made of; a subclass may build them otherwise, to be found out."""

    distributions: ConditionalDistributions
    draft_source: DraftSource
    verifier: Verifier
    policy: LookaheadPolicy = field(default_factory=Fixed)

    def rounds(self, uniforms: RoundUniforms, num_output_tokens: Ints) -> SampledRounds:
        """Return the engine's source of rounds with given luck."""
        return SampledRounds(
            self.distributions,
            self.draft_source,
            self.verifier,
            self.policy,
            uniforms=uniforms,
            num_output_tokens=num_output_tokens,
        )
