"""Plots: they draw what the table says, compute nothing, and are told apart without colour."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
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


def test_of_many_points_few_are_marked_and_the_line_goes_through_all(axes: Axes) -> None:
    table = pd.DataFrame({"x": np.arange(250.0), "y": np.linspace(0.5, 2.0, 250)})
    line, *_ = plots.plot_against_batch(table, axes, batch="x", value="y", series=None).get_lines()
    assert len(np.asarray(line.get_xdata())) == 250
    assert 250 / line.get_markevery() <= 20  # type: ignore[operator]


def test_marks_of_many_points_do_not_cover_one_another(axes: Axes) -> None:
    few, many = (
        pd.DataFrame({"x": np.arange(float(count)), "y": np.full(count, 2.0)}) for count in (20, 400)
    )
    plots.plot_spread(few, axes, x="x", value="y")
    plots.plot_spread(many, axes, x="x", value="y")
    sizes = [float(marks.get_sizes()[0]) for marks in axes.collections if isinstance(marks, PathCollection)]
    assert sizes[0] * 20 >= sizes[1] * 400 / 2.5
    assert sizes[1] < sizes[0] / 5


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


def test_map_of_counts_writes_whole_numbers(axes: Axes) -> None:
    table = pd.DataFrame([[4, 2], [2, 1]], index=[1, 2], columns=[1, 2])
    plots.plot_map(table, axes, x="workload.max_concurrency", y="K", value="K", is_ratio=False)
    assert [text.get_text() for text in axes.texts] == ["4", "2", "2", "1"]


def test_numbers_that_would_not_be_read_are_left_out(axes: Axes) -> None:
    table = pd.DataFrame(np.full((2, 40), 1.5), index=[1, 2], columns=range(40))
    plots.plot_map(table, axes, x="workload.max_concurrency", y="K", value="speedup.tpot")
    assert not axes.texts
    assert len(axes.get_xticklabels()) <= 16


def test_values_far_apart_lie_on_a_logarithmic_axis_and_are_its_ticks(axes: Axes) -> None:
    bandwidth = "hardware.target.memory.bandwidth_bytes_per_s"
    table = pd.DataFrame({bandwidth: [1e12, 2e12, 4e12, 8e12], "speedup.tpot": [1.4, 1.3, 1.2, 1.1]})
    plots.plot_against_batch(table, axes, batch=bandwidth, series=None)
    assert axes.get_xscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1T", "2T", "4T", "8T"]


def test_values_equally_spaced_lie_on_a_linear_axis(axes: Axes) -> None:
    table = pd.DataFrame({"K": [0, 1, 2, 3], "speedup.tpot": [1.0, 1.3, 1.2, 1.1]})
    plots.plot_against_batch(table, axes, batch="K", series=None)
    assert axes.get_xscale() == "linear"


def test_break_even_is_marked_with_its_interval(axes: Axes) -> None:
    table = pd.DataFrame({"K": [1, 4], "speedup.tpot": [1.5, 0.5]})
    found = pd.DataFrame({"place": [2.5], "low": [2.0], "high": [3.0]})
    plots.plot_against_batch(table, axes, batch="K", series=None, crossings=found)
    assert [set(np.ravel(line.get_xdata())) for line in axes.get_lines()[2:]] == [{2.5}]
    (band,) = axes.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == (2.0, 3.0)


def test_break_even_points_to_the_side_that_pays(axes: Axes) -> None:
    table = pd.DataFrame(
        {
            "K": [1, 2],
            "place": [10.0, 20.0],
            "low": [9.0, np.nan],
            "high": [11.0, 30.0],
            "gains": ["below", "above"],
        }
    )
    plots.plot_break_even(table, axes, along="workload.max_concurrency", across="K", is_log=False)
    marks = [one for one in axes.collections if isinstance(one, PathCollection)]
    assert [tuple(one.get_offsets()[0]) for one in marks] == [(1.0, 10.0), (2.0, 20.0)]
    assert axes.get_ylabel() == "break-even: users at once"


def test_effects_stand_side_by_side_with_their_intervals(axes: Axes) -> None:
    table = pd.DataFrame(
        {
            "parameter": ["batch", "bandwidth"],
            "main": [0.7, 0.1],
            "main_half_width": [0.1, 0.1],
            "other": [0.8, 0.2],
            "other_half_width": [np.nan, np.nan],
        }
    )
    plots.plot_effects(table, axes, main="alone", other="in all", quantity="share")
    assert [bar.get_width() for bar in axes.patches] == [0.7, 0.1, 0.8, 0.2]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["batch", "bandwidth"]


def test_spread_tells_gains_from_losses_by_their_mark(axes: Axes) -> None:
    table = pd.DataFrame({"K": [1, 2, 3], "speedup.tpot": [1.5, 1.1, 0.9]})
    plots.plot_spread(table, axes, x="K", value="speedup.tpot")
    assert [len(one.get_offsets()) for one in axes.collections] == [2, 1]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["pays", "does not"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("hardware.target.peak_flops_per_s.float8", "peak float8, FLOP/s"),
        ("hardware.draft.power.cap_w", "draft's power cap, W"),
        ("lookahead.kind", "lookahead kind"),
        ("speedup.energy", "energy gain per token, ×"),
        ("baseline.p99_ttft_ms", "baseline: p99 time to first token, ms"),
        ("target_energy_j", "energy of the target pass, J"),
        ("hardware.target.memory.bandwidth_bytes_per_s", "memory bandwidth, B/s"),
    ],
)
def test_label_names_the_quantity_and_its_unit(key: str, expected: str) -> None:
    assert label(key) == expected
