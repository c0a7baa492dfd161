"""Break-even over two axes: the place on the one where a ratio is 1, for each value of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specsim.report.palette import look
from specsim.report.plots.axis import legend_below, scale_along
from specsim.report.plots.labels import label
from specsim.report.plots.values import named_value, short_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_break_even(
    table: pd.DataFrame, axes: Axes, *, along: str, across: str, series: str | None = None, is_log: bool
) -> Axes:
    """Draw where a ratio is 1, with intervals: it pays on the side that the mark points to.

    Parameters
    ----------
    table
        One row a crossing: ``across`` (a number, or a word), ``place``, ``low`` and ``high`` (an end that
        is missing is drawn at the place), ``gains`` (``below`` or ``above`` the place), and ``series``.
    axes
        Where to draw.
    along, across
        Keys of the axis that crossings lie on (drawn upwards) and of the other.
    series
        Column of the groups; None: one.
    is_log
        The places have equal ratios rather than equal steps.
    """
    groups = [(None, table)] if series is None else list(table.groupby(series, observed=True, sort=False))
    is_number = table[across].dtype.kind in "if"
    words = [] if is_number else list(dict.fromkeys(table[across]))
    for number, (name, rows) in enumerate(groups):
        drawn = look(number)
        x = rows[across] if is_number else [words.index(word) for word in rows[across]]
        ends = [(rows["place"] - rows["low"]).fillna(0.0), (rows["high"] - rows["place"]).fillna(0.0)]
        axes.errorbar(
            x,
            rows["place"],
            yerr=np.array(ends),
            color=drawn.color,
            linestyle="none",
            linewidth=1.0,
            capsize=2.5,
            label=None if name is None else named_value(str(series), name),
        )
        for gains, marker in (("below", "v"), ("above", "^")):
            chosen = (rows["gains"] == gains).to_numpy()
            axes.scatter(
                np.asarray(x)[chosen], rows["place"][chosen], s=42, color=drawn.color, marker=marker, zorder=3
            )
    if is_number:
        scale_along(axes, table[across])
    else:
        axes.set_xticks(range(len(words)), [short_value(word) for word in words])
    axes.set_yscale("log" if is_log else "linear")
    axes.yaxis.set_major_formatter(lambda place, _: short_value(float(place)))
    axes.set_xlabel(label(across))
    axes.set_ylabel(f"break-even: {label(along)}")
    if series is not None:
        legend_below(axes, 2)
    return axes
