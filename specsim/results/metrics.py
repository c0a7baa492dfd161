"""Metrics of one arm, under the names and units of ``vllm bench serve``.

Definitions. TPOT of a request = (E2EL - TTFT) / (tokens - 1); a request of one token has none. ITL =
time between chunks, one chunk a verify step. Percentiles interpolate linearly between order statistics
(Hyndman and Fan 1996, type 7). Standard deviations are those of the population. A round counts as a
draft if it drafted at least one token and the recording does not end inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from specsim.arrays import Floats
from specsim.results.accounting import (
    PARTS,
    ArmTables,
    chunk_gaps_s,
    is_decode,
    partition,
    request_rows,
    step_energy_j,
    step_rows,
    step_time_s,
)
from specsim.results.sums import MEANS, RequestTimes, Sums, is_draft, step_flops, totals_of

Metric: TypeAlias = int | float | str | list[float] | Mapping[str, float | None] | None
Metrics: TypeAlias = dict[str, Metric]

DEFINITIONS: dict[str, str] = {
    "tpot": "(e2el - ttft) / (tokens - 1) of each request, a mean over requests; "
    "token_weighted_tpot_ms divides the sums over requests",
    "itl": "time between chunks of a request, one chunk per verify step; other tools report time per token "
    "under this name",
    "percentiles": "linear interpolation between order statistics (Hyndman and Fan 1996, type 7)",
    "spec_decode_acceptance_rate": "accepted / drafted tokens, percent; drafts past the end of a sequence "
    "count as drafted",
    "spec_decode_acceptance_length": "1 + accepted / rounds that draft",
    "limit_fraction": "physical limit of the decode steps at datasheet peaks / their simulated time; "
    "energy_limit_fraction the same of joules",
    "limit_ms_per_token": "physical limit of the decode steps that a sequence is in / the tokens it emits in "
    "them: (sum of the draft passes' limits + that of verification) / tokens per round; "
    "limit_joules_per_token the same of a step's joules / all its tokens, by the boards' own joules per "
    "byte and operation; device_limit_joules_per_token by those of the chips alone, a floor",
    "energy_joules": "drafted tokens share a draft pass, verified positions a target pass; rejected ones are "
    "wasted",
    "guessed_energy_fraction": "share of the joules that guessed watts contribute: with these at half or "
    "twice what was guessed, joules are 1 - share / 2 or 1 + share times as many",
    "usd_per_mtok": "US dollars a million output tokens: for all devices of an arm, those that draft or wait "
    "included, from the first arrival to the last token; electricity too where it is priced apart",
    "operations_factor": "operations per decoded token / those of the baseline (Leviathan et al. 2023, "
    "Theorem 3.11)",
    "intervals": "95 %, paired cluster bootstrap over prompts, 2000 resamples, expanded percentiles",
}


def arm_metrics(
    arm: ArmTables,
    sums: Sums,
    *,
    slo: Mapping[str, float],
    draft_flops_ratio: float | None,
    method: str,
    guessed_energy_fraction: float,
) -> Metrics:
    """Metrics of one arm that do not depend on the other; NaN marks the undefined and the unknown.

    Parameters
    ----------
    arm
        Its tables.
    sums
        Its sums by prompt, [prompts].
    slo
        Objectives; without any there is no goodput.
    draft_flops_ratio
        As in `specsim.results.sums.prompt_sums`.
    method
        How energy was measured, in words.
    guessed_energy_fraction
        Share of the joules that guessed watts contribute, those that are withheld included.
    """
    totals = totals_of(sums)
    means = {name: float(ratio.of(totals)[0]) for name, ratio in MEANS.items()}
    energy = _energy_parts(arm)
    throughputs = ["request_throughput", "request_goodput", "output_throughput", "total_token_throughput"]
    if not slo:
        throughputs.remove("request_goodput")
    return {
        "completed": len(arm.requests),
        "duration": arm.duration_s,
        "total_input_tokens": int(arm.requests.ints("num_prompt_tokens").sum()),
        "total_output_tokens": int(arm.requests.ints("num_output_tokens").sum()),
        **{name: means[name] for name in throughputs},
        **_latencies(arm, means),
        "token_weighted_tpot_ms": means["token_weighted_tpot_ms"],
        "tokens_per_round": means["tokens_per_round"],
        "mean_decode_batch": _mean_decode_batch(arm),
        "total_energy_joules": sum(energy.values()),
        "energy_per_token_joules": means["energy_per_token_joules"],
        "usd_per_mtok": means["usd_per_mtok"],
        "static_power_baseline_watts": arm.idle_power_w,
        "measurement_method": method,
        "guessed_energy_fraction": guessed_energy_fraction,
        "limit_fraction": _limit_fraction(arm, "limit_s", step_time_s(arm.steps)),
        "energy_limit_fraction": _limit_fraction(arm, "limit_j", step_energy_j(arm)),
        **_limits_per_token(arm),
        "energy_joules": energy,
        "time_seconds": partition(
            arm.steps, arm.steps.floats("draft_s"), arm.steps.floats("target_s"), idle=arm.idle_s
        ),
        "operations_flops": _operation_parts(arm, draft_flops_ratio),
    }


def acceptance_metrics(arm: ArmTables, sums: Sums, *, num_speculative_tokens: int) -> Metrics:
    """``spec_decode_*`` of the speculative arm; censored rounds are left out.

    The per-position rates are unconditional: rounds that kept the token of this depth ÷ rounds that draft.
    """
    accepted = arm.rounds.ints("num_accepted")[is_draft(arm)]
    totals = totals_of(sums)
    num_drafts = len(accepted)
    kept = np.bincount(accepted, minlength=num_speculative_tokens + 1)
    at_least = np.cumsum(kept[::-1])[::-1][1:]
    return {
        "spec_decode_acceptance_rate": float(MEANS["spec_decode_acceptance_rate"].of(totals)[0]),
        "spec_decode_acceptance_length": 1.0 + float(MEANS["accepted_per_draft"].of(totals)[0]),
        "spec_decode_per_position_acceptance_rates": (at_least / num_drafts).tolist() if num_drafts else [],
        "spec_decode_num_drafts": num_drafts,
        "spec_decode_num_draft_tokens": int(totals["num_drafted"][0]),
        "spec_decode_num_accepted_tokens": int(accepted.sum()),
    }


def _latencies(arm: ArmTables, means: dict[str, float]) -> dict[str, float]:
    times = RequestTimes.of(arm.requests.floats)
    gaps = chunk_gaps_s(arm, request_rows(arm), step_rows(arm))
    tpot = times.tpot_s[~np.isnan(times.tpot_s)]
    found: dict[str, float] = {}
    for name, values in (("ttft", times.ttft_s), ("tpot", tpot), ("itl", gaps), ("e2el", times.e2el_s)):
        found[f"mean_{name}_ms"] = means[f"mean_{name}_ms"]
        found |= _spread(name, values * 1e3)
    return found


def _spread(name: str, values_ms: Floats) -> dict[str, float]:
    if len(values_ms) == 0:
        return dict.fromkeys(
            (f"{which}_{name}_ms" for which in ("median", "std", "p90", "p99")), float("nan")
        )
    median, p90, p99 = np.percentile(values_ms, [50, 90, 99]).tolist()
    return {
        f"median_{name}_ms": median,
        f"std_{name}_ms": float(values_ms.std()),
        f"p90_{name}_ms": p90,
        f"p99_{name}_ms": p99,
    }


def _mean_decode_batch(arm: ArmTables) -> float:
    """Sequences in a decode step, averaged over the time of decode steps."""
    weight = step_time_s(arm.steps) * is_decode(arm.steps)
    total = float(weight.sum())
    return float(arm.steps.floats("num_sequences") @ weight) / total if total else float("nan")


def _energy_parts(arm: ArmTables) -> dict[str, float]:
    draft, target = arm.steps.floats("draft_energy_j"), arm.steps.floats("target_energy_j")
    if not np.any(draft + target):
        return dict.fromkeys(PARTS, float("nan"))
    return partition(arm.steps, draft, target, idle=arm.idle_power_w * arm.idle_s)


def _operation_parts(arm: ArmTables, draft_flops_ratio: float | None) -> dict[str, float]:
    draft, target = step_flops(arm, None)
    if draft_flops_ratio is not None or not np.any(target):
        return dict.fromkeys(PARTS, float("nan"))
    return partition(arm.steps, draft, target, idle=0.0)


def _limits_per_token(arm: ArmTables) -> dict[str, float]:
    """Limits of a decoded token: of time for the sequence that it belongs to, of joules over the batch."""
    steps = arm.steps
    decode = is_decode(steps)
    tokens = float(steps.floats("num_emitted") @ decode)
    amounts = {
        "limit_ms_per_token": 1e3 * steps.floats("limit_s") * steps.floats("num_sequences"),
        "limit_joules_per_token": steps.floats("limit_j"),
        "device_limit_joules_per_token": steps.floats("device_limit_j"),
    }
    bounds = {name: float(amount @ decode) for name, amount in amounts.items()}
    return {name: bound / tokens if bound and tokens else float("nan") for name, bound in bounds.items()}


def _limit_fraction(arm: ArmTables, limit: str, spent: Floats) -> float:
    decode = is_decode(arm.steps)
    bound, total = float(arm.steps.floats(limit) @ decode), float(spent @ decode)
    return bound / total if bound and total else float("nan")
