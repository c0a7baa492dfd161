"""Sums of one arm by prompt, and the metrics that are ratios of them.

Every mean and rate is declared here once as a ratio of two sums. Its value divides the totals; its
interval divides the totals of resampled prompts. So a value and its interval cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from specsim.arrays import Bools, Floats, Ints
from specsim.errors import DomainError
from specsim.results.accounting import (
    ArmTables,
    by_row,
    chunk_gaps_s,
    divide,
    is_decode,
    request_rows,
    request_shares,
    step_energy_j,
    step_rows,
    step_time_s,
)

Sums: TypeAlias = dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A metric that is a scaled ratio of two sums."""

    numerator: str
    denominator: str
    scale: float = 1.0

    def of(self, sums: Sums) -> Floats:
        """Value for each set of sums, [sets]; NaN where the denominator is zero."""
        return self.scale * divide(sums[self.numerator], sums[self.denominator])


MEANS: dict[str, Ratio] = {
    "request_throughput": Ratio("num_requests", "occupied_s"),
    "request_goodput": Ratio("num_good_requests", "occupied_s"),
    "output_throughput": Ratio("num_output_tokens", "occupied_s"),
    "total_token_throughput": Ratio("num_tokens", "occupied_s"),
    "mean_ttft_ms": Ratio("ttft_s", "num_requests", 1e3),
    "mean_tpot_ms": Ratio("tpot_s", "num_with_tpot", 1e3),
    "mean_itl_ms": Ratio("itl_s", "num_chunks", 1e3),
    "mean_e2el_ms": Ratio("e2el_s", "num_requests", 1e3),
    "token_weighted_tpot_ms": Ratio("decode_s", "num_decode_tokens", 1e3),
    "tokens_per_round": Ratio("num_decode_tokens", "num_chunks"),
    "energy_per_token_joules": Ratio("energy_j", "num_output_tokens"),
    "usd_per_mtok": Ratio("cost_usd", "num_output_tokens", 1e6),
    "flops_per_decode_token": Ratio("decode_flops", "num_decode_tokens"),
    "spec_decode_acceptance_rate": Ratio("num_accepted", "num_drafted", 100.0),
    "accepted_per_draft": Ratio("num_accepted", "num_drafts"),
    "wasted_positions_per_token": Ratio("num_rejected", "num_decode_tokens"),
}


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Latencies of each request, [requests], s."""

    ttft_s: Floats
    e2el_s: Floats
    tpot_s: Floats
    """NaN for a request of one token, which has none."""

    @classmethod
    def of(cls, column: Callable[[str], Floats]) -> RequestTimes:
        """Return the latencies of a table of requests, given its columns by name, [requests] each."""
        arrival_s = column("arrival_s")
        ttft_s, e2el_s = column("first_token_s") - arrival_s, column("finish_s") - arrival_s
        return cls(ttft_s, e2el_s, divide(e2el_s - ttft_s, column("num_output_tokens") - 1.0))


def prompt_numbers(arm: ArmTables) -> Ints:
    """Prompts of an arm, ascending: the units of resampling."""
    return np.unique(arm.requests.ints("prompt"))


def prompt_sums(arm: ArmTables, *, slo: Mapping[str, float], draft_flops_ratio: float | None) -> Sums:
    """Add up one arm by prompt, each sum [prompts] in the order of `prompt_numbers`.

    Parameters
    ----------
    arm
        Its tables.
    slo
        Objectives such as ``{"p99_ttft_ms": 200}``; see `meets_objectives`.
    draft_flops_ratio
        Operations of a draft position ÷ those of a target position, used where the cost model
        counts none; None where it does.
    """
    requests = request_rows(arm)
    steps = step_rows(arm)
    times = RequestTimes.of(arm.requests.floats)
    tokens = arm.requests.floats("num_output_tokens")
    has_tpot = tokens > 1
    by_request: Sums = {
        "num_requests": np.ones(len(tokens)),
        "num_good_requests": meets_objectives(times, slo),
        "num_output_tokens": tokens,
        "num_tokens": tokens + arm.requests.floats("num_prompt_tokens"),
        "ttft_s": times.ttft_s,
        "e2el_s": times.e2el_s,
        "tpot_s": np.where(has_tpot, times.tpot_s, 0.0),
        "num_with_tpot": has_tpot.astype(np.float64),
        "decode_s": np.where(has_tpot, times.e2el_s - times.ttft_s, 0.0),
        "num_decode_tokens": tokens - 1.0,
        **_round_sums(arm, requests, steps),
        **_shares(arm, requests, steps, draft_flops_ratio),
    }
    numbers = prompt_numbers(arm)
    prompts = np.searchsorted(numbers, arm.requests.ints("prompt"))
    return {name: by_row(prompts, values, len(numbers)) for name, values in by_request.items()}


def totals_of(sums: Sums) -> Sums:
    """Add up each sum over all prompts, [1]."""
    return {name: values.sum(keepdims=True) for name, values in sums.items()}


def is_draft(arm: ArmTables) -> Bools:
    """Tell which rounds count as drafts: they drafted, and the recording does not end inside, [rounds]."""
    return (arm.rounds.ints("num_drafted") > 0) & ~arm.rounds.bools("is_censored")


def meets_objectives(times: RequestTimes, slo: Mapping[str, float]) -> Floats:
    """Return 1.0 for each request within the limits, as goodput counts them, [requests].

    Each of ``<statistic>_{ttft,tpot,e2el}_ms`` limits the request's own latency, whatever the
    statistic; a request of one token has no TPOT to miss. Objectives on chunk gaps (``itl``) are met
    or missed by the run as a whole and do not count here.
    """
    good = np.ones(len(times.ttft_s), np.bool_)
    latencies = {"ttft": times.ttft_s, "tpot": times.tpot_s, "e2el": times.e2el_s, "itl": None}
    for name, limit_ms in slo.items():
        quantity = name.removesuffix("_ms").rpartition("_")[2]
        if quantity not in latencies or not name.endswith("_ms"):
            raise DomainError(
                f"no latency objective '{name}' (such as p99_ttft_ms, p99_tpot_ms, p99_e2el_ms)"
            )
        latency = latencies[quantity]
        if latency is not None:
            good &= ~(latency * 1e3 > limit_ms)
    return good.astype(np.float64)


def _round_sums(arm: ArmTables, requests: Ints, steps: Ints) -> Sums:
    drafted = arm.rounds.floats("num_drafted")
    accepted = arm.rounds.floats("num_accepted")
    is_counted = is_draft(arm)
    return {
        name: by_row(requests, values, len(arm.requests))
        for name, values in (
            ("num_chunks", np.ones(len(requests))),
            ("itl_s", chunk_gaps_s(arm, requests, steps)),
            ("num_drafts", is_counted.astype(np.float64)),
            ("num_drafted", drafted * is_counted),
            ("num_accepted", accepted * is_counted),
            ("num_rejected", drafted - accepted),
        )
    }


def _shares(arm: ArmTables, requests: Ints, steps: Ints, draft_flops_ratio: float | None) -> Sums:
    busy = request_shares(arm, step_time_s(arm.steps), requests, steps)
    energy = request_shares(arm, step_energy_j(arm), requests, steps)
    total_energy = float(energy.sum()) + arm.idle_power_w * arm.idle_s
    occupied_s = divide(busy * arm.duration_s, busy.sum())
    energy_j = divide(energy * total_energy, energy.sum())
    return {
        "occupied_s": occupied_s,
        "energy_j": energy_j,
        "cost_usd": arm.tariff.usd(occupied_s, energy_j),
        "decode_flops": request_shares(
            arm, sum(step_flops(arm, draft_flops_ratio)) * is_decode(arm.steps), requests, steps
        ),
    }


def step_flops(arm: ArmTables, draft_flops_ratio: float | None) -> tuple[Floats, Floats]:
    """Operations of the draft passes and of the target pass of each step, each [steps].

    In FLOP; with a ``draft_flops_ratio``, in operations of one target position.
    """
    if draft_flops_ratio is None:
        return arm.steps.floats("draft_flops"), arm.steps.floats("target_flops")
    return arm.steps.floats("num_draft_positions") * draft_flops_ratio, arm.steps.floats("num_positions")
