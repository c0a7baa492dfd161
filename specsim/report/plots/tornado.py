"""Tornado: how far each parameter moves a result, the widest on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import BLUE, GREY, ORANGE
from specsim.report.plots.axis import legend_below
from specsim.report.plots.labels import label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_tornado(table: pd.DataFrame, axes: Axes, *, value: str, center: float) -> Axes:
    """Draw the result at the low and the high end of each parameter, all others as they are.

    Parameters
    ----------
    table
        ``parameter``, ``at_low``, ``at_high``: the result at either end; rows in the order to be drawn.
    axes
        Where to draw.
    value
        Name of the result, for the label.
    center
        The result where nothing is changed.
    """
    places = list(range(len(table)))
    for name, column, color, hatch in (
        ("at its low end", "at_low", ORANGE, "///"),
        ("at its high end", "at_high", BLUE, ""),
    ):
        axes.barh(
            places,
            table[column] - center,
            left=center,
            height=0.6,
            color=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
            label=name,
        )
    axes.axvline(center, color=GREY, linewidth=1.0)
    axes.set_yticks(places, [str(name) for name in table["parameter"]])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(label(value))
    legend_below(axes, 2)
    return axes
