"""The roofline of a device with the operating points of a run (Williams, Waterman and Patterson 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specsim.report.palette import GREY, look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The roof: datasheet bandwidth and peak of all devices together."""

    name: str
    bandwidth_bytes_per_s: float
    peak_flops_per_s: float


def plot_roofline(points: pd.DataFrame, ceiling: Ceiling, axes: Axes) -> Axes:
    """Draw achieved arithmetic against operational intensity below the roof of the device.

    Parameters
    ----------
    points
        ``name``, ``flops_per_byte``, ``flops_per_s``; one row an operating point, such as draft, verify
        and prefill.
    ceiling
        The roof.
    axes
        Where to draw.
    """
    ridge = ceiling.peak_flops_per_s / ceiling.bandwidth_bytes_per_s
    ends = [*points["flops_per_byte"], ridge]
    intensity = np.geomspace(min(ends) / 4.0, max(ends) * 8.0, 200)
    roof = np.minimum(intensity * ceiling.bandwidth_bytes_per_s, ceiling.peak_flops_per_s)
    axes.plot(intensity, roof, color=GREY, label=f"{ceiling.name}, datasheet")
    axes.axvline(ridge, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
    places = points[["flops_per_byte", "flops_per_s"]].to_numpy(dtype=np.float64)
    for number, (name, (flops_per_byte, flops_per_s)) in enumerate(zip(points["name"], places, strict=True)):
        drawn = look(number)
        axes.plot(
            [flops_per_byte],
            [flops_per_s],
            color=drawn.color,
            marker=drawn.marker,
            markersize=8,
            linestyle="none",
            label=str(name),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operational intensity, FLOP/byte")
    axes.set_ylabel("arithmetic, FLOP/s")
    axes.legend(fontsize=8)
    return axes
