"""The report of a sweep: what it says of the points, and that it stays small."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from specsim.engine.simulate import simulate
from specsim.report.sweep_plots import not_dominated, sweep_plots, undrawn
from specsim.report.sweep_report import sweep_report
from specsim.scenario import load_scenario
from specsim.sweep import SweepJob, SweepTable, in_process
from tests.report.chromium import CHROMIUM, look

_K, _BATCH, _DEVICE = (
    "speculative_config.num_speculative_tokens",
    "workload.max_concurrency",
    "hardware.target",
)


def _sweep(
    *,
    num_devices: int = 1,
    num_failed: int = 0,
    base: str | None = None,
    analysis: dict[str, object] | None = None,
) -> SweepTable:
    """Return a sweep whose speed-up is 2 - batch / 16 - K / 20, on every device alike."""
    rows = [
        (device, batch, lookahead)
        for device in range(num_devices)
        for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
        for lookahead in range(1, 11)
    ]
    gain = [max(2.0 - batch / 16 - lookahead / 20, 0.1) for _, batch, lookahead in rows]
    count = len(rows)
    failed = [number < num_failed for number in range(count)]
    columns: dict[str, list[object]] = {
        "point": list(range(count)),
        "replication": [0] * count,
        "seed": [0] * count,
        "key": ["k"] * count,
        "status": ["failed" if one else "ok" for one in failed],
        "error": ["'x' lacks 1 GB" if one else None for one in failed],
        _BATCH: [batch for _, batch, _ in rows],
        _K: [lookahead for _, _, lookahead in rows],
        "verdict.pays": [None if one else value > 1 for one, value in zip(failed, gain, strict=True)],
        "speedup.tpot": [None if one else value for one, value in zip(failed, gain, strict=True)],
        "speculation.mean_tpot_ms": [10.0 / value for value in gain],
        "speculation.output_throughput": [
            100.0 * value * row[1] for row, value in zip(rows, gain, strict=True)
        ],
    }
    axes = (_BATCH, _K)
    if num_devices > 1:
        columns[_DEVICE] = [f"device-{device}" for device, _, _ in rows]
        axes = (_BATCH, _K, _DEVICE)
    about = {
        "scenario": "laptop",
        "design": "grid",
        "metric": "speedup.tpot",
        "specsim_version": "0.1.0",
        "base": {"name": "x"} if base is None else load_scenario(base).model_dump(mode="json"),
        "analysis": analysis or {},
    }
    return SweepTable(axes, columns, about)  # type: ignore[arg-type]


def test_verdict_counts_where_it_pays_and_warns_of_the_best() -> None:
    sweep = _sweep()
    text = html.unescape(sweep_report(sweep))
    pays = sum(bool(value) for value in sweep.columns["verdict.pays"])
    assert f"Speculation pays in {pays} of 100 runs." in text
    assert "1.89x at users at once 1, draft tokens a round 1 (the largest of 100: an upper end)" in text


def test_failed_points_are_counted_and_their_errors_shown() -> None:
    text = html.unescape(sweep_report(_sweep(num_failed=3)))
    assert "3 failed." in text
    assert text.count("'x' lacks 1 GB") == 3


def test_two_axes_give_a_map_whose_cells_are_the_points() -> None:
    (plot,) = [plot for plot in sweep_plots(_sweep()) if plot.name == "speedup-tpot-map"]
    axes = plot.draw(Figure().subplots())
    assert len(axes.texts) == 100
    assert axes.get_xlabel() == "users at once"


def test_devices_by_batch_are_mapped_at_the_best_lookahead_of_each_cell() -> None:
    plots = {plot.name: plot for plot in sweep_plots(_sweep(num_devices=2))}
    axes = plots["speedup-tpot-map"].draw(Figure().subplots())
    # 2 - batch / 16 - K / 20 is largest at K = 1.
    assert [text.get_text() for text in axes.texts[:3]] == ["1.89", "1.82", "1.70"]
    chosen = plots["speedup-tpot-best-k"].draw(Figure().subplots())
    assert {text.get_text() for text in chosen.texts} == {"1"}
    assert "upper end" in plots["speedup-tpot-map"].reading


def test_devices_stand_in_the_order_in_which_they_were_given() -> None:
    sweep = _sweep(num_devices=11)
    (plot,) = [plot for plot in sweep_plots(sweep) if plot.name == "speedup-tpot-map"]
    axes = plot.draw(Figure().subplots())
    names = [f"device-{number}" for number in range(11)]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == names
    assert axes.yaxis_inverted()


def test_tables_of_the_analysis_are_in_words() -> None:
    found = [{"others": {_K: 4}, "place": 9.5, "low": 8.0, "high": None, "gains": "below"}]
    text = html.unescape(sweep_report(_sweep(analysis={"break_even": found})))
    assert "Break-even: speed-up per token" in text
    assert "users at once at break-even" in text
    row = re.search(r'<th scope="row">4</th>(.*?)</tr>', text)
    assert row is not None
    assert re.findall(r"<td>(.*?)</td>", row[1])[:4] == ["9.5", "8", "-", "below"]


def test_keys_that_do_not_vary_have_no_column() -> None:
    sweep = _sweep()
    columns = {**sweep.columns, "slo.p99_tpot_ms": [50] * len(sweep)}
    text = sweep_report(SweepTable((*sweep.axes, "slo.p99_tpot_ms"), columns, sweep.about))
    assert "p99 tpot, ms" not in text


def test_an_axis_of_one_value_is_told_above() -> None:
    sweep = _sweep()
    columns = {**sweep.columns, _DEVICE: ["l4"] * len(sweep)}
    text = sweep_report(SweepTable((*sweep.axes, _DEVICE), columns, sweep.about))
    assert "At every point: device l4." in text


def test_caveats_are_told_once_with_the_points_that_they_are_of() -> None:
    common = {
        "text": "All rough.",
        "num_points": 100,
        "num_known": 100,
        "axis": None,
        "values": [],
        "points": [],
    }
    caveats = [
        {**common},
        {**common, "text": "Some guessed.", "num_points": 10, "axis": _BATCH, "values": [512]},
        {**common, "text": "Few.", "num_points": 50, "axis": _BATCH, "values": [1, 2, 4, 8, 16]},
        {**common, "text": "Odd.", "num_points": 9, "points": [1, 3, 5, 7, 9]},
    ]
    sweep = _sweep()
    about = {**sweep.about, "caveats": caveats}
    text = sweep_report(SweepTable(sweep.axes, sweep.columns, about))  # type: ignore[arg-type]
    for line in (
        "All rough.",
        "At users at once 512 (10 of 100 points): Some guessed.",
        "At users at once 1 to 16 (50 of 100 points): Few.",
        "At 9 of 100 points (1, 3, 5, 7, 9, …): Odd.",
    ):
        assert f"<li>{line}</li>" in text


def test_points_have_the_mean_of_their_replications_and_its_interval() -> None:
    sweep = _sweep()
    columns = {name: [*values, *values] for name, values in sweep.columns.items()}
    columns["replication"] = [0] * 100 + [1] * 100
    text = sweep_report(SweepTable(sweep.axes, columns, sweep.about))
    assert "100 points, 200 runs" in text
    assert "intervals over replications" in text
    assert text.count('<th scope="row">99</th>') == 1


def _grid(num_rows: int, num_columns: int) -> SweepTable:
    count = num_rows * num_columns
    columns: dict[str, list[object]] = {
        "point": list(range(count)),
        "replication": [0] * count,
        "seed": [0] * count,
        "key": ["k"] * count,
        "status": ["ok"] * count,
        "error": [None] * count,
        "workload.request_rate": [float(number % num_columns) for number in range(count)],
        "slo.p99_tpot_ms": [number // num_columns for number in range(count)],
        "verdict.pays": [True] * count,
        "speedup.tpot": [1.0 + (number % 7) / 10 for number in range(count)],
    }
    about = {"design": "grid", "metric": "speedup.tpot"}
    return SweepTable(("workload.request_rate", "slo.p99_tpot_ms"), columns, about)  # type: ignore[arg-type]


def test_many_columns_are_mapped_without_lines_between_and_too_many_are_told() -> None:
    (plot,) = sweep_plots(_grid(9, 200))
    (cells, *_) = plot.draw(Figure().subplots()).collections
    assert cells.get_array().shape == (9, 200)  # type: ignore[union-attr]
    assert list(undrawn(_grid(9, 200))) == []
    assert list(sweep_plots(_grid(9, 300))) == []
    (reason,) = undrawn(_grid(9, 300))
    assert "requests/s offered has 300 values" in reason
    assert reason in sweep_report(_grid(9, 300))


def test_panel_around_a_recorded_trace_is_priced_at_the_contexts_of_its_requests() -> None:
    requests = simulate("quickstart").requests.query("arm == 'baseline'")
    halfway = (requests["num_prompt_tokens"] + requests["num_output_tokens"] / 2).mean()
    priced = re.findall(r'"context_tokens":(\d+)', sweep_report(_sweep(base="quickstart")))
    assert [int(tokens) for tokens in priced] == [round(halfway)]


def test_trace_beside_its_scenario_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = SweepJob.of("quickstart", ["K=1,2"], settings=["workload.num_prompts=2"])
    assert 'id="what-if-tables"' in sweep_report(sweep.run(workers=in_process()))


def test_base_that_is_no_scenario_leaves_the_panel_out_and_says_why() -> None:
    text = html.unescape(sweep_report(_sweep()))
    assert "No live panel: base of the sweep" in text
    assert 'id="what-if-tables"' not in text


def test_not_dominated_is_the_definition() -> None:
    generator_free = [[(number * 37) % 11, (number * 53) % 13, (number * 29) % 7] for number in range(40)]
    costs = np.array(generator_free, dtype=np.float64)
    expected = [not any(np.all(other <= one) and np.any(other < one) for other in costs) for one in costs]
    assert not_dominated(costs).tolist() == expected


def test_points_without_joules_stay_among_those_that_may_be_best() -> None:
    sweep = _sweep()
    energy = [None if batch == 512 else 1.0 for batch in sweep.columns[_BATCH]]
    columns = {**sweep.columns, "speculation.energy_per_token_joules": energy}
    some = SweepTable(sweep.axes, columns, sweep.about)  # type: ignore[arg-type]
    (plot,) = [plot for plot in sweep_plots(some) if plot.name == "pareto"]
    assert plot.title == "Latency, throughput"
    assert "Joules do not count: 10 points have none." in plot.reading
    without = [plot.reading for plot in sweep_plots(sweep) if plot.name == "pareto"]
    assert without == [plot.reading.replace(" Joules do not count: 10 points have none.", "")]


def test_unknown_costs_are_never_best_and_beat_none() -> None:
    assert not_dominated(np.array([[np.nan, 0.0], [1.0, 1.0]])).tolist() == [False, True]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_thousand_points_stay_below_five_megabytes_and_open_without_errors(tmp_path: Path) -> None:
    text = sweep_report(_sweep(num_devices=10, base="laptop"))
    assert text.count('<th scope="row">') >= 1000
    assert len(text.encode()) < 5e6
    seen = look(text, {"loaded": "return window.performance.getEntriesByType('resource').length;"}, tmp_path)
    assert seen.console == ()
    assert seen.value["loaded"] == 0


@pytest.fixture(scope="module")
def report() -> str:
    return sweep_report(_sweep(base="laptop"))


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_overlaps_in_the_report_of_a_sweep(report: str, tmp_path: Path, width: int) -> None:
    seen = look(report, {"layout": "return layout(window, document);"}, tmp_path, width=width).value["layout"]
    assert seen["overlaps"] == []
    assert seen["outside"] == []
    assert seen["wide"] <= 0
