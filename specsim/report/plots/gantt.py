"""One request on the clock: when it waited, was prefilled, drafted and verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specsim.report.palette import BLACK, BLUE, GREY, ORANGE, SKY_BLUE, Look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LOOKS = {
    "waits": Look("#d9d9d9", "o", "-", ""),
    "prefill": Look(SKY_BLUE, "o", "-", "..."),
    "draft": Look(ORANGE, "o", "-", "///"),
    "verify": Look(BLUE, "o", "-", ""),
    "decode": Look(GREY, "o", "-", ""),
    "others": Look("#ffffff", "o", "-", "xxx"),
}


def plot_request_gantt(table: pd.DataFrame, axes: Axes) -> Axes:
    """Draw what the devices did for one request, a lane for each arm and model.

    Parameters
    ----------
    table
        ``lane``, ``activity`` (waits, prefill, draft, verify, decode, others), ``start_s`` since the
        arrival, and ``duration_s``; one row a bar, lanes in the order of their first row.
    axes
        Where to draw.
    """
    lanes = list(dict.fromkeys(table["lane"]))
    for (lane, activity), rows in table.groupby(["lane", "activity"], observed=True, sort=False):
        look = _LOOKS[str(activity)]
        axes.broken_barh(
            list(zip(rows["start_s"], rows["duration_s"], strict=True)),
            (lanes.index(lane) - 0.35, 0.7),
            facecolor=look.color,
            hatch=look.hatch,
            edgecolor=BLACK if activity == "others" else "white",
            linewidth=0.4,
            label=str(activity),
        )
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
    axes.locator_params(axis="x", nbins=6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("time since arrival, s")
    handles, names = axes.get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    axes.legend(
        unique.values(), unique.keys(), loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=5, fontsize=8
    )
    return axes
