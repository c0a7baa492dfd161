"""Predictions against measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import GREY, look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_predicted_against_measured(
    table: pd.DataFrame, axes: Axes, *, quantity: str = "time of a step, s", error: float = 0.1
) -> Axes:
    """Draw predictions against measurements on equal axes, with the diagonal and a band of error.

    Parameters
    ----------
    table
        ``measured``, ``predicted`` (both above 0) and ``group``, such as held-out and fitted rows.
    axes
        Where to draw; both axes are logarithmic.
    quantity
        What is measured, with its unit.
    error
        Relative half-width of the band.
    """
    low = float(table[["measured", "predicted"]].min().min()) / 1.3
    high = float(table[["measured", "predicted"]].max().max()) * 1.3
    axes.plot([low, high], [low, high], color=GREY, linewidth=1.0)
    axes.fill_between(
        [low, high],
        [low * (1 - error), high * (1 - error)],
        [low * (1 + error), high * (1 + error)],
        color=GREY,
        alpha=0.15,
        linewidth=0,
        label=f"within {100 * error:.0f} %",
    )
    for number, (group, rows) in enumerate(table.groupby("group", observed=True, sort=False)):
        drawn = look(number)
        axes.scatter(
            rows["measured"],
            rows["predicted"],
            s=14,
            color=drawn.color,
            marker=drawn.marker,
            alpha=0.7,
            linewidth=0,
            label=str(group),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.set_xlabel(f"measured: {quantity}")
    axes.set_ylabel("predicted")
    axes.legend(fontsize=8)
    return axes
