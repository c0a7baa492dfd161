"""What the package promises: its public names."""

from __future__ import annotations

import specsim.speculation


def test_the_public_names_are_these_and_exist() -> None:
    assert specsim.speculation.__all__ == [
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
    assert all(hasattr(specsim.speculation, name) for name in specsim.speculation.__all__)
