"""Plots: they draw what the table says, compute nothing, and are told apart without colour."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from specsim.report import palette, plots
from specsim.report.plots.labels import label


@pytest.fixture
def axes() -> Axes:
    return Figure(figsize=(6, 4), layout="constrained").subplots()


def _sweep() -> pd.DataFrame:
    rows = [
        (batch, lookahead, 2.0 - 0.1 * lookahead * np.log2(batch), 10.0 * batch, 5.0 + batch, 1.0 / batch)
        for batch in (1, 4, 16)
        for lookahead in (2, 4)
    ]
    columns = [
        "workload.max_concurrency",
        "speculative_config.num_speculative_tokens",
        "speedup.tpot",
        "speculation.output_throughput",
        "speculation.mean_tpot_ms",
        "speculation.energy_per_token_joules",
    ]
    return pd.DataFrame(rows, columns=columns)


_PARTS = pd.DataFrame(
    {"baseline": [1.0, 0.0, 3.0, 0.0, 0.5], "speculation": [1.0, 0.5, 1.0, 1.0, 0.0]},
    index=list(palette.PARTS),
)
_TIMES = pd.DataFrame(
    {
        "arm": ["baseline"] * 2 + ["speculation"] * 2,
        "time_s": [0.0, 1.0, 0.0, 0.5],
        "value": [5.0, 6.0, 7.0, 8.0],
    }
)
_BARS = pd.DataFrame(
    {
        "lane": ["baseline: target", "speculation: draft", "speculation: target"],
        "activity": ["decode", "draft", "verify"],
        "start_s": [0.0, 0.0, 0.2],
        "duration_s": [1.0, 0.2, 0.5],
    }
)


def test_each_series_is_told_apart_without_color() -> None:
    looks = [palette.look(number) for number in range(8)]
    for first, second in itertools.combinations(looks, 2):
        assert first.marker != second.marker
        assert first.dash != second.dash
        assert first.hatch != second.hatch


def test_parts_are_told_apart_in_grey_or_by_hatch() -> None:
    for first, second in itertools.combinations(palette.PARTS.values(), 2):
        grey = [float(np.dot(to_rgb(look.color), (0.2126, 0.7152, 0.0722))) for look in (first, second)]
        assert first.hatch != second.hatch or abs(grey[0] - grey[1]) > 0.15


def test_speedup_against_batch_draws_a_line_a_lookahead_and_break_even(axes: Axes) -> None:
    table = _sweep()
    assert plots.plot_against_batch(table, axes) is axes
    *lines, level = axes.get_lines()
    assert [line.get_label() for line in lines] == ["K = 2", "K = 4"]
    for line, (_, rows) in zip(
        lines, table.groupby("speculative_config.num_speculative_tokens"), strict=True
    ):
        np.testing.assert_array_equal(line.get_ydata(), rows["speedup.tpot"])
    assert set(np.ravel(level.get_ydata())) == {1.0}
    assert axes.get_xlabel() == "users at once"
    assert axes.get_ylabel() == "speed-up per token, ×"


def test_interval_is_drawn_as_a_band(axes: Axes) -> None:
    table = _sweep().assign(low=1.0, high=2.0)
    plots.plot_against_batch(table, axes, low="low", high="high")
    assert len(axes.collections) == 2


def test_map_writes_every_number_and_outlines_break_even(axes: Axes) -> None:
    table = pd.DataFrame([[1.2, 0.8], [1.1, 0.9]], index=[1, 2], columns=[1, 64])
    plots.plot_map(table, axes, x="workload.max_concurrency", y="K", value="speedup.tpot")
    assert [text.get_text() for text in axes.texts] == ["1.20", "0.80", "1.10", "0.90"]
    for border in axes.get_lines():
        np.testing.assert_array_equal(border.get_xdata(), [1, 1])
    assert len(axes.get_lines()) == 2


def test_map_of_a_ratio_is_neutral_at_one(axes: Axes) -> None:
    table = pd.DataFrame([[2.0, 0.9]], index=[1], columns=[1, 2])
    plots.plot_map(table, axes, x="workload.max_concurrency", y="K", value="speedup.tpot")
    image = axes.collections[0]
    assert image.norm(1.0) == pytest.approx(0.5)
    assert image.norm(2.0) == pytest.approx(1.0)


def test_map_leaves_missing_cells_empty_and_says_if_all_are(axes: Axes) -> None:
    table = pd.DataFrame([[1.5, np.nan]], index=[1], columns=[1, 2])
    plots.plot_map(table, axes, x="workload.max_concurrency", y="K", value="speedup.tpot")
    assert [text.get_text() for text in axes.texts] == ["1.50"]
    other = Figure().subplots()
    plots.plot_map(table * np.nan, other, x="workload.max_concurrency", y="K", value="speedup.tpot")
    assert other.texts[0].get_text() == "no value is known"


def test_pareto_draws_joules_as_area(axes: Axes) -> None:
    table = _sweep()
    plots.plot_pareto(table, axes)
    sizes = axes.collections[0].get_sizes()
    order = np.argsort(table["speculation.energy_per_token_joules"])
    assert np.all(np.diff(np.asarray(sizes)[order]) >= 0)


def test_pareto_without_joules_draws_marks_of_one_size(axes: Axes) -> None:
    table = _sweep().assign(**{"speculation.energy_per_token_joules": np.nan})
    plots.plot_pareto(table, axes)
    assert set(axes.collections[0].get_sizes()) == {40.0}


def test_bars_of_the_parts_add_up(axes: Axes) -> None:
    plots.plot_parts(_PARTS, axes, quantity="energy per output token, J")
    widths = [bar.get_width() for bar in axes.patches]
    assert sum(widths) == pytest.approx(_PARTS.to_numpy().sum())
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert max(ends) == pytest.approx(_PARTS.sum().max())


def test_acceptance_has_a_bar_a_position(axes: Axes) -> None:
    table = pd.DataFrame({"position": [1, 2, 3], "acceptance_rate": [0.8, 0.64, 0.512]})
    plots.plot_acceptance_by_position(table, axes)
    assert [bar.get_height() for bar in axes.patches] == [0.8, 0.64, 0.512]


def test_gantt_has_a_lane_for_each_arm_and_model(axes: Axes) -> None:
    plots.plot_request_gantt(_BARS, axes)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(_BARS["lane"])


def test_line_over_time_holds_to_the_next_value(axes: Axes) -> None:
    plots.plot_over_time(_TIMES, axes, quantity="power, W", limit=9.0, limit_name="cap")
    first, _, level = axes.get_lines()
    assert first.get_drawstyle() == "steps-post"
    assert set(np.ravel(level.get_ydata())) == {9.0}
    assert axes.get_ylim()[0] == 0.0


def test_no_operating_point_is_drawn_elsewhere_than_it_is(axes: Axes) -> None:
    points = pd.DataFrame(
        {"name": ["draft", "verify"], "flops_per_byte": [1.0, 5.0], "flops_per_s": [1e12, 4e12]}
    )
    ceiling = plots.Ceiling("device", 1e12, 1e13)
    plots.plot_roofline(points, ceiling, axes)
    roof, _, *marks = axes.get_lines()
    assert [(mark.get_xdata()[0], mark.get_ydata()[0]) for mark in marks] == [(1.0, 1e12), (5.0, 4e12)]
    assert np.max(roof.get_ydata()) == 1e13


def test_predictions_are_drawn_on_equal_axes(axes: Axes) -> None:
    table = pd.DataFrame({"measured": [1.0, 2.0], "predicted": [1.1, 1.9], "group": ["fitted", "held out"]})
    plots.plot_predicted_against_measured(table, axes)
    assert axes.get_xlim() == axes.get_ylim()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "within 10 %",
        "fitted",
        "held out",
    ]


def test_tornado_bars_begin_at_the_center(axes: Axes) -> None:
    table = pd.DataFrame({"parameter": ["bandwidth", "batch"], "at_low": [1.0, 1.4], "at_high": [2.0, 1.6]})
    plots.plot_tornado(table, axes, value="speedup.tpot", center=1.5)
    assert [bar.get_x() for bar in axes.patches] == [1.5] * 4
    assert [round(bar.get_width(), 9) for bar in axes.patches] == [-0.5, -0.1, 0.5, 0.1]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("speedup.energy", "energy per token, baseline ÷ speculation"),
        ("baseline.p99_ttft_ms", "baseline: p99 time to first token, ms"),
        ("target_energy_j", "energy of the target pass, J"),
        ("hardware.target.memory.bandwidth_bytes_per_s", "bandwidth bytes per s"),
    ],
)
def test_label_names_the_quantity_and_its_unit(key: str, expected: str) -> None:
    assert label(key) == expected
