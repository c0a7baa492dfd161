"""Axes and legends as all plots have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specsim.report.plots.values import short_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LOG_FROM = 8.0
"""Values that differ by this factor, and are not equally spaced, have a logarithmic axis."""
_FULL_SIZED = 50
"""Marks that do not cover one another at their full size."""
_MOST_MARKS = 20
"""Marks along one line that can be told from it."""
_MOST_TICKS = 9
"""Values that are all written below an axis."""


def legend_below(axes: Axes, num_columns: int, *, drop: float = 0.2, title: str | None = None) -> None:
    """Put the legend below the plot, centred.

    Parameters
    ----------
    axes
        The plot, with its labelled lines and marks.
    num_columns
        Names side by side.
    drop
        Distance below the axis, as a fraction of the plot's height.
    title
        What the names are values of.
    """
    axes.legend(title=title, loc="upper center", bbox_to_anchor=(0.5, -drop), ncols=num_columns, fontsize=8)


def mark_share(num_marks: int) -> float:
    """Return the share of its full area that each of many marks has, so that all are seen.

    Examples
    --------
    >>> mark_share(20), mark_share(250)
    (1.0, 0.2)
    """
    return min(1.0, _FULL_SIZED / max(num_marks, 1))


def mark_every(num_points: int) -> int:
    """Return every which point of a line is marked; the line itself goes through all.

    Examples
    --------
    >>> mark_every(12), mark_every(250)
    (1, 13)
    """
    return max(1, -(-num_points // _MOST_MARKS))


def scale_along(axes: Axes, values: pd.Series[float]) -> None:
    """Set the x axis to the values: logarithmic where they are far apart; few are ticks."""
    from matplotlib.ticker import LogLocator

    places = np.unique(values.to_numpy(dtype=np.float64))
    gaps = np.diff(places)
    is_even = len(places) < 3 or bool(np.allclose(gaps, gaps[0], rtol=0.01))
    is_log = not is_even and places[0] > 0 and places[-1] >= _LOG_FROM * places[0]
    if is_log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    if len(places) <= _MOST_TICKS and (is_log or is_even):
        axes.set_xticks(places, [short_value(float(place)) for place in places])
    else:
        axes.xaxis.set_major_formatter(lambda place, _: short_value(float(place)))
    axes.xaxis.set_minor_formatter(lambda place, _: "")
