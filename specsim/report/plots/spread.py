"""Spread: a ratio over one axis of a sweep that samples, every point a mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import BLUE, GREY, VERMILION
from specsim.report.plots.axis import legend_below, mark_share, scale_along
from specsim.report.plots.labels import label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_spread(points: pd.DataFrame, axes: Axes, *, x: str, value: str) -> Axes:
    """Draw a ratio over one axis; points that gain and points that lose have marks of their own.

    Parameters
    ----------
    points
        One row a point of a sweep, with the columns named below.
    axes
        Where to draw.
    x, value
        Columns of the x axis and of the ratio.
    """
    gains = points[value] > 1.0
    size = 28.0 * mark_share(len(points))
    for name, chosen, color, marker in (("pays", gains, BLUE, "o"), ("does not", ~gains, VERMILION, "x")):
        rows = points[chosen]
        if len(rows):
            axes.scatter(rows[x], rows[value], s=size, color=color, marker=marker, alpha=0.8, label=name)
    axes.axhline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (2, 2)))
    scale_along(axes, points[x])
    axes.set_xlabel(label(x))
    axes.set_ylabel(label(value))
    legend_below(axes, 2)
    return axes
