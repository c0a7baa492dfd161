"""Curves over a sweep: a ratio against the batch, and latency against throughput."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specsim.report.palette import BLACK, GREY, look
from specsim.report.plots.axis import legend_below, mark_every, mark_share, scale_along
from specsim.report.plots.labels import label
from specsim.report.plots.values import short_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LOOKAHEADS = ("speculative_config.num_speculative_tokens", "K")
"""Columns whose values are called K in a legend."""


def plot_against_batch(
    points: pd.DataFrame,
    axes: Axes,
    *,
    batch: str = "workload.max_concurrency",
    series: str | None = "speculative_config.num_speculative_tokens",
    value: str = "speedup.tpot",
    low: str | None = None,
    high: str | None = None,
    crossings: pd.DataFrame | None = None,
) -> Axes:
    """Draw a ratio against the batch, a line for each lookahead, and the line of break-even at 1.

    Parameters
    ----------
    points
        One row a point of a sweep, with the columns named below; rows without a value leave a gap.
    axes
        Where to draw.
    batch, series, value
        Columns of the x axis, of the lines (None: one line), and of the y axis.
    low, high
        Columns of an interval; drawn as a band where both are given.
    crossings
        Places of break-even to be marked: ``place``, and ``low`` and ``high`` of its interval.
    """
    groups = [(None, points)] if series is None else list(points.groupby(series, observed=True))
    for number, (name, rows) in enumerate(groups):
        rows = rows.sort_values(batch)
        drawn = look(number)
        axes.plot(
            rows[batch],
            rows[value],
            color=drawn.color,
            marker=drawn.marker,
            markevery=mark_every(len(rows)),
            linestyle=drawn.dash,
            label=None if name is None else _series_name(series, name),
        )
        if low is not None and high is not None:
            axes.fill_between(rows[batch], rows[low], rows[high], color=drawn.color, alpha=0.15, linewidth=0)
    axes.axhline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (2, 2)))
    if crossings is not None:
        for place, start, end in crossings[["place", "low", "high"]].itertuples(index=False, name=None):
            axes.axvspan(start, end, color=GREY, alpha=0.2, linewidth=0)
            axes.axvline(place, color=BLACK, linewidth=1.0, linestyle=(0, (1, 1)))
    scale_along(axes, points[batch])
    axes.set_xlabel(label(batch))
    axes.set_ylabel(label(value))
    if series is not None:
        title = None if series in _LOOKAHEADS else label(series)
        legend_below(axes, 4, title=title)
    return axes


def plot_pareto(
    points: pd.DataFrame,
    axes: Axes,
    *,
    x: str = "speculation.mean_tpot_ms",
    y: str = "speculation.output_throughput",
    energy: str | None = "speculation.energy_per_token_joules",
    series: str | None = None,
    is_best: str | None = None,
) -> Axes:
    """Draw latency against throughput, joules per token as the area of a mark.

    Parameters
    ----------
    points
        One row a point of a sweep.
    axes
        Where to draw.
    x, y
        Columns of latency and throughput.
    energy
        Column of the marks' areas; None, or where all are missing: marks of one size.
    series
        Column of the groups, each with a colour and a marker of its own.
    is_best
        Column of booleans: no other point is better in everything; these are outlined and joined.
    """
    joules = None if energy is None else points[energy].to_numpy(dtype=np.float64)
    largest = 0.0 if joules is None else float(np.max(joules, initial=0.0, where=np.isfinite(joules)))
    groups = [(None, points)] if series is None else list(points.groupby(series, observed=True))
    for number, (name, rows) in enumerate(groups):
        drawn = look(number)
        sizes = np.full(len(rows), 40.0)
        if energy is not None and largest > 0.0:
            sizes = 20.0 + 180.0 * rows[energy].to_numpy(dtype=np.float64) / largest
        sizes *= mark_share(len(points))
        axes.scatter(
            rows[x],
            rows[y],
            s=sizes,
            color=drawn.color,
            marker=drawn.marker,
            alpha=0.7,
            linewidth=0,
            label=None if name is None else _series_name(series, name),
        )
    if is_best is not None:
        best = points[points[is_best]].sort_values(x)
        axes.plot(best[x], best[y], color=GREY, linewidth=1.0, drawstyle="steps-post", label="not dominated")
    axes.set_xlabel(label(x))
    axes.set_ylabel(label(y))
    if series is not None or is_best is not None:
        axes.legend()
    return axes


def _series_name(series: str | None, value: object) -> str:
    if series in _LOOKAHEADS:
        return f"K = {value}"
    return short_value(value)
