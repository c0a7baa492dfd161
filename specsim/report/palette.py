"""Colours, markers and hatches of every figure: told apart by the colour-blind, and in grey print.

Colours: Okabe and Ito 2008, "Color Universal Design". Each comes with a marker, a dash and a hatch of
its own, so no figure depends on colour alone. Surfaces: cividis (Nuñez, Anderton and Renslow 2018), and
where 1 divides gain from loss, ColorBrewer's PuOr (Harrower and Brewer 2003).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

BLACK = "#000000"
ORANGE = "#e69f00"
SKY_BLUE = "#56b4e9"
GREEN = "#009e73"
BLUE = "#0072b2"
VERMILION = "#d55e00"
PURPLE = "#cc79a7"
GREY = "#6b6b6b"

SEQUENTIAL_MAP = "cividis"
DIVERGING_MAP = "PuOr_r"


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is drawn."""

    color: str
    marker: str
    dash: str | tuple[int, tuple[int, ...]]
    hatch: str


_LOOKS = (
    Look(BLUE, "o", "-", ""),
    Look(VERMILION, "s", "--", "///"),
    Look(GREEN, "^", "-.", "..."),
    Look(PURPLE, "D", ":", "xxx"),
    Look(ORANGE, "v", (0, (5, 1)), "\\\\\\"),
    Look(SKY_BLUE, "P", (0, (3, 1, 1, 1)), "+++"),
    Look(BLACK, "X", (0, (1, 1)), "ooo"),
    Look(GREY, "*", (0, (7, 2, 1, 2)), "***"),
)

ARMS: Mapping[str, Look] = MappingProxyType({"baseline": _LOOKS[6], "speculation": _LOOKS[0]})
"""Looks of the two arms, the same in every figure."""

PARTS: Mapping[str, Look] = MappingProxyType(
    {
        "prefill": Look(SKY_BLUE, "o", "-", "..."),
        "draft": Look(ORANGE, "o", "-", "///"),
        "verify_accepted": Look(BLUE, "o", "-", ""),
        "wasted": Look(VERMILION, "o", "-", "xxx"),
        "idle": Look("#d9d9d9", "o", "-", ""),
    }
)
"""Looks of what time, energy and operations are spent on."""

STYLE: Mapping[str, object] = MappingProxyType(
    {
        "font.size": 9.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#d9d9d9",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "lines.markersize": 5.0,
        "hatch.linewidth": 0.5,
        "figure.constrained_layout.use": True,
        "svg.fonttype": "none",
    }
)
"""Settings of matplotlib for our figures; text stays text in SVG, so it can be searched and read aloud."""


def look(number: int) -> Look:
    """Return the look of the n-th series; they repeat after eight.

    Examples
    --------
    >>> look(0) == look(8), look(0) == look(1)
    (True, False)
    """
    return _LOOKS[number % len(_LOOKS)]
