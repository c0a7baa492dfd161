"""Whether a recorded trace is what it says, and whether its replay has the law that the recording implies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation.lookahead.fixed import Fixed
from specsim.speculation.recorded import RecordedPaths
from specsim.speculation.rounds import Sequences
from specsim.speculation.sources import build_rounds
from specsim.speculation.trace import Trace
from specsim.speculation.verify.block import BlockVerifier
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
    verifier: TokenVerifier | BlockVerifier | None = None,
    *,
    num_speculative_tokens: int,
    num_repeats: int = 8,
    seed: int = 0,
) -> ReplayProof:
    """Replay a trace with sampled drafts under token or block verification.

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
        Where the trace holds no q along its path, as that of a lookup.
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
    paths: RecordedPaths, verifier: TokenVerifier | BlockVerifier, depth: int, num_repeats: int, seed: int
) -> tuple[float, float, int, int]:
    """Excess of accepted drafts over their expectation, its variance, tokens and number of rounds."""
    num_requests = paths.num_prompts * num_repeats
    caps: Ints = np.tile(np.diff(paths.trace.offsets), num_repeats)
    at_least = _block_keeps if isinstance(verifier, BlockVerifier) else _token_keeps
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
        mean, second = _moments(at_least(paths.ratios(request, at, depth)), remaining)
        excess += float((one.num_accepted[0] - mean).sum())
        variance += float((second - mean**2).sum())
        emitted += int(one.num_emitted.sum())
        count += request.size
        position[request] += one.num_emitted[0]
        request = request[~one.is_last[0]]
    return excess, variance, emitted, count


def _token_keeps(ratio: Floats) -> Floats:
    """Probability that at least 1 … K drafts are kept given the text, of q/p along it, [B, K]."""
    at_least: Floats = np.multiply.accumulate(np.minimum(ratio, 1.0), axis=1)
    return at_least


def _block_keeps(ratio: Floats) -> Floats:
    """Return the same under block verification: the least of the products of the first 0 … i ratios."""
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.log(ratio), axis=1)
    at_least: Floats = np.exp(np.minimum.accumulate(np.minimum(logs, 0.0), axis=1))
    return at_least


def _moments(kept: Floats, remaining: Ints) -> tuple[Floats, Floats]:
    """Mean and mean square of min(drafts kept, remaining), [B] each."""
    number = np.arange(1, kept.shape[1] + 1)
    at_least = np.where(number <= remaining[:, np.newaxis], kept, 0.0)
    return at_least.sum(axis=1), (at_least * (2 * number - 1)).sum(axis=1)


def _z(total: float, variance: float) -> float:
    return 0.0 if variance == 0 else total / variance**0.5
