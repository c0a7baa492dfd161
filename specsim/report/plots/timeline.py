"""A quantity over simulated time: power, KV cache, batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import ARMS, GREY, look
from specsim.report.plots.axis import legend_below

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_over_time(
    table: pd.DataFrame, axes: Axes, *, quantity: str, limit: float | None = None, limit_name: str = "limit"
) -> Axes:
    """Draw a quantity over time, a line for each arm.

    Parameters
    ----------
    table
        ``arm``, ``time_s``, ``value``; the value holds from its time to the next.
    axes
        Where to draw.
    quantity
        Label of the y axis, with its unit.
    limit, limit_name
        A level that the quantity may not pass, such as the power cap, and its name.
    """
    for number, (arm, rows) in enumerate(table.groupby("arm", observed=True, sort=False)):
        drawn = ARMS.get(str(arm), look(number))
        axes.step(
            rows["time_s"],
            rows["value"],
            where="post",
            color=drawn.color,
            linestyle=drawn.dash,
            linewidth=1.2,
            label=str(arm),
        )
    if limit is not None:
        axes.axhline(limit, color=GREY, linewidth=1.0, linestyle=(0, (2, 2)), label=limit_name)
    axes.set_ylim(bottom=0.0)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel("time, s")
    axes.set_ylabel(quantity)
    legend_below(axes, 3, drop=0.28)
    return axes
