"""Maps of a sweep over two axes of a grid; of a third, its best lookahead or a map for each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from specsim.report.figures import Plot
from specsim.report.plots import plot_map
from specsim.report.plots.labels import named_value, sentence, words

if TYPE_CHECKING:
    import pandas as pd

_LOOKAHEAD = "speculative_config.num_speculative_tokens"
_MOST_MAPS = 4
"""Values of a third axis that each have a map."""
_MOST_CELLS = 60
"""Columns or rows of a map that can be seen."""


def sweep_maps(
    points: pd.DataFrame, ratio: str, varied: Sequence[str], *, loads: Sequence[str]
) -> Iterator[Plot]:
    """Yield maps of a ratio over two or three axes, as far as their cells can be seen.

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
    if len(varied) == 2 and max(points[axis].nunique() for axis in varied) <= _MOST_CELLS:
        yield _map(points, ratio, _across_last(points, varied, loads))
    elif len(varied) == 3 and _LOOKAHEAD in varied:
        yield from _best_lookahead(
            points, ratio, _across_last(points, [a for a in varied if a != _LOOKAHEAD], loads)
        )
    elif len(varied) == 3:
        third = min((axis for axis in varied if axis not in loads), key=lambda axis: points[axis].nunique())
        others = _across_last(points, [axis for axis in varied if axis != third], loads)
        groups = list(points.groupby(third, observed=True))
        for number, (value, rows) in enumerate(groups if len(groups) <= _MOST_MAPS else []):
            yield _map(rows, ratio, others, where=f", {named_value(third, value)}", name=f"-{number}")


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
        f"Above 1 in {gains} of {int(known.sum())} cells, most {values[row, column]:.3g}"
        f" at {named_value(y, table.index[row])}, {named_value(x, table.columns[column])}.{line}{note}",
        lambda axes: plot_map(table, axes, x=x, y=y, value=ratio),
        height_in=_height_in(table),
    )


def _height_in(table: pd.DataFrame) -> float:
    return 2.2 + 0.26 * min(len(table), 30)
