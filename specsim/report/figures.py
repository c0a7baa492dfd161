"""Figures of one run: every plot that its data allow, and all of them on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specsim.report import run_tables as tables
from specsim.report.numbers import figure
from specsim.report.palette import STYLE
from specsim.report.plots import (
    Ceiling,
    plot_acceptance_by_position,
    plot_over_time,
    plot_parts,
    plot_request_gantt,
    plot_roofline,
)
from specsim.report.plots.labels import sentence
from specsim.report.run_files import Run, run_of
from specsim.results.result import SimulationResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot, not yet drawn."""

    name: str
    """Short, for links and file names."""
    title: str
    reading: str
    """What it shows, in a line of words, also for those who do not see it."""
    draw: Callable[[Axes], Axes]
    height_in: float = 3.2


def run_plots(run: Run) -> Iterator[Plot]:
    """Yield the plots that the data of a run allow, in reading order."""
    for metric, scale, quantity, title in (
        ("time_seconds", 1e3, "time per output token, ms", "Where time goes"),
        ("energy_joules", 1.0, "energy per output token, J", "Where joules go"),
        ("operations_flops", 1e-9, "operations per output token, GFLOP", "Where operations go"),
    ):
        parts = tables.parts_per_token(run, metric, scale=scale)
        if parts is not None:
            yield _parts_plot(parts, metric, title, quantity)
    acceptance = tables.acceptance_by_position(run)
    if acceptance is not None:
        yield Plot(
            "acceptance",
            "Acceptance by position",
            "Share of rounds that keep the draft of each position: "
            + ", ".join(f"{rate:.2f}" for rate in acceptance["acceptance_rate"])
            + ".",
            lambda axes: plot_acceptance_by_position(acceptance, axes),
        )
    points, ceiling = tables.operating_points(run), ceiling_of(run)
    if points is not None and ceiling is not None:
        yield Plot(
            "roofline",
            "Roofline",
            "Marks left of the dotted line wait for memory, right of it for arithmetic; the line is the roof"
            f" of {ceiling.name}.",
            lambda axes: plot_roofline(points, ceiling, axes),
            height_in=3.6,
        )
    gantt = tables.request_gantt(run)
    yield Plot(
        "gantt",
        "The first request on the clock",
        "When the first request was prefilled, drafted and verified in each arm, its first rounds.",
        lambda axes: plot_request_gantt(gantt, axes),
        height_in=2.8,
    )
    cache = tables.cache_over_time(run)
    yield Plot(
        "cache",
        "KV cache over time",
        "Cached tokens that a decode step reads, the most in each of 240 equal intervals, by arm.",
        lambda axes: plot_over_time(cache, axes, quantity="cached tokens read by a step"),
    )
    power = tables.power_over_time(run)
    if power is not None:
        yield Plot(
            "power",
            "Power over time",
            "Mean power of all devices in each of 240 equal intervals, by arm.",
            lambda axes: plot_over_time(power, axes, quantity="power of all devices, W"),
        )


def ceiling_of(run: Run) -> Ceiling | None:
    """Return the datasheet's roof of the target's devices together; None where the profile states none."""
    from specsim.hardware import RooflineProfile
    from specsim.scenario import Scenario

    scenario = Scenario.model_validate(run.summary["scenario"])
    profile, devices = scenario.hardware.target, scenario.target.tensor_parallel_size
    if not isinstance(profile, RooflineProfile):
        return None
    times = f"{devices} × " if devices > 1 else ""
    return Ceiling(
        f"{times}{profile.name}",
        devices * profile.memory.bandwidth_bytes_per_s,
        devices * profile.peak(profile.plain_dtype),
    )


def figure_of(result: SimulationResult) -> Figure:
    """Return one figure with every plot of a result; nothing is shown or written.

    Parameters
    ----------
    result
        The run.
    """
    import matplotlib.style
    from matplotlib.figure import Figure

    plots = list(run_plots(run_of(result)))
    rows = (len(plots) + 1) // 2
    with matplotlib.style.context(dict(STYLE)):
        figure = Figure(figsize=(12.0, 3.6 * rows))
        grid = figure.subplots(rows, 2, squeeze=False).ravel()
        for plot, axes in zip(plots, grid, strict=False):
            plot.draw(axes).set_title(plot.title)
        for axes in grid[len(plots) :]:
            axes.set_axis_off()
        figure.suptitle(result.summary()["verdict"]["text"], fontsize=10, wrap=True)
    return figure


def _parts_plot(parts: pd.DataFrame, metric: str, title: str, quantity: str) -> Plot:
    totals = ", ".join(f"{arm} {figure(parts[arm].sum())}" for arm in parts.columns)
    last = parts[parts.columns[-1]]
    wasted = float(last["wasted"] / last.sum())
    share = f", {100 * wasted:.0f} % of it on rejected tokens" if wasted else ""
    return Plot(
        metric,
        title,
        f"{sentence(quantity)}: {totals}{share}.",
        lambda axes: plot_parts(parts, axes, quantity=quantity),
        height_in=2.6,
    )
