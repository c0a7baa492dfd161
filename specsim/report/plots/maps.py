"""Maps over two axes of a sweep: a cell a point, its number written in it, break-even where it is 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specsim.report.palette import DIVERGING_MAP, SEQUENTIAL_MAP
from specsim.report.plots.labels import label
from specsim.report.plots.values import short_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MOST_WRITTEN = 12
"""Columns beyond which numbers would no longer be read."""
_MOST_EDGED = 60
"""Columns or rows between which there is a white line."""
_MOST_NAMES = 16
"""Columns or rows that are all named; of more, every second or third is."""
_MOST_LETTERS = 44
"""Letters of all names below the columns that stand side by side; of more, they are turned."""


def plot_map(table: pd.DataFrame, axes: Axes, *, x: str, y: str, value: str, is_ratio: bool = True) -> Axes:
    """Draw a value over two axes: K × batch, device × batch.

    Parameters
    ----------
    table
        The value by y (index) and x (columns), both sorted as they shall be drawn; a missing value is a
        point that failed or was not simulated, and is drawn empty.
    axes
        Where to draw.
    x, y, value
        Names of the axes and of the value, for the labels.
    is_ratio
        1 divides gain from loss: two hues, white at 1, the same distance each way; cells where
        speculation pays are outlined. Otherwise one hue from least to most.
    """
    from matplotlib.colors import LogNorm, Normalize

    values = table.to_numpy(dtype=np.float64)
    known = values[np.isfinite(values)]
    if known.size == 0:
        axes.text(0.5, 0.5, "no value is known", transform=axes.transAxes, ha="center", va="center")
        return axes
    reach = max(float(np.max(known)), 1.0 / float(np.min(known)), 1.05) if is_ratio else 1.0
    scale: Normalize = (
        LogNorm(1.0 / reach, reach) if is_ratio else Normalize(float(known.min()), float(known.max()))
    )
    colors = DIVERGING_MAP if is_ratio else SEQUENTIAL_MAP
    image = axes.pcolormesh(
        np.ma.masked_invalid(values),
        cmap=colors,
        norm=scale,
        edgecolors="white" if max(values.shape) <= _MOST_EDGED else "face",
        linewidth=0.5,
    )
    if table.shape[1] <= _MOST_WRITTEN:
        _write_numbers(axes, values, image.cmap(scale(values)))
    if is_ratio:
        _outline_gains(axes, values > 1.0)
    _name_cells(axes, table)
    axes.grid(visible=False)
    axes.set_xlabel(label(x))
    axes.set_ylabel(label(y))
    if table.index.dtype.kind not in "iuf":
        # Words are read from the top.
        axes.invert_yaxis()
    bar = axes.figure.colorbar(image, ax=axes, label=label(value))
    bar.ax.minorticks_off()
    if is_ratio:
        ticks = sorted({1.0 / reach, 1.0, reach})
        bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    elif np.unique(known).size <= _MOST_NAMES:
        bar.set_ticks(np.unique(known).tolist(), labels=[short_value(float(one)) for one in np.unique(known)])
    return axes


def _name_cells(axes: Axes, table: pd.DataFrame) -> None:
    """Name columns and rows by their values, as many as there is room for."""
    across, up = (
        [short_value(name) for name in names] for names in (table.columns.tolist(), table.index.tolist())
    )
    for names, set_ticks in ((across, axes.set_xticks), (up, axes.set_yticks)):
        every = -(-len(names) // _MOST_NAMES)
        set_ticks(np.arange(len(names))[::every] + 0.5, names[::every])
    every = -(-len(across) // _MOST_NAMES)
    if sum(map(len, across[::every])) > _MOST_LETTERS:
        axes.tick_params(axis="x", labelrotation=35, labelsize=8)
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")


def _write_numbers(axes: Axes, values: np.ndarray, colors: np.ndarray) -> None:
    is_whole = bool(np.all(values[np.isfinite(values)] % 1 == 0))
    digits = 0 if is_whole else 2
    for (row, column), number in np.ndenumerate(values):
        if not np.isfinite(number):
            continue
        red, green, blue = (float(part) for part in colors[row, column, :3])
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{number:.{digits}f}" if abs(number) < 100 else f"{number:.0f}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if is_dark else "black",
        )


def _outline_gains(axes: Axes, gains: np.ndarray) -> None:
    """Draw the border between cells that gain and cells that do not."""
    rows, columns = gains.shape
    for row in range(rows):
        for column in range(columns):
            if column + 1 < columns and gains[row, column] != gains[row, column + 1]:
                axes.plot([column + 1, column + 1], [row, row + 1], color="black", linewidth=1.8)
            if row + 1 < rows and gains[row, column] != gains[row + 1, column]:
                axes.plot([column, column + 1], [row + 1, row + 1], color="black", linewidth=1.8)
