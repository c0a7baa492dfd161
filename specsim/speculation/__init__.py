"""Speculative decoding: distributions, draft sources, verification rules, lookahead policies, rounds."""

from specsim.speculation.chain import ChainDraft, ChainSpec
from specsim.speculation.distributions import (
    ConditionalDistributions,
    Distributions,
    Path,
    PathDistributions,
    PathProbabilities,
    Prefixes,
    Signals,
)
from specsim.speculation.draft import Draft, DraftSource, Siblings
from specsim.speculation.dynamic_tree import DynamicTreeDraft, DynamicTreeSpec
from specsim.speculation.explicit import ExplicitDistributions, ExplicitSpec
from specsim.speculation.independent_chains import IndependentChainsDraft, IndependentChainsSpec
from specsim.speculation.kinds import (
    DISTRIBUTIONS,
    DRAFT_SOURCES,
    LOOKAHEAD_POLICIES,
    VERIFIERS,
    BuildContext,
)
from specsim.speculation.live import LiveSpec
from specsim.speculation.lookahead.confidence import Confidence, ConfidenceSpec
from specsim.speculation.lookahead.fixed import Fixed, FixedSpec
from specsim.speculation.lookahead.heuristic import Heuristic, HeuristicSpec
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.lookup import LookupDraft, LookupSpec
from specsim.speculation.ngram import NgramPair, NgramSpec
from specsim.speculation.path_rounds import PathRounds
from specsim.speculation.plain_rounds import PlainRounds
from specsim.speculation.rates import RatesDistributions, RatesSpec
from specsim.speculation.recorded import RecordedPaths, TraceSpec
from specsim.speculation.rounds import Rounds, RoundSource, Sequences
from specsim.speculation.sampled_rounds import SampledRounds
from specsim.speculation.sampling import acceptance_rate, correction_distribution
from specsim.speculation.sources import build_rounds
from specsim.speculation.trace import Trace, TraceHeader
from specsim.speculation.tree import SequoiaSpec, TreeDraft, TreeSpec
from specsim.speculation.tree_shape import TreeShape, best_tree, optimal_tree
from specsim.speculation.verify.block import BlockSpec, BlockVerifier
from specsim.speculation.verify.candidates import CandidatesSpec, CandidatesVerifier
from specsim.speculation.verify.greedy import GreedySpec, GreedyVerifier
from specsim.speculation.verify.kseq import KSeqSpec, KSeqVerifier
from specsim.speculation.verify.lenience import LenienceSpec, LenienceVerifier
from specsim.speculation.verify.optimal import OptimalSpec, OptimalVerifier, optimal_acceptance
from specsim.speculation.verify.recursive import RecursiveSpec, RecursiveVerifier
from specsim.speculation.verify.rule import PathVerifier, Verifier
from specsim.speculation.verify.sampler_match import SamplerMatchSpec, SamplerMatchVerifier
from specsim.speculation.verify.token import TokenSpec, TokenVerifier
from specsim.speculation.verify.typical import TypicalSpec, TypicalVerifier
from specsim.speculation.warpers import temperature, top_k, top_p, warp

__all__ = [
    "DISTRIBUTIONS",
    "DRAFT_SOURCES",
    "LOOKAHEAD_POLICIES",
    "VERIFIERS",
    "BlockSpec",
    "BlockVerifier",
    "BuildContext",
    "CandidatesSpec",
    "CandidatesVerifier",
    "ChainDraft",
    "ChainSpec",
    "ConditionalDistributions",
    "Confidence",
    "ConfidenceSpec",
    "Distributions",
    "Draft",
    "DraftSource",
    "DynamicTreeDraft",
    "DynamicTreeSpec",
    "ExplicitDistributions",
    "ExplicitSpec",
    "Fixed",
    "FixedSpec",
    "GreedySpec",
    "GreedyVerifier",
    "Heuristic",
    "HeuristicSpec",
    "IndependentChainsDraft",
    "IndependentChainsSpec",
    "KSeqSpec",
    "KSeqVerifier",
    "LenienceSpec",
    "LenienceVerifier",
    "LiveSpec",
    "LookaheadPolicy",
    "LookupDraft",
    "LookupSpec",
    "NgramPair",
    "NgramSpec",
    "OptimalSpec",
    "OptimalVerifier",
    "Path",
    "PathDistributions",
    "PathProbabilities",
    "PathRounds",
    "PathVerifier",
    "PlainRounds",
    "Prefixes",
    "RatesDistributions",
    "RatesSpec",
    "RecordedPaths",
    "RecursiveSpec",
    "RecursiveVerifier",
    "RoundSource",
    "Rounds",
    "SampledRounds",
    "SamplerMatchSpec",
    "SamplerMatchVerifier",
    "Sequences",
    "SequoiaSpec",
    "Siblings",
    "Signals",
    "TokenSpec",
    "TokenVerifier",
    "Trace",
    "TraceHeader",
    "TraceSpec",
    "TreeDraft",
    "TreeShape",
    "TreeSpec",
    "TypicalSpec",
    "TypicalVerifier",
    "Verifier",
    "acceptance_rate",
    "best_tree",
    "build_rounds",
    "correction_distribution",
    "optimal_acceptance",
    "optimal_tree",
    "temperature",
    "top_k",
    "top_p",
    "warp",
]
