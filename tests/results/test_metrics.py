"""Metrics: the exact identities between them, their definitions, and what is left undefined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specsim.errors import DomainError
from specsim.results import SimulationResult
from specsim.results.accounting import ArmTables, chunk_gaps_s, partition, request_rows, step_rows
from specsim.results.sums import prompt_sums
from specsim.results.table import Table
from tests.constant_cost import DRAFT_FLOPS, TARGET_FLOPS, ClosedLoop


@st.composite
def closed_loops(draw: st.DrawFn, *, max_lookahead: int = 4) -> ClosedLoop:
    tokens = draw(st.lists(st.integers(1, 25), min_size=1, max_size=8))
    prompts = draw(st.lists(st.integers(0, 3), min_size=len(tokens), max_size=len(tokens)))
    return ClosedLoop(
        output_tokens=tuple(tokens),
        prompts=tuple(prompts),
        acceptance=tuple(draw(st.lists(st.floats(0, 1), min_size=1, max_size=3))),
        batch=draw(st.integers(1, 4)),
        lookahead=draw(st.integers(0, max_lookahead)),
        seed=draw(st.integers(0, 1000)),
    )


def metrics(loop: ClosedLoop, arm: str = "speculation", **changes: Any) -> dict[str, Any]:
    found = loop.result(**changes).summary()
    return found["baseline"] if arm == "baseline" else found["speculation"] or {}


@given(closed_loops())
@settings(max_examples=25, deadline=None)
def test_acceptance_length_is_one_plus_the_sum_of_the_per_position_rates(loop: ClosedLoop) -> None:
    found = metrics(loop)
    rates = found["spec_decode_per_position_acceptance_rates"]
    if found["spec_decode_num_drafts"] == 0:
        assert found["spec_decode_acceptance_length"] is None
        assert rates == []
    else:
        assert len(rates) == loop.lookahead
        assert found["spec_decode_acceptance_length"] == pytest.approx(1 + sum(rates), rel=1e-12)


@given(closed_loops())
@settings(max_examples=25, deadline=None)
def test_tokens_per_decode_step_are_mean_itl_over_token_weighted_tpot(loop: ClosedLoop) -> None:
    result = loop.result()
    found = result.summary()["speculation"] or {}
    num_rounds = len(result.arm("speculation").rounds)
    num_decoded = sum(tokens - 1 for tokens in loop.output_tokens)
    if num_decoded == 0:
        assert found["mean_itl_ms"] is None
        assert found["token_weighted_tpot_ms"] is None
    else:
        ratio = found["mean_itl_ms"] / found["token_weighted_tpot_ms"]
        assert ratio == pytest.approx(num_decoded / num_rounds, rel=1e-9)
        assert found["tokens_per_round"] == pytest.approx(num_decoded / num_rounds, rel=1e-12)


@given(closed_loops(), st.integers(2, 20))
@settings(max_examples=25, deadline=None)
def test_equal_lengths_make_mean_tpot_token_weighted(loop: ClosedLoop, tokens: int) -> None:
    equal = ClosedLoop(
        output_tokens=(tokens,) * len(loop.prompts), prompts=loop.prompts, acceptance=loop.acceptance
    )
    found = metrics(equal)
    assert found["mean_tpot_ms"] == pytest.approx(found["token_weighted_tpot_ms"], rel=1e-12)


def test_uncut_rounds_that_all_draft_make_tokens_per_round_the_acceptance_length() -> None:
    found = metrics(ClosedLoop(output_tokens=(1 + 4 * 5,) * 8, acceptance=(1.0,), lookahead=3))
    assert found["spec_decode_acceptance_length"] == pytest.approx(4.0, rel=1e-12)
    assert found["tokens_per_round"] == pytest.approx(4.0, rel=1e-12)


@given(closed_loops(max_lookahead=5))
@settings(max_examples=25, deadline=None)
def test_accepted_over_drafted_is_the_acceptance_length_less_one_over_k(loop: ClosedLoop) -> None:
    found = metrics(loop)
    if found["spec_decode_num_drafts"]:
        expected = 100 * (found["spec_decode_acceptance_length"] - 1) / loop.lookahead
        assert found["spec_decode_acceptance_rate"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        drafted = found["spec_decode_num_draft_tokens"]
        assert drafted == loop.lookahead * found["spec_decode_num_drafts"]


@given(closed_loops())
@settings(max_examples=25, deadline=None)
def test_energy_time_and_operations_are_partitioned(loop: ClosedLoop) -> None:
    result = loop.result()
    found = result.summary()["speculation"] or {}
    arm = result.arm("speculation")
    energy = arm.steps.floats("draft_energy_j") + arm.steps.floats("target_energy_j")
    flops = arm.steps.floats("draft_flops") + arm.steps.floats("target_flops")
    parts: Any = found["energy_joules"]
    assert found["total_energy_joules"] == pytest.approx(energy.sum() + 70 * arm.idle_s, rel=1e-12)
    assert sum(parts.values()) == pytest.approx(found["total_energy_joules"], rel=1e-12)
    assert all(part >= 0 for part in parts.values())
    spans: Any = found["time_seconds"]
    assert sum(spans.values()) == pytest.approx(found["duration"], rel=1e-9)
    operations: Any = found["operations_flops"]
    assert sum(operations.values()) == pytest.approx(flops.sum(), rel=1e-12)


@given(closed_loops())
@settings(max_examples=25, deadline=None)
def test_prompts_share_out_the_whole_of_time_energy_and_operations(loop: ClosedLoop) -> None:
    arm = loop.result().arm("speculation")
    sums = prompt_sums(arm, slo={}, draft_flops_ratio=None)
    decode = arm.steps.labels("phase").rows("decode")
    flops = arm.steps.floats("draft_flops") + arm.steps.floats("target_flops")
    energy = arm.steps.floats("draft_energy_j") + arm.steps.floats("target_energy_j")
    assert sums["occupied_s"].sum() == pytest.approx(arm.duration_s, rel=1e-12)
    assert sums["energy_j"].sum() == pytest.approx(energy.sum() + 70 * arm.idle_s, rel=1e-12)
    assert sums["decode_flops"].sum() == pytest.approx(flops[decode].sum(), rel=1e-12)
    assert len(sums["occupied_s"]) == len(set(loop.prompts))


@given(closed_loops())
@settings(max_examples=25, deadline=None)
def test_chunk_gaps_of_a_request_add_up_to_its_decode_time(loop: ClosedLoop) -> None:
    arm = loop.result().arm("speculation")
    rows = request_rows(arm)
    gaps = chunk_gaps_s(arm, rows, step_rows(arm))
    decode = arm.requests.floats("finish_s") - arm.requests.floats("first_token_s")
    assert np.bincount(rows, gaps, len(decode)) == pytest.approx(decode, rel=1e-9, abs=1e-12)
    assert (gaps > 0).all()


@given(closed_loops())
@settings(max_examples=20, deadline=None)
def test_without_drafting_both_arms_are_equal(loop: ClosedLoop) -> None:
    still = ClosedLoop(loop.output_tokens, loop.prompts, loop.acceptance, loop.batch, lookahead=0)
    summary = still.result().summary()
    speculation = summary["speculation"] or {}
    assert {name: speculation[name] for name in summary["baseline"]} == summary["baseline"]
    assert summary["speedup"] is not None
    assert summary["speedup"]["throughput"]["mean"] == 1.0


def test_tpot_leaves_out_requests_of_one_token() -> None:
    loop = ClosedLoop(output_tokens=(1, 5), prompts=(0, 1), batch=2)
    requests = loop.result().requests.query("arm == 'baseline' and request == 1").iloc[0]
    expected = (requests.finish_s - requests.first_token_s) / 4
    found = metrics(loop, "baseline")
    assert found["mean_tpot_ms"] == pytest.approx(1e3 * expected, rel=1e-12)
    assert found["p99_tpot_ms"] == pytest.approx(1e3 * expected, rel=1e-12)


def test_only_one_token_requests_leave_tpot_and_itl_undefined() -> None:
    summary = ClosedLoop(output_tokens=(1, 1), prompts=(0, 1)).result().summary()
    assert summary["baseline"]["mean_tpot_ms"] is None
    assert summary["baseline"]["p99_itl_ms"] is None
    assert summary["verdict"]["pays"] is None
    assert summary["verdict"]["text"].startswith("Undecided: no request has more than one token")


def test_throughputs_are_totals_over_the_makespan() -> None:
    found = metrics(ClosedLoop())
    for name, total in (
        ("output_throughput", found["total_output_tokens"]),
        ("request_throughput", found["completed"]),
        ("total_token_throughput", found["total_input_tokens"] + found["total_output_tokens"]),
    ):
        assert found[name] == pytest.approx(total / found["duration"], rel=1e-12)


def test_goodput_counts_requests_within_every_limit() -> None:
    loop = ClosedLoop(output_tokens=(5, 20, 1), prompts=(0, 1, 2), batch=1)
    frame = loop.result().requests.query("arm == 'baseline'")
    slowest = 1e3 * float((frame.finish_s - frame.arrival_s).max())
    found = metrics(loop, "baseline", slo={"p99_e2el_ms": slowest - 1.0, "mean_ttft_ms": 1e6})
    assert found["request_goodput"] == pytest.approx(2 / found["duration"], rel=1e-12)
    assert "request_goodput" not in metrics(loop, "baseline")


def test_goodput_lets_a_request_of_one_token_pass_a_tpot_objective() -> None:
    found = metrics(ClosedLoop(output_tokens=(1, 9), prompts=(0, 1)), "baseline", slo={"p99_tpot_ms": 1e-6})
    assert found["request_goodput"] == pytest.approx(1 / found["duration"], rel=1e-12)


@pytest.mark.parametrize("name", ["p99_tpot", "p99_speed_ms", "tpot_s"])
def test_an_objective_on_no_latency_is_refused(name: str) -> None:
    with pytest.raises(DomainError, match=f"no latency objective '{name}'"):
        metrics(ClosedLoop(), slo={name: 1.0})


def test_percentiles_interpolate_linearly_between_order_statistics() -> None:
    found = metrics(ClosedLoop(output_tokens=(5, 9, 17, 30), prompts=(0, 1, 2, 3), batch=1), "baseline")
    frame = ClosedLoop(output_tokens=(5, 9, 17, 30), prompts=(0, 1, 2, 3), batch=1).result().requests
    e2el = sorted(1e3 * (row.finish_s - row.arrival_s) for row in frame.itertuples() if row.arm == "baseline")
    assert found["p90_e2el_ms"] == pytest.approx(e2el[2] + 0.7 * (e2el[3] - e2el[2]), rel=1e-12)
    assert found["median_e2el_ms"] == pytest.approx((e2el[1] + e2el[2]) / 2, rel=1e-12)


def test_operations_factor_matches_leviathan_theorem_3_11() -> None:
    loop = ClosedLoop(output_tokens=(400,) * 60, prompts=tuple(range(60)), acceptance=(0.8,), lookahead=5)
    alpha, gamma, ratio = 0.8, 5, DRAFT_FLOPS / TARGET_FLOPS
    expected = (1 - alpha) * (gamma * ratio + gamma + 1) / (1 - alpha ** (gamma + 1))
    assert metrics(loop)["operations_factor"] == pytest.approx(expected, rel=0.02)


def test_operations_factor_without_draft_arithmetic_is_480_percent_at_a_low_acceptance() -> None:
    loop = ClosedLoop(output_tokens=(400,) * 60, prompts=tuple(range(60)), acceptance=(0.2,), lookahead=5)
    assert metrics(loop, draft_flops_ratio=0.0)["operations_factor"] == pytest.approx(4.80, rel=0.01)


@given(closed_loops())
@settings(max_examples=20, deadline=None)
def test_operations_factor_by_positions_equals_that_by_flops(loop: ClosedLoop) -> None:
    by_flops = metrics(loop)["operations_factor"]
    by_positions = metrics(loop, draft_flops_ratio=DRAFT_FLOPS / TARGET_FLOPS)["operations_factor"]
    assert by_flops == (None if by_positions is None else pytest.approx(by_positions, rel=1e-12))


def test_wasted_positions_are_the_rejected_ones_per_decoded_token() -> None:
    result = ClosedLoop().result()
    rounds = result.rounds.query("arm == 'speculation'")
    rejected = (rounds.num_drafted - rounds.num_accepted).sum()
    found = result.summary()["speculation"] or {}
    assert found["wasted_positions_per_token"] == pytest.approx(
        rejected / rounds.num_emitted.sum(), rel=1e-12
    )


def test_censored_rounds_do_not_count_in_the_acceptance_but_in_the_time() -> None:
    result = ClosedLoop().result()
    rounds = result.rounds
    last = rounds.index[rounds.arm == "speculation"][-1]
    columns = {name: result.tables.rounds.values(name) for name in rounds.columns}
    censored = rounds.is_censored.to_numpy(copy=True)
    censored[last] = True
    tables = type(result.tables)(
        result.tables.requests,
        result.tables.steps,
        Table(result.tables.rounds.columns, {**columns, "is_censored": censored}),
    )
    before = result.summary()["speculation"] or {}
    cut = ClosedLoop().result(tables=tables).summary()
    after = cut["speculation"] or {}
    assert after["spec_decode_num_drafts"] == before["spec_decode_num_drafts"] - 1
    assert after["mean_itl_ms"] == before["mean_itl_ms"]
    assert "Rounds in which a recording ends, not counted in the acceptance: 1." in " ".join(
        cut["known_limitations"]
    )


def test_a_pass_that_drafted_nothing_is_wasted_altogether() -> None:
    arm = _one_step_arm(num_drafted=0, num_accepted=0, num_positions=2)
    parts = partition(arm.steps, np.array([1.0]), np.array([3.0]), idle=0.5)
    assert parts == {"prefill": 0.0, "draft": 0.0, "verify_accepted": 3.0, "wasted": 1.0, "idle": 0.5}


def test_energy_is_shared_by_drafted_tokens_and_by_verified_positions() -> None:
    arm = _one_step_arm(num_drafted=4, num_accepted=3, num_positions=5)
    parts = partition(arm.steps, np.array([4.0]), np.array([10.0]), idle=0.0)
    assert parts == pytest.approx(
        {"prefill": 0.0, "draft": 3.0, "verify_accepted": 8.0, "wasted": 3.0, "idle": 0.0}
    )


def test_time_outside_steps_is_idle_and_costs_idle_power() -> None:
    result = ClosedLoop(batch=1).result()
    requests = result.tables.requests
    columns = {column.name: requests.values(column.name) for column in requests.columns}
    late = {"arrival_s": requests.floats("arrival_s") + 1.0, "finish_s": requests.floats("finish_s") + 3.0}
    tables = type(result.tables)(
        Table(requests.columns, {**columns, **late}),
        result.tables.steps,
        result.tables.rounds,
    )
    found = metrics(ClosedLoop(batch=1), "baseline", tables=tables)
    assert found["time_seconds"]["idle"] == pytest.approx(2.0, rel=1e-9)
    assert found["energy_joules"]["idle"] == pytest.approx(140.0, rel=1e-9)


def test_limit_fraction_is_the_limit_of_decode_steps_over_their_time() -> None:
    found = metrics(ClosedLoop())
    assert found["limit_fraction"] == pytest.approx(0.5, rel=1e-12)
    assert found["energy_limit_fraction"] == pytest.approx(0.25, rel=1e-12)


def test_limits_per_token_are_those_of_the_steps_that_emit_it() -> None:
    found = metrics(ClosedLoop(output_tokens=(30,), prompts=(0,)))
    decode_ms = 1e3 * (found["time_seconds"]["draft"] + found["time_seconds"]["verify_accepted"])
    decode_ms += 1e3 * found["time_seconds"]["wasted"]
    # The loop's limits are half of its time, a quarter of its joules.
    assert found["limit_ms_per_token"] == pytest.approx(0.5 * decode_ms / 29, rel=1e-9)
    joules = sum(found["energy_joules"].values()) - found["energy_joules"]["prefill"]
    assert found["limit_joules_per_token"] == pytest.approx(0.25 * joules / 29, rel=1e-9)
    assert found["device_limit_joules_per_token"] is None


def _one_step_arm(**counts: int) -> ArmTables:
    result: SimulationResult = ClosedLoop(output_tokens=(2,), prompts=(0,)).result()
    steps = result.arm("speculation").steps.where("phase", "decode")
    columns = {column.name: steps.values(column.name) for column in steps.columns}
    for name, count in counts.items():
        columns[name] = np.array([count])
    return ArmTables(
        result.tables.requests,
        Table(steps.columns, columns),
        result.tables.rounds,
        0.0,
    )
