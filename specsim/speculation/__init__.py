"""Speculative decoding: distributions, draft sources, verification rules, lookahead policies, rounds."""

from specsim.speculation.chain import ChainDraft
from specsim.speculation.distributions import (
    ConditionalDistributions,
    Distributions,
    Path,
    PathDistributions,
    Prefixes,
    Signals,
)
from specsim.speculation.draft import Draft, DraftSource
from specsim.speculation.explicit import ExplicitDistributions, ExplicitSpec
from specsim.speculation.kinds import DISTRIBUTIONS, LOOKAHEAD_POLICIES, VERIFIERS, BuildContext
from specsim.speculation.lookahead.confidence import Confidence, ConfidenceSpec
from specsim.speculation.lookahead.fixed import Fixed, FixedSpec
from specsim.speculation.lookahead.heuristic import Heuristic, HeuristicSpec
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.path_rounds import PathRounds
from specsim.speculation.plain_rounds import PlainRounds
from specsim.speculation.rates import RatesDistributions, RatesSpec
from specsim.speculation.recorded import RecordedPaths, TraceSpec
from specsim.speculation.rounds import Rounds, RoundSource, Sequences
from specsim.speculation.sampled_rounds import SampledRounds
from specsim.speculation.sampling import acceptance_rate, correction_distribution
from specsim.speculation.sources import build_rounds
from specsim.speculation.trace import Trace, TraceHeader
from specsim.speculation.verify.rule import Verifier
from specsim.speculation.verify.token import TokenSpec, TokenVerifier
from specsim.speculation.warpers import temperature, top_k, top_p, warp

__all__ = [
    "DISTRIBUTIONS",
    "LOOKAHEAD_POLICIES",
    "VERIFIERS",
    "BuildContext",
    "ChainDraft",
    "ConditionalDistributions",
    "Confidence",
    "ConfidenceSpec",
    "Distributions",
    "Draft",
    "DraftSource",
    "ExplicitDistributions",
    "ExplicitSpec",
    "Fixed",
    "FixedSpec",
    "Heuristic",
    "HeuristicSpec",
    "LookaheadPolicy",
    "Path",
    "PathDistributions",
    "PathRounds",
    "PlainRounds",
    "Prefixes",
    "RatesDistributions",
    "RatesSpec",
    "RecordedPaths",
    "RoundSource",
    "Rounds",
    "SampledRounds",
    "Sequences",
    "Signals",
    "TokenSpec",
    "TokenVerifier",
    "Trace",
    "TraceHeader",
    "TraceSpec",
    "Verifier",
    "acceptance_rate",
    "build_rounds",
    "correction_distribution",
    "temperature",
    "top_k",
    "top_p",
    "warp",
]
