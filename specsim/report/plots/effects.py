"""Effects: what each key of a sweep does to a result, two measures side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import BLACK, BLUE, ORANGE
from specsim.report.plots.axis import legend_below

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_effects(table: pd.DataFrame, axes: Axes, *, main: str, other: str, quantity: str) -> Axes:
    """Draw two measures of each parameter's effect with their intervals.

    Parameters
    ----------
    table
        ``parameter``, ``main``, ``other``, and ``main_half_width``, ``other_half_width`` of their 95 %
        intervals (missing: none); rows in the order to be drawn.
    axes
        Where to draw.
    main, other
        What the measures are called.
    quantity
        Label of the axis.
    """
    for name, column, shift, color, hatch in (
        (main, "main", -0.2, BLUE, ""),
        (other, "other", 0.2, ORANGE, "///"),
    ):
        axes.barh(
            [place + shift for place in range(len(table))],
            table[column],
            xerr=table[f"{column}_half_width"].fillna(0.0),
            height=0.36,
            color=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
            ecolor=BLACK,
            error_kw={"elinewidth": 1.0, "capsize": 2.0},
            label=name,
        )
    axes.set_yticks(range(len(table)), [str(name) for name in table["parameter"]])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(quantity)
    legend_below(axes, 2)
    return axes
