"""Acceptance by position in the draft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import BLUE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_acceptance_by_position(table: pd.DataFrame, axes: Axes) -> Axes:
    """Draw the share of rounds that keep the draft of each position.

    Parameters
    ----------
    table
        ``position`` (1 is the first draft token) and ``acceptance_rate``, unconditional: rounds that
        kept this token ÷ rounds that draft.
    axes
        Where to draw.
    """
    bars = axes.bar(table["position"], table["acceptance_rate"], color=BLUE, width=0.7)
    axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.set_xticks(list(table["position"]) if len(table) <= 20 else [])
    axes.set_ylim(0.0, 1.05)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("position in the draft")
    axes.set_ylabel("rounds that keep it")
    return axes
