"""Acceptance of a recorded trace by domain, with intervals over prompts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specsim.arrays import Bools, Floats
from specsim.errors import ConfigError, DomainError
from specsim.results.statistics import Resampling, interval
from specsim.results.sums import Sums
from specsim.speculation.recorded import RecordedPaths
from specsim.speculation.trace import Trace
from specsim.streams import RandomStreams

ALL_DOMAINS = "all"


@dataclass(frozen=True, slots=True)
class PromptRatio:
    """A ratio of sums over prompts."""

    value: float | None
    """None where there is nothing to divide by, such as rounds of one token."""
    interval: tuple[float, float] | None
    """95 % confidence limits from resampling prompts; None from one prompt."""


@dataclass(frozen=True, slots=True)
class DomainAcceptance:
    """Acceptance in one domain."""

    domain: str
    """Domain, with the language where that is not English and the trace holds several."""
    num_prompts: int
    num_tokens: int
    """Tokens recorded."""
    num_censored: int
    """Prompts that the recording cut."""
    proposal_rate: float | None
    """Share of positions at which the draft proposes anything; 1 for models, None for texts of one token."""
    acceptance_rate: PromptRatio
    """Mean probability that a first draft token is accepted, 0 where there is none, over the positions after
    the first, which prefill emits; in a log of accepted lengths, the share of its drafts that were kept."""
    tokens_per_round: PromptRatio
    """Tokens after the first, per round of at most K drafts or as logged; one cut by the end counts whole."""


def acceptance_by_domain(
    trace: Trace, *, num_speculative_tokens: int = 4, seed: int = 0
) -> list[DomainAcceptance]:
    """Return the acceptance of each domain in order of appearance, then of all together.

    Parameters
    ----------
    trace
        The trace.
    num_speculative_tokens
        K, the most tokens that a round drafts.
    seed
        Seed of the resampling.

    Raises
    ------
    DomainError
        K below 1.
    ConfigError
        K deeper than the trace's proposals, or a trace that records neither them nor the overlap.
    """
    if num_speculative_tokens < 1:
        raise DomainError(f"num_speculative_tokens: at least 1, not {num_speculative_tokens}")
    is_log = trace.logged_drafts is not None
    sums = _sums_of_log(trace) if is_log else _sums(trace, num_speculative_tokens)
    labels = _labels(trace)
    groups = [*dict.fromkeys(labels.tolist()), ALL_DOMAINS]
    table = []
    for number, group in enumerate(groups):
        rows = np.arange(trace.num_prompts) if group == ALL_DOMAINS else np.flatnonzero(labels == group)
        ours = {name: column[rows] for name, column in sums.items()}
        (resampled,) = Resampling(len(rows), RandomStreams(seed, replication=number)).totals([ours])
        table.append(
            DomainAcceptance(
                domain=group,
                num_prompts=len(rows),
                num_tokens=int(ours["tokens"].sum()),
                num_censored=int(np.sum(trace.ended_by[rows] == "recorder")),
                proposal_rate=float(ours["proposed"].sum() / asked)
                if (asked := ours["asked"].sum())
                else None,
                acceptance_rate=_ratio(ours, resampled, "accepted", "offered", len(rows)),
                tokens_per_round=_ratio(ours, resampled, "decoded", "rounds", len(rows)),
            )
        )
    return table


def _labels(trace: Trace) -> NDArray[np.str_]:
    """Domain of each prompt, [P], with its language where the trace holds several and it is not English."""
    if len(set(trace.language.tolist())) == 1:
        return trace.domain
    pairs = zip(trace.domain.tolist(), trace.language.tolist(), strict=True)
    return np.array([domain if language == "en" else f"{domain} {language}" for domain, language in pairs])


def _sums(trace: Trace, num_speculative_tokens: int) -> Sums:
    prompts = range(trace.num_prompts)
    rounds = [expected_rounds(trace, i, num_speculative_tokens=num_speculative_tokens) for i in prompts]
    tokens = np.diff(trace.offsets).astype(float)
    first, proposed = first_acceptance(trace), has_proposal(trace).astype(float)
    for drafted in (first, proposed):
        drafted[trace.offsets[:-1]] = 0.0
    return {
        "accepted": np.add.reduceat(first, trace.offsets[:-1]),
        "offered": tokens - 1,
        "proposed": np.add.reduceat(proposed, trace.offsets[:-1]),
        "asked": tokens - 1,
        "tokens": tokens,
        "decoded": tokens - 1,
        "rounds": np.array(rounds),
    }


def _sums_of_log(trace: Trace) -> Sums:
    logged, count = trace.logged_rounds(), trace.num_prompts
    tokens = np.diff(trace.offsets).astype(float)
    rounds = np.bincount(logged.prompt, minlength=count).astype(float)
    return {
        "accepted": np.bincount(logged.prompt, logged.accepted, count),
        "offered": np.bincount(logged.prompt, logged.drafted, count),
        "proposed": np.bincount(logged.prompt, logged.drafted > 0, count),
        "asked": rounds,
        "tokens": tokens,
        "decoded": tokens - 1,
        "rounds": rounds,
    }


def first_acceptance(trace: Trace) -> Floats:
    """Probability that the first draft token of a round started at each position is accepted, [N].

    It is the sum over the vocabulary of min(p, q), whatever token the target then sampled; 0 where
    the draft proposes nothing.
    """
    if trace.p_at_proposal is not None:
        return trace.p_at_proposal[:, 0].astype(np.float64)
    if trace.overlap is not None and trace.p_at_draft_argmax is not None:
        is_greedy = trace.header.draft_sample_method == "greedy"
        return (trace.p_at_draft_argmax if is_greedy else trace.overlap).astype(np.float64)
    raise ConfigError("the trace records neither proposals nor the overlap of p and q")


def has_proposal(trace: Trace) -> Bools:
    """Whether a round started at each position drafts anything, [N]."""
    if trace.proposal_token is not None:
        return trace.proposal_token[:, 0] >= 0
    return np.ones(trace.num_tokens, dtype=np.bool_)


def expected_rounds(trace: Trace, prompt: int, *, num_speculative_tokens: int) -> float:
    """Return the mean number of rounds that emit a prompt's path after its first token, which prefill emits.

    Exact: a pass forward over the probability that a round starts at each position.
    """
    num_tokens = int(trace.offsets[prompt + 1] - trace.offsets[prompt])
    paths = RecordedPaths(
        trace,
        draft_sample_method=trace.header.draft_sample_method,
        num_speculative_tokens=num_speculative_tokens,
    )
    starts = np.arange(num_tokens)
    kept = paths.acceptance(np.full(num_tokens, prompt), starts, num_speculative_tokens)
    acceptance = np.nan_to_num(kept, nan=0.0)
    reach = np.zeros(num_tokens + num_speculative_tokens + 1)
    reach[1] = 1.0
    for start in range(1, num_tokens):
        if reach[start] > 0.0:
            alive = np.concatenate([[1.0], np.cumprod(acceptance[start])])
            stops = alive.copy()
            stops[:-1] -= alive[1:]
            reach[start + 1 : start + 2 + num_speculative_tokens] += reach[start] * stops
    return float(reach[1:num_tokens].sum())


def _ratio(totals: Sums, resampled: Sums, numerator: str, denominator: str, num_prompts: int) -> PromptRatio:
    below = totals[denominator].sum()
    if below == 0:
        return PromptRatio(None, None)
    with np.errstate(invalid="ignore"):
        ratios = resampled[numerator] / resampled[denominator]
    return PromptRatio(float(totals[numerator].sum() / below), interval(ratios, num_prompts))
