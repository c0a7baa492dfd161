"""Comparisons: what changed, by how much, how sure, and whether it may be merged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.engine.simulate import simulate
from specsim.errors import ConfigError
from specsim.scenario import load_scenario
from specsim.streams import RandomStreams
from specsim.sweep import Repeats, SweepJob, SweepTable, in_process
from specsim.sweep.changes import Change, changes
from specsim.sweep.compare import Comparison, Delta, NamedRun, compare_runs
from specsim.sweep.compare_sweeps import compare_sweeps
from specsim.sweep.gates import parse_gate
from specsim.sweep.paired import Arm, are_same_prompts, change_intervals
from tests.sweep.small import RATES, SMALL

PROMPTS = ("workload.num_prompts=40", "workload.max_concurrency=1", "workload.output_tokens_stdev=10")


def _named(name: str, *settings: str) -> NamedRun:
    result = simulate(load_scenario(SMALL, overrides=[*PROMPTS, *settings]))
    return NamedRun(name, result.summary(), result.requests)


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
        change_intervals(REFERENCE.requests, FASTER.requests, RandomStreams(0), is_paired=is_paired)
        for is_paired in (True, False)
    )
    for metric in ("speculation.mean_tpot_ms", "baseline.mean_e2el_ms"):
        widths = [limits[metric].high - limits[metric].low for limits in (paired, unpaired)]
        assert widths[0] < 0.5 * widths[1]


def test_runs_of_other_prompts_are_not_paired() -> None:
    assert are_same_prompts(REFERENCE.requests, FASTER.requests)
    assert ", paired" in compare_runs(REFERENCE, FASTER).basis
    assert "unpaired" in compare_runs(REFERENCE, OTHER_SEED).basis
    assert not are_same_prompts(REFERENCE.requests, _named("d", "workload.num_prompts=9").requests)


def test_one_prompt_gives_no_interval() -> None:
    one, two = (
        _named(name, "workload.num_prompts=1", *more) for name, more in (("a", ()), ("b", ("seed=2",)))
    )
    found = compare_runs(one, two)
    assert found.basis.startswith("No intervals")
    assert all(delta.low is None for delta in found.deltas)


@given(st.lists(st.tuples(st.floats(1, 100), st.integers(0, 4)), min_size=1, max_size=30), st.floats(0, 1))
def test_a_weighted_percentile_is_that_of_the_repeated_sample(drawn: list, probability: float) -> None:
    values = np.array([value for value, _ in drawn])
    weights = np.array([weight for _, weight in drawn])
    if weights.sum() == 0:
        weights[0] = 1
    arm = Arm(np.arange(len(values)), {"e2el": values}, np.ones(len(values)))
    found = arm.percentile_s("e2el", probability, weights[None, :].astype(float))
    assert found[0] == pytest.approx(np.percentile(np.repeat(values, weights), 100 * probability))


def test_statistics_of_all_prompts_are_those_of_the_summary() -> None:
    arm = Arm.of(REFERENCE.requests, "speculation")
    once = np.ones((1, arm.num_prompts))
    summary = REFERENCE.summary["speculation"]
    assert summary is not None
    assert 1e3 * arm.mean_s("tpot", once)[0] == pytest.approx(summary["mean_tpot_ms"])
    assert 1e3 * arm.percentile_s("ttft", 0.99, once)[0] == pytest.approx(summary["p99_ttft_ms"])
    assert 1e3 * arm.token_weighted_tpot_s(once)[0] == pytest.approx(summary["token_weighted_tpot_ms"])


@pytest.mark.verification
def test_the_paired_interval_covers_as_often_as_it_says() -> None:
    # The change of a cost by a factor that varies from prompt to prompt, mean 1.1.
    import pandas as pd

    generator = np.random.Generator(np.random.PCG64DXSM(1))
    trials, covered, prompts = 400, 0, 30
    for trial in range(trials):
        e2el = generator.gamma(4.0, 1.0, prompts)
        factor = 1.1 + 0.1 * generator.standard_normal(prompts)
        frames = [
            pd.DataFrame(
                {
                    "arm": "baseline",
                    "request": np.arange(prompts),
                    "prompt": np.arange(prompts),
                    "arrival_s": 0.0,
                    "first_token_s": 0.0,
                    "finish_s": times,
                    "num_output_tokens": 11,
                }
            )
            for times in (e2el, e2el * factor)
        ]
        limits = change_intervals(*frames, RandomStreams(trial), is_paired=True)["baseline.mean_e2el_ms"]
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
    ("text", "before", "after"),
    [("x>5", 1.0, None), ("x>+5", None, 1.0), ("x>+5%", 0.0, 1.0), ("y>5", 1.0, 1.0)],
)
def test_a_gate_that_cannot_be_judged_does_not_pass(
    text: str, before: float | None, after: float | None
) -> None:
    with pytest.raises(ConfigError, match="cannot be judged"):
        parse_gate(text).judge({"x": before}, {"x": after})


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


def test_one_replication_has_no_interval() -> None:
    found = compare_sweeps(("a", _sweep("K=1,2")), ("b", _sweep("K=1,2", settings=("seed=1",))))
    assert all(delta.low is None for delta in found.deltas)
    assert "need replications" in found.basis


def test_sweeps_over_other_keys_are_not_compared() -> None:
    with pytest.raises(ConfigError, match=r"vary other keys, .*: distributions\.acceptance_rate, spec"):
        compare_sweeps(("a", _sweep("K=1,2")), ("b", _sweep(RATES)))


def test_sweeps_without_a_common_point_are_not_compared() -> None:
    with pytest.raises(ConfigError, match="share no point"):
        compare_sweeps(("a", _sweep("K=1")), ("b", _sweep("K=2")))
