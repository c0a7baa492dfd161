"""Maps of a sweep over two axes of a grid; of a third, its best lookahead or a map for each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from specsim.report.figures import Plot
from specsim.report.numbers import figure
from specsim.report.plots import plot_map
from specsim.report.plots.labels import sentence, words
from specsim.report.plots.values import named_value

if TYPE_CHECKING:
    import pandas as pd

_LOOKAHEAD = "speculative_config.num_speculative_tokens"
_MOST_MAPS = 4
"""Values of a third axis that each have a map."""
_MOST_CELLS = 250
"""Columns or rows of a map that can be seen."""


def sweep_maps(
    points: pd.DataFrame, ratio: str, varied: Sequence[str], *, loads: Sequence[str]
) -> Iterator[Plot]:
    """Yield maps of a ratio over two or three axes, unless `why_no_map` says why not.

    Over three, the lookahead is taken at its best; of another third axis each value has a map, up to four.

    Parameters
    ----------
    points
        One row a run that came out.
    ratio
        Column of the ratio.
    varied
        The axes.
    loads
        Axes that lie across where they are varied.
    """
    if not 2 <= len(varied) <= 3 or why_no_map(points, varied, loads=loads):
        return
    third = _third(points, varied, loads)
    axes = _across_last(points, [axis for axis in varied if axis != third], loads)
    if third is None:
        yield _map(points, ratio, axes)
    elif third == _LOOKAHEAD:
        yield from _best_lookahead(points, ratio, axes)
    else:
        for number, (value, rows) in enumerate(points.groupby(third, observed=True)):
            yield _map(rows, ratio, axes, where=f", {named_value(third, value)}", name=f"-{number}")


def why_no_map(points: pd.DataFrame, varied: Sequence[str], *, loads: Sequence[str]) -> str:
    """Return why there is no map over two or three axes, as a sentence; empty if there is one.

    Parameters
    ----------
    points, varied, loads
        As for `sweep_maps`.
    """
    third = _third(points, varied, loads)
    counts = {axis: points[axis].nunique() for axis in varied}
    if third is not None and third != _LOOKAHEAD and counts[third] > _MOST_MAPS:
        return (
            f"No maps: {words(third)} has {counts[third]} values, and of up to {_MOST_MAPS} each has its own;"
            " the table of points has them all."
        )
    wide = [axis for axis in varied if axis != third and counts[axis] > _MOST_CELLS]
    if wide:
        return (
            f"No map: {words(wide[0])} has {counts[wide[0]]} values, and cells of more than {_MOST_CELLS}"
            " cannot be seen; the table of points has them all."
        )
    return ""


def _third(points: pd.DataFrame, varied: Sequence[str], loads: Sequence[str]) -> str | None:
    """Return the axis of three that no map has: the lookahead, else the one of fewest values."""
    if len(varied) < 3:
        return None
    if _LOOKAHEAD in varied:
        return _LOOKAHEAD
    return min((axis for axis in varied if axis not in loads), key=lambda axis: points[axis].nunique())


def _across_last(points: pd.DataFrame, axes: Sequence[str], loads: Sequence[str]) -> list[str]:
    """Return y and x: the load lies across, else the axis with more values."""
    return sorted(axes, key=lambda axis: (axis in loads, points[axis].nunique()))


def _map(points: pd.DataFrame, ratio: str, axes: Sequence[str], *, where: str = "", name: str = "") -> Plot:
    y, x = axes
    table = points.pivot_table(index=y, columns=x, values=ratio, aggfunc="mean", observed=True)
    return _plot(table, ratio, (y, x), f"{sentence(words(ratio))}{where}", f"{ratio}-map{name}", "")


def _best_lookahead(points: pd.DataFrame, ratio: str, axes: Sequence[str]) -> Iterator[Plot]:
    """Yield the ratio at the best lookahead of each cell, and that lookahead."""
    y, x = axes
    means = points.groupby([y, x, _LOOKAHEAD], observed=True)[ratio].mean().reset_index()
    best = means.loc[means.groupby([y, x], observed=True)[ratio].idxmax().dropna()]
    table = best.pivot_table(index=y, columns=x, values=ratio, observed=True)
    note = " The best of several K is an upper end."
    yield _plot(table, ratio, (y, x), f"{sentence(words(ratio))} at its best K", f"{ratio}-map", note)
    chosen = best.pivot_table(index=y, columns=x, values=_LOOKAHEAD, observed=True)
    ends = dict.fromkeys(f"{end:g}" for end in (chosen.min().min(), chosen.max().max()))
    yield Plot(
        f"{ratio}-best-k".replace(".", "-"),
        f"Best K for {words(ratio)}",
        f"{' to '.join(ends)} draft tokens a round.",
        lambda axes: plot_map(chosen, axes, x=x, y=y, value=_LOOKAHEAD, is_ratio=False),
        height_in=_height_in(chosen),
    )


def _plot(table: pd.DataFrame, ratio: str, axes: tuple[str, str], title: str, name: str, note: str) -> Plot:
    y, x = axes
    values = table.to_numpy(dtype=np.float64)
    known = np.isfinite(values)
    row, column = divmod(int(np.argmax(np.where(known, values, -np.inf))), values.shape[1])
    gains = int((values[known] > 1.0).sum())
    line = "" if gains in (0, known.sum()) else " The black line is break-even."
    return Plot(
        name.replace(".", "-"),
        title,
        f"Above 1 in {gains} of {int(known.sum())} cells, most {figure(values[row, column])}"
        f" at {named_value(y, table.index[row])}, {named_value(x, table.columns[column])}.{line}{note}",
        lambda axes: plot_map(table, axes, x=x, y=y, value=ratio),
        height_in=_height_in(table),
    )


def _height_in(table: pd.DataFrame) -> float:
    return 2.2 + 0.26 * min(len(table), 30)
