"""Comparisons: what changed, by how much, how sure, and whether it may be merged."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.engine.simulate import simulate
from specsim.errors import ConfigError
from specsim.results.schema import PROMPTS
from specsim.scenario import load_scenario
from specsim.streams import RandomStreams
from specsim.sweep import Repeats, SweepJob, SweepTable, in_process
from specsim.sweep.changes import Change, changes
from specsim.sweep.compare import Comparison, Delta, NamedRun, compare_runs
from specsim.sweep.compare_sweeps import compare_sweeps
from specsim.sweep.gates import parse_gate
from specsim.sweep.outcome import Figure
from specsim.sweep.paired import KeptTables, change_intervals, other_prompts
from tests.sweep.small import RATES, SMALL

POPULATION = ("workload.num_prompts=40", "workload.max_concurrency=1", "workload.output_tokens_stdev=10")


def _named(name: str, *settings: str) -> NamedRun:
    result = simulate(load_scenario(SMALL, overrides=[*POPULATION, *settings]))
    return NamedRun(name, result.summary(), KeptTables(result.requests, result.prompts))


REFERENCE = _named("a")
FASTER = _named("b", "hardware.target.draft_cost_ratio=0.05")
OTHER_SEED = _named("c", "seed=1", "hardware.target.draft_cost_ratio=0.05")


def _delta(comparison: Comparison, metric: str) -> Delta:
    return next(delta for delta in comparison.deltas if delta.metric == metric)


def test_a_key_that_differs_is_named_with_both_values() -> None:
    found = compare_runs(REFERENCE, FASTER)
    assert found.changes == (Change("hardware.target.draft_cost_ratio", "0.1", "0.05"),)


def test_another_device_is_told_by_its_name_alone() -> None:
    old = {"hardware": {"target": {"name": "h100", "cap_w": 700.0}}, "name": "x"}
    new = {"hardware": {"target": {"name": "l4", "cap_w": 72.0}}, "name": "y"}
    assert changes(old, new) == [Change("hardware.target", "h100", "l4")]


def test_values_that_come_go_or_change_their_kind_are_told() -> None:
    old = {"a": None, "b": [1, 2], "c": {"name": "n", "x": 1}, "d": True}
    new = {"a": {"x": 1}, "b": [1, 3], "c": "target", "e": 1}
    assert changes(old, new) == [
        Change("a", None, '{"x": 1}'),
        Change("b", "[1, 2]", "[1, 3]"),
        Change("c", "n", "target"),
        Change("d", "true", None),
        Change("e", None, "1"),
    ]


@given(
    st.recursive(
        st.integers(), lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=4), max_leaves=9
    )
)
def test_nothing_differs_from_itself(tree: object) -> None:
    assert changes({"x": tree}, {"x": tree}) == []  # type: ignore[dict-item]


def test_a_run_against_itself_does_not_change_and_its_interval_is_nothing_wide() -> None:
    found = compare_runs(REFERENCE, REFERENCE)
    assert all(delta.change in (0.0, None) for delta in found.deltas)
    assert _delta(found, "speculation.mean_tpot_ms").low == 0.0
    assert _delta(found, "speculation.mean_tpot_ms").high == 0.0


def test_changes_are_those_of_the_summaries() -> None:
    delta = _delta(compare_runs(REFERENCE, FASTER), "speculation.p99_e2el_ms")
    assert REFERENCE.summary["speculation"] is not None
    assert delta.before == REFERENCE.summary["speculation"]["p99_e2el_ms"]
    assert delta.change == pytest.approx(delta.after / delta.before - 1)


@pytest.mark.parametrize(
    "metric", ["speedup.tpot", "speedup.e2el", "speculation.mean_tpot_ms", "speculation.p90_tpot_ms"]
)
def test_an_interval_holds_its_change(metric: str) -> None:
    delta = _delta(compare_runs(REFERENCE, FASTER), metric)
    assert delta.low is not None
    assert delta.high is not None
    assert delta.change is not None
    assert delta.low <= delta.change <= delta.high


def test_pairing_by_prompt_narrows_the_interval() -> None:
    paired, unpaired = (
        change_intervals(REFERENCE.tables, FASTER.tables, RandomStreams(0), is_paired=is_paired)
        for is_paired in (True, False)
    )
    for metric in ("speculation.mean_tpot_ms", "baseline.mean_e2el_ms"):
        widths = [limits[metric].high - limits[metric].low for limits in (paired, unpaired)]
        assert widths[0] < 0.5 * widths[1]


def test_runs_of_the_same_prompts_are_paired() -> None:
    found = compare_runs(REFERENCE, FASTER)
    assert found.is_paired is True
    assert found.basis == "95% intervals over the 40 prompts of both runs, paired prompt by prompt"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (("seed=1",), "their prompts are drawn from two seeds, 0 and 1"),
        (("workload.num_prompts=9",), "one has 40 requests, the other 9"),
        (("workload.prompt_tokens=5",), "the lengths of the prompts differ"),
    ],
)
def test_runs_of_other_prompts_are_not_paired_and_the_reason_is_told(
    settings: tuple[str, ...], why: str
) -> None:
    found = compare_runs(REFERENCE, _named("d", *settings))
    assert found.is_paired is False
    assert found.basis.endswith(f"not paired: {why}")


def test_prompts_of_two_recordings_are_not_paired_though_they_are_numbered_alike() -> None:
    summary = copy.deepcopy(REFERENCE.summary)
    summary["provenance"]["trace"] = "a with b at temperature 0.7"
    summary["scenario"]["distributions"] = {"kind": "trace", "path": "/one/chat.npz"}
    moved, other = copy.deepcopy(summary), copy.deepcopy(summary)
    moved["scenario"]["distributions"] = {"kind": "trace", "path": "/two/chat.npz"}
    moved["seed"] = 5
    other["scenario"]["distributions"] = {"kind": "trace", "path": "/one/code.npz"}
    runs = [replace(REFERENCE, summary=found) for found in (summary, moved, other)]
    assert compare_runs(runs[0], runs[1]).is_paired is True
    assert (
        "those of chat.npz, a with b at temperature 0.7 and of code.npz"
        in compare_runs(runs[0], runs[2]).basis
    )


def test_prompts_of_two_domains_of_one_recording_are_not_paired() -> None:
    runs = []
    for domain in ("chat", "code"):
        summary = copy.deepcopy(REFERENCE.summary)
        summary["provenance"]["trace"] = "a with b at temperature 0.7"
        summary["scenario"]["distributions"] = {"kind": "trace", "path": "/one/all.npz", "domain": domain}
        runs.append(replace(REFERENCE, summary=summary))
    found = compare_runs(*runs)
    assert found.is_paired is False
    assert "those of all.npz chat, a with b at temperature 0.7 and of all.npz code" in found.basis


def test_other_classes_or_numbers_of_requests_are_other_prompts() -> None:
    for column, value in (("request_class", "code"), ("request", 99), ("prompt", 99)):
        requests = REFERENCE.tables.requests.copy()
        requests[column] = value
        assert "differ" in str(other_prompts(REFERENCE.tables, replace(REFERENCE.tables, requests=requests)))
    assert other_prompts(REFERENCE.tables, FASTER.tables) is None


def test_every_mean_and_percentile_of_both_arms_has_an_interval() -> None:
    found = compare_runs(REFERENCE, FASTER)
    bounded = {delta.metric for delta in found.deltas if delta.low is not None}
    names = ("mean_itl_ms", "p99_tpot_ms", "median_e2el_ms", "output_throughput", "token_weighted_tpot_ms")
    assert {f"{arm}.{name}" for arm in ("baseline", "speculation") for name in names} <= bounded
    assert {"speedup.tpot", "speedup.throughput", "speculation.spec_decode_acceptance_length"} <= bounded


def test_against_a_run_without_speculation_the_baselines_are_compared() -> None:
    found = compare_runs(REFERENCE, _named("plain", "speculative_config=null"))
    assert {delta.metric.partition(".")[0] for delta in found.deltas} == {"baseline"}
    assert found.is_paired is True


def test_one_prompt_gives_no_interval() -> None:
    one, two = (
        _named(name, "workload.num_prompts=1", *more) for name, more in (("a", ()), ("b", ("seed=2",)))
    )
    found = compare_runs(one, two)
    assert found.basis.startswith("No intervals")
    assert all(delta.low is None for delta in found.deltas)


@pytest.mark.verification
def test_the_paired_interval_covers_as_often_as_it_says() -> None:
    # The change of a cost by a factor that varies from prompt to prompt, mean 1.1.
    import pandas as pd

    generator = np.random.Generator(np.random.PCG64DXSM(1))
    trials, covered, prompts = 400, 0, 30
    for trial in range(trials):
        e2el = generator.gamma(4.0, 1.0, prompts)
        factor = 1.1 + 0.1 * generator.standard_normal(prompts)
        tables = []
        for times in (e2el, e2el * factor):
            rows = {"arm": "baseline", "request": np.arange(prompts), "prompt": np.arange(prompts)}
            times_s = {"arrival_s": 0.0, "first_token_s": 0.0, "finish_s": times, "num_output_tokens": 11}
            sums = {column.name: 1.0 for column in PROMPTS} | {"e2el_s": times} | rows
            tables.append(KeptTables(pd.DataFrame(rows | times_s), pd.DataFrame(sums)))
        limits = change_intervals(*tables, RandomStreams(trial), is_paired=True)["baseline.mean_e2el_ms"]
        covered += limits.low <= 0.1 <= limits.high
    assert abs(covered / trials - 0.95) < 4 * np.sqrt(0.95 * 0.05 / trials) + 0.01


@pytest.mark.parametrize(
    ("text", "before", "after", "fails"),
    [
        ("x>+5%", 100.0, 105.1, True),
        ("x>+5%", 100.0, 104.9, False),
        ("x>5%", 100.0, 105.1, True),
        ("x<-2%", 100.0, 97.0, True),
        ("x<-2%", 100.0, 99.0, False),
        ("x>+3", 10.0, 13.5, True),
        ("x>+3", 10.0, 12.5, False),
        ("x>50", 10.0, 51.0, True),
        ("x>=50", 10.0, 50.0, True),
        ("x <= 1.2", 5.0, 1.2, True),
        ("x<1.2", 5.0, 1.2, False),
    ],
)
def test_a_gate_fails_where_its_condition_holds(text: str, before: float, after: float, fails: bool) -> None:
    assert (parse_gate(text).judge({"speculation.x": before}, {"speculation.x": after}) is not None) is fails


@pytest.mark.parametrize("text", ["", "x", "x>", "x>five", "x==5", ">5", "x>5%%", "x>5;y>3"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a condition"):
        parse_gate(text)


@pytest.mark.parametrize(
    ("text", "before", "after", "why"),
    [
        ("x>5", 1.0, None, "x is 1 before and not known after"),
        ("x>+5", None, 1.0, "x is not known before and 1 after"),
        ("x>5", 1.0, math.nan, "and not known after"),
        ("x>5", 1.0, math.inf, "and not known after"),
        ("x<5", True, False, "x is no number (True) before and no number (False) after"),
        ("x<5", [0.5], [0.4], "no number ([0.5]) before and no number ([0.4]) after"),
        ("x>+5%", 0.0, 1.0, "x was 0, of which there is no percentage; give a change in its own unit"),
        ("p99_tpt_ms>5", 1.0, 1.0, "no metric 'p99_tpt_ms' (such as p99_tpot_ms or speedup.tpot)"),
    ],
)
def test_a_gate_that_cannot_be_judged_does_not_pass(
    text: str, before: Figure, after: Figure, why: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"--fail-if {text}: cannot be judged: ")) as refusal:
        parse_gate(text).judge({"x": before}, {"x": after})
    assert str(refusal.value).endswith(why)


def test_a_mistyped_metric_of_a_gate_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no metric 'p99_tpt_ms'; did you mean 'p99_tpot_ms'\?"):
        compare_runs(REFERENCE, FASTER, [parse_gate("p99_tpt_ms>+5%")])


def test_all_gates_that_cannot_be_judged_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as refusal:
        compare_runs(REFERENCE, FASTER, [parse_gate("nosuch>1"), parse_gate("x>+5%"), parse_gate("x>+1%")])
    assert len(refusal.value.faults) == 3


def test_a_gate_may_be_on_either_arm_a_ratio_its_interval_or_a_part() -> None:
    gates = [
        parse_gate(text)
        for text in (
            "baseline.mean_tpot_ms>+0%",
            "speedup.tpot<-1%",
            "speedup.tpot.ci_low<1",
            "speculation.time_seconds.idle>1e-9",
            "spec_decode_acceptance_rate<-5",
            "output_throughput<-2%",
        )
    ]
    assert compare_runs(REFERENCE, FASTER, gates).failures == ()
    assert len(compare_runs(FASTER, REFERENCE, gates).failures) == 2


def test_a_failed_gate_is_told_with_both_values() -> None:
    gates = [parse_gate("mean_tpot_ms>+1%"), parse_gate("mean_tpot_ms<-1%")]
    (failure,) = compare_runs(REFERENCE, FASTER, gates).failures
    assert failure.startswith("mean_tpot_ms<-1%: speculation.mean_tpot_ms went from ")


def _sweep(*vary: str, settings: tuple[str, ...] = (), first: int = 1) -> SweepTable:
    job = SweepJob.of(SMALL, vary, settings=settings, repeats=Repeats(first=first))
    return job.run(workers=in_process())


def test_sweeps_are_compared_point_by_point() -> None:
    old = _sweep("K=1..3", RATES, first=3)
    new = _sweep(RATES, "K=3,2,4", settings=("hardware.target.draft_cost_ratio=0.2",), first=3)
    found = compare_sweeps(("a", old), ("b", new))
    assert found.changes == (Change("hardware.target.draft_cost_ratio", "0.1", "0.2"),)
    assert found.basis.startswith("6 points in both sweeps; 18 runs are in one sweep only")
    delta = _delta(found, "speculation.token_weighted_tpot_ms")
    # A round of K drafts costs 1 + K c: the acceptance is the same, so the change is exact.
    expected = [1.4 / 1.2 - 1, 1.6 / 1.3 - 1]
    assert delta.change == pytest.approx(np.mean(expected))
    assert (delta.least, delta.most) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert delta.low == pytest.approx(delta.change)
    assert _delta(found, "speculation.tokens_per_round").change == 0.0


def test_a_gate_on_sweeps_names_the_point() -> None:
    old, new = _sweep("K=1,4"), _sweep("K=1,4", settings=("hardware.target.draft_cost_ratio=0.2",))
    found = compare_sweeps(("a", old), ("b", new), [parse_gate("token_weighted_tpot_ms>+20%")])
    (failure,) = found.failures
    assert "at speculative_config.num_speculative_tokens=4" in failure
    both = compare_sweeps(("a", old), ("b", new), [parse_gate("token_weighted_tpot_ms>+1%")])
    assert both.failures[0].endswith(", and at 1 more points")


@pytest.mark.parametrize(("slo", "lacking"), [("{p99_tpot_ms: 0.001}", []), ("{}", ["goodput"])])
def test_a_goodput_of_nothing_is_known_and_one_without_objectives_is_not(
    slo: str, lacking: list[str]
) -> None:
    old, new = (_sweep("K=1,2", settings=(f"slo={one}",)) for one in ("{p99_tpot_ms: 1e9}", slo))
    found = compare_sweeps(("a", old), ("b", new))
    assert [sentence.split()[1] for sentence in found.one_sided] == lacking
    if not lacking:
        assert set(new.columns["baseline.request_goodput"]) == {0.0}


def test_one_replication_has_no_interval() -> None:
    found = compare_sweeps(("a", _sweep("K=1,2")), ("b", _sweep("K=1,2", settings=("seed=1",))))
    assert all(delta.low is None for delta in found.deltas)
    assert "need replications" in found.basis


def test_sweeps_of_two_seeds_are_not_called_paired() -> None:
    old = _sweep("K=1,2", first=2)
    assert compare_sweeps(("a", old), ("b", _sweep("K=1,2", first=2))).is_paired is True
    other = compare_sweeps(("a", old), ("b", _sweep("K=1,2", settings=("seed=7",), first=2)))
    assert other.is_paired is False
    assert other.basis.endswith("over replications, not paired, since their seeds differ")


def test_sweeps_over_other_keys_are_not_compared() -> None:
    with pytest.raises(ConfigError, match=r"vary other keys, .*: distributions\.acceptance_rate, spec"):
        compare_sweeps(("a", _sweep("K=1,2")), ("b", _sweep(RATES)))


def test_sweeps_without_a_common_point_are_not_compared() -> None:
    with pytest.raises(ConfigError, match="share no point"):
        compare_sweeps(("a", _sweep("K=1")), ("b", _sweep("K=2")))
