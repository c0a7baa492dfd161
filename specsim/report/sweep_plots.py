"""Plots of a sweep, as far as its axes allow: lines, maps, tornado, Pareto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from specsim.arrays import Bools, Floats
from specsim.report.figures import Plot
from specsim.report.plots import plot_against_batch, plot_map, plot_pareto, plot_tornado
from specsim.report.plots.labels import label, shown_value
from specsim.sweep.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

_RATIOS = ("speedup.tpot", "speedup.throughput", "speedup.energy")
_LOADS = ("workload.max_concurrency", "workload.request_rate")
"""Axes that lie across where they are varied."""
_FILLED_DESIGNS = ("grid", "zip")
"""Designs whose points lie on lines along an axis."""
_MOST_LINES = 8
"""Lines of one plot that can be told apart."""


def sweep_plots(sweep: SweepTable) -> Iterator[Plot]:
    """Yield the plots that a sweep's axes allow: lines over one axis of numbers, maps over two, Pareto."""
    points = sweep.frame()
    points = points[points["status"] == "ok"]
    ratios = [name for name in _RATIOS if name in points and bool(points[name].notna().any())]
    varied = [axis for axis in sweep.axes if len(points[axis].unique()) > 1]
    lined = [axis for axis in varied if _is_positive(points, axis)]
    yield from _tornado(sweep)
    for ratio in ratios if sweep.about.get("design") in _FILLED_DESIGNS else []:
        if lined:
            yield from _lines(points, ratio, lined, varied)
        if len(varied) == 2:
            yield _map(points, ratio, varied)
    columns = ("speculation.mean_tpot_ms", "speculation.output_throughput")
    if len(points) and all(name in points and bool(points[name].notna().any()) for name in columns):
        yield _pareto(points, *columns)


def not_dominated(costs: Floats) -> Bools:
    """Tell which rows no other row beats: no worse in every column and better in one; lower is better.

    Parameters
    ----------
    costs
        One row a point, [points, criteria]; a row with NaN is never chosen and beats none.

    Examples
    --------
    >>> not_dominated(np.array([[1.0, 3.0], [2.0, 1.0], [2.0, 4.0]])).tolist()
    [True, True, False]
    """
    known: Bools = np.all(np.isfinite(costs), axis=1)
    chosen = known.copy()
    for number in np.flatnonzero(known):
        no_worse = np.all(costs <= costs[number], axis=1)
        better = np.any(costs < costs[number], axis=1)
        chosen[number] = not np.any(no_worse & better & known)
    return chosen


def _lines(points: pd.DataFrame, ratio: str, lined: list[str], varied: list[str]) -> Iterator[Plot]:
    x = next((axis for axis in _LOADS if axis in lined), lined[0])
    others = [axis for axis in varied if axis != x]
    few = [axis for axis in others if points[axis].nunique() <= _MOST_LINES]
    if others and not (len(others) == 1 and few):
        return
    series = few[0] if few else None
    by = [x] if series is None else [x, series]
    means = points.groupby(by, observed=True, as_index=False)[[ratio]].mean()
    yield Plot(
        f"{ratio}-lines".replace(".", "-"),
        f"{label(ratio)} over {label(x)}",
        f"{label(ratio)} from {means[ratio].min():.3g} to {means[ratio].max():.3g} over {label(x)}.",
        lambda axes: plot_against_batch(means, axes, batch=x, series=series, value=ratio),
        height_in=3.4,
    )


def _map(points: pd.DataFrame, ratio: str, varied: list[str]) -> Plot:
    # The load lies across, else the axis with more values.
    y, x = sorted(varied, key=lambda axis: (axis in _LOADS, points[axis].nunique()))
    table = points.pivot_table(index=y, columns=x, values=ratio, aggfunc="mean", observed=True)
    return Plot(
        f"{ratio}-map".replace(".", "-"),
        f"Where it pays: {label(ratio)}",
        f"{label(ratio)} by {label(y)} and {label(x)}: above 1 in {int((table > 1).to_numpy().sum())}"
        f" of {int(table.notna().to_numpy().sum())} cells; the black line is break-even.",
        lambda axes: plot_map(table, axes, x=x, y=y, value=ratio),
        height_in=2.2 + 0.26 * min(len(table), 30),
    )


def _pareto(points: pd.DataFrame, latency: str, throughput: str) -> Plot:
    energy = "speculation.energy_per_token_joules"
    has_energy = energy in points and bool(points[energy].notna().any())
    criteria = [points[latency], -points[throughput], *([points[energy]] if has_energy else [])]
    costs = np.column_stack([np.asarray(one, dtype=np.float64) for one in criteria])
    marked = points.assign(is_best=not_dominated(costs))
    return Plot(
        "pareto",
        "Latency, throughput" + (" and energy" if has_energy else ""),
        f"{label(latency)} against {label(throughput)} of {len(points)} points;"
        f" {int(marked['is_best'].sum())} are not dominated.",
        lambda axes: plot_pareto(
            marked, axes, x=latency, y=throughput, energy=energy if has_energy else None, is_best="is_best"
        ),
        height_in=3.6,
    )


def _tornado(sweep: SweepTable) -> Iterator[Plot]:
    """Yield the tornado where the sweep is one and its middle is known."""
    import pandas as pd

    analysis = sweep.about.get("analysis")
    if not isinstance(analysis, dict):
        return
    bars, center = analysis.get("tornado"), analysis.get("at_scenario")
    if not isinstance(bars, list) or not isinstance(center, (int, float)):
        return
    table = pd.DataFrame(bars)
    table = table.assign(parameter=[f"{label(key)}\n{low} … {high}" for key, low, high in _ends(table)])
    metric = str(sweep.about.get("metric"))
    yield Plot(
        "tornado",
        f"What moves {label(metric)}",
        f"{label(metric)} at both ends of each parameter, {center:.3g} as the scenario is: "
        + "; ".join(
            f"{bar['key']} {bar['at_low']} to {bar['at_high']}" for bar in bars if isinstance(bar, dict)
        )
        + ".",
        lambda axes: plot_tornado(table, axes, value=metric, center=float(center)),
        height_in=1.4 + 0.5 * len(table),
    )


def _ends(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    rows = table[["key", "low_label", "high_label"]].itertuples(index=False, name=None)
    return [(str(key), shown_value(low), shown_value(high)) for key, low, high in rows]


def _is_positive(points: pd.DataFrame, axis: str) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    values = points[axis]
    return is_numeric_dtype(values) and not is_bool_dtype(values) and bool((values > 0).all())
