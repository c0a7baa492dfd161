"""Where time, joules or operations went: stacked bars, one an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import PARTS
from specsim.report.plots.axis import legend_below

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PART_NAMES = {
    "prefill": "prefill",
    "draft": "draft, kept tokens",
    "verify_accepted": "verify, kept tokens",
    "wasted": "wasted on rejected",
    "idle": "idle",
}


def plot_parts(table: pd.DataFrame, axes: Axes, *, quantity: str) -> Axes:
    """Draw the parts of a quantity, stacked, a bar for each arm.

    Parameters
    ----------
    table
        Amounts by part (index, of ``PARTS``) and arm (columns).
    axes
        Where to draw.
    quantity
        Label of the axis, with its unit.
    """
    for place, arm in enumerate(table.columns):
        amounts = table[arm].astype(float).to_dict()
        left = 0.0
        for part, look in PARTS.items():
            if part not in amounts:
                continue
            amount = amounts[part]
            axes.barh(
                place,
                amount,
                left=left,
                height=0.6,
                color=look.color,
                hatch=look.hatch,
                edgecolor="white",
                linewidth=0.5,
                label=PART_NAMES[part] if place == 0 else None,
            )
            left += amount
    axes.set_yticks(range(len(table.columns)), list(table.columns))
    axes.invert_yaxis()
    axes.locator_params(axis="x", nbins=6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(quantity)
    legend_below(axes, 3, drop=0.28)
    return axes
