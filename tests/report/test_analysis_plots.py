"""What a sweep's analysis found, as plots: only what there is, and read right in words."""

from __future__ import annotations

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specsim.report.analysis_plots import analysis_plots
from specsim.report.figures import Plot
from specsim.report.sweep_plots import sweep_plots
from specsim.sweep import SweepJob, SweepTable, in_process

_RATE, _K = "distributions.acceptance_rate", "speculative_config.num_speculative_tokens"
_SHORT = ("workload.num_prompts=4", "workload.output_tokens=40")


def _sweep(*vary: str, **options: object) -> SweepTable:
    job = SweepJob.of("chat_8b", vary, settings=_SHORT, **options)  # type: ignore[arg-type]
    return job.run(workers=in_process())


def _drawn(plot: Plot) -> Axes:
    return plot.draw(Figure(figsize=(5, 4), layout="constrained").subplots())


@pytest.fixture(scope="module")
def line() -> SweepTable:
    return _sweep(f"{_RATE}=0.2..0.9:lin:3", seeks_break_even=True)


@pytest.fixture(scope="module")
def surface() -> SweepTable:
    return _sweep(f"{_RATE}=0.2..0.9:lin:3", "K=2,6", seeks_break_even=True)


def test_break_even_of_one_axis_is_marked_on_its_line_and_said(line: SweepTable) -> None:
    assert list(analysis_plots(line)) == []
    found = line.about["analysis"]["break_even"]  # type: ignore[index, call-overload]
    (crossing,) = found
    (plot,) = [plot for plot in sweep_plots(line) if plot.name == "speedup-tpot-lines"]
    lines = [set(map(float, one.get_xdata())) for one in _drawn(plot).get_lines()]
    assert {crossing["place"]} in lines
    assert f"acceptance rate {crossing['place']:.4g} [" in plot.reading
    assert plot.reading.endswith("above 1 above it.")


def test_break_even_of_two_axes_is_a_place_for_each_value_of_the_other(surface: SweepTable) -> None:
    (plot,) = analysis_plots(surface)
    found = surface.about["analysis"]["break_even"]  # type: ignore[index, call-overload]
    axes = _drawn(plot)
    offsets = [
        tuple(map(float, at)) for marks in axes.collections for at in getattr(marks, "get_offsets", list)()
    ]
    for crossing in found:
        assert (float(crossing["others"][_K]), crossing["place"]) in offsets
    assert axes.get_ylabel() == "break-even: acceptance rate"


def test_points_added_by_the_search_leave_no_hole_in_the_map(surface: SweepTable) -> None:
    (plot,) = [plot for plot in sweep_plots(surface) if plot.name == "speedup-tpot-map"]
    assert len(surface) > 6
    assert len(_drawn(plot).texts) == 6
    assert "of 6 cells" in plot.reading


def test_tornado_says_what_moves_most_and_what_turns_the_verdict() -> None:
    sweep = _sweep(f"{_RATE}=0.2..0.9", "hardware.target.power.cap_w=650..700", design="tornado")
    (plot,) = sweep_plots(sweep)
    assert plot.name == "tornado"
    assert "acceptance rate moves it most" in plot.reading
    assert plot.reading.endswith("Alone across 1: acceptance rate.")
    assert [text.get_text() for text in _drawn(plot).get_yticklabels()] == [
        "acceptance rate\n0.2 … 0.9",
        "power cap\n650 … 700",
    ]


@pytest.mark.parametrize("design", ["sobol", "morris"])
def test_effects_are_drawn_beside_the_spread_over_each_axis(design: str) -> None:
    pytest.importorskip("SALib")
    sweep = _sweep(f"{_RATE}=0.2..0.9", "hardware.target.power.cap_w=650..700", design=design, num_samples=2)
    plots = {plot.name: plot for plot in sweep_plots(sweep)}
    assert list(plots) == [design, f"spread-{_RATE}".replace(".", "-"), "spread-hardware-target-power-cap_w"]
    assert plots[design].reading.startswith("Acceptance rate most: ")
    assert _drawn(plots[design]).get_xlabel() == (
        "share of the variance" if design == "sobol" else "speed-up per token, ×"
    )


def test_three_axes_without_a_lookahead_give_a_map_for_each_value_of_the_smallest() -> None:
    sweep = _sweep(f"{_RATE}=0.5,0.9", "workload.max_concurrency=1,2,4", "hardware.target=h100-sxm,l4,a40")
    names = [plot.name for plot in sweep_plots(sweep) if plot.name.startswith("speedup-tpot")]
    assert names == ["speedup-tpot-map-0", "speedup-tpot-map-1"]


def test_a_sample_has_a_spread_for_each_axis_of_numbers_and_no_map() -> None:
    sweep = _sweep(f"{_RATE}=0.2..0.9", "K=1..4", design="random", num_samples=6)
    names = [plot.name for plot in sweep_plots(sweep)]
    assert names == [f"spread-{key}".replace(".", "-") for key in (_RATE, _K)] + ["pareto"]
    (plot, *_) = sweep_plots(sweep)
    axes = _drawn(plot)
    assert sum(len(marks.get_offsets()) for marks in axes.collections) == 6


def test_seeds_are_replications_whose_mean_is_drawn() -> None:
    sweep = _sweep("seed=1,2,3", f"{_RATE}=0.5,0.7,0.9")
    (plot,) = [plot for plot in sweep_plots(sweep) if plot.name == "speedup-tpot-lines"]
    assert plot.title == "Speed-up per token over acceptance rate"
    axes = _drawn(plot)
    means = sweep.frame().groupby(_RATE)["speedup.tpot"].mean()
    assert list(axes.get_lines()[0].get_ydata()) == pytest.approx(list(means))
    # The interval of one run is not that of a mean over several.
    assert len(axes.collections) == 0
