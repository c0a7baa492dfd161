"""Whether a recorded trace is what it says, and whether its replay has the law that the recording implies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation.lookahead.fixed import Fixed
from specsim.speculation.recorded import RecordedPaths
from specsim.speculation.rounds import Sequences
from specsim.speculation.ruled_paths import path_law
from specsim.speculation.sources import build_rounds
from specsim.speculation.trace import Trace
from specsim.speculation.verify.rule import Verifier
from specsim.speculation.verify.token import TokenVerifier
from specsim.streams import RandomStreams

MAX_Z = 5.0
"""Standard errors beyond which a mean is wrong, and not unlucky: once in two million."""


@dataclass(frozen=True, slots=True)
class ReplayProof:
    """Two means of a trace against what they must be."""

    passed: bool
    """Both are within five standard errors."""
    acceptance_rate: float
    """Mean over the path of min(1, q/p) at its tokens."""
    overlap: float
    """Mean over the path of sum min(p, q), as recorded: the same, if the tokens were drawn from p."""
    overlap_z: float
    """Their difference in standard errors."""
    tokens_per_round: float
    """Tokens a round of the engine's replay, the final one included."""
    replay_z: float
    """Accepted tokens of the replay less their conditional expectation, in standard errors."""
    num_rounds: int
    """Rounds replayed."""


def prove_replay(
    trace: Trace,
    verifier: Verifier | None = None,
    *,
    num_speculative_tokens: int,
    num_repeats: int = 8,
    seed: int = 0,
) -> ReplayProof:
    """Replay a trace with sampled drafts under a rule that replays along a text.

    Given where a round starts, the number of drafts kept has a known mean and variance, whatever went
    before; so the excess over all rounds is a martingale, and its size says whether replay is exact.

    Parameters
    ----------
    trace
        A trace with p and q along its path.
    verifier
        The rule; token verification where absent.
    num_speculative_tokens
        Drafts a round, K.
    num_repeats
        Times that every prompt is replayed.
    seed
        Seed of the luck.

    Raises
    ------
    ConfigError
        Where the trace holds no q along its path, as that of a lookup, or the rule does not replay.
    """
    if trace.q_token is None or trace.overlap is None:
        raise ConfigError(
            "--trace: holds no q along its path (a lookup's proposals are certain): nothing to prove"
        )
    paths = RecordedPaths(trace, num_speculative_tokens=num_speculative_tokens)
    kept = np.minimum(trace.q_token.astype(float) / trace.p_token.astype(float), 1.0)
    overlap = trace.overlap.astype(float)
    excess, variance, emitted, count = _replayed(
        paths, verifier or TokenVerifier(), num_speculative_tokens, num_repeats, seed
    )
    overlap_z = _z(float((kept - overlap).sum()), float(((kept - overlap) ** 2).sum()))
    replay_z = _z(excess, variance)
    return ReplayProof(
        passed=abs(overlap_z) < MAX_Z and abs(replay_z) < MAX_Z,
        acceptance_rate=float(kept.mean()),
        overlap=float(overlap.mean()),
        overlap_z=overlap_z,
        tokens_per_round=emitted / count,
        replay_z=replay_z,
        num_rounds=count,
    )


def _replayed(
    paths: RecordedPaths, verifier: Verifier, depth: int, num_repeats: int, seed: int
) -> tuple[float, float, int, int]:
    """Excess of accepted drafts over their expectation, its variance, tokens and number of rounds."""
    num_requests = paths.num_prompts * num_repeats
    caps: Ints = np.tile(np.diff(paths.trace.offsets), num_repeats)
    keep = path_law(verifier)
    rounds = build_rounds(
        paths,
        Fixed(),
        verifier,
        streams=RandomStreams(seed),
        num_output_tokens=caps,
        num_speculative_tokens=depth,
    )
    request = np.arange(num_requests)[caps > 1]
    position: Ints = np.ones(num_requests, dtype=np.int64)
    excess, variance, emitted, count = 0.0, 0.0, 0, 0
    while request.size:
        at = position[request]
        remaining = caps[request] - at
        one = rounds.peek(Sequences(request, at, remaining), horizon=1)
        rounds.commit(1)
        known = paths.probabilities(request, at, depth)
        mean, second = _moments(keep(known.target, known.draft).cumprod(axis=1), remaining)
        excess += float((one.num_accepted[0] - mean).sum())
        variance += float((second - mean**2).sum())
        emitted += int(one.num_emitted.sum())
        count += request.size
        position[request] += one.num_emitted[0]
        request = request[~one.is_last[0]]
    return excess, variance, emitted, count


def _moments(at_least: Floats, remaining: Ints) -> tuple[Floats, Floats]:
    """Mean and mean square of min(drafts kept, remaining), [B] each; ``at_least`` 1 … K are kept, [B, K]."""
    number = np.arange(1, at_least.shape[1] + 1)
    at_least = np.where(number <= remaining[:, np.newaxis], at_least, 0.0)
    return at_least.sum(axis=1), (at_least * (2 * number - 1)).sum(axis=1)


def _z(total: float, variance: float) -> float:
    return 0.0 if variance == 0 else total / variance**0.5
