"""Plots of a sweep, as far as its axes and design allow, each with a reading of one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from specsim.arrays import Bools, Floats
from specsim.report.analysis_plots import analysis_plots, found_crossings, place_in_words
from specsim.report.figures import Plot
from specsim.report.numbers import figure
from specsim.report.plots import plot_against_batch, plot_pareto, plot_spread
from specsim.report.plots.labels import sentence, words
from specsim.report.plots.values import named_value, short_value
from specsim.report.sweep_maps import sweep_maps, why_no_map
from specsim.sweep.break_even import CurvePoint, crossings
from specsim.sweep.sweep import SENSITIVITY_DESIGNS
from specsim.sweep.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

_RATIOS = ("speedup.tpot", "speedup.throughput", "speedup.energy")
_LOADS = ("workload.max_concurrency", "workload.request_rate")
"""Axes that lie across where they are varied."""
_FILLED_DESIGNS = ("grid", "zip")
"""Designs whose points lie on lines along an axis."""
_MOST_AXES = 3
"""Axes that lines and maps can show."""
_MOST_LINES = 8
"""Lines of one plot that can be told apart."""
_MOST_BANDS = 2
"""Lines whose intervals can be told apart."""
_MOST_TURNS = 4
"""Lines whose break-even is said in words."""
_MOST_SPREADS = 6
"""Axes of which each has a plot of its own."""


def sweep_plots(sweep: SweepTable) -> Iterator[Plot]:
    """Yield the plots that a sweep's axes and design allow.

    What the analysis found comes first; then lines over one axis and maps over two or three of a grid, or
    the spread over each axis of a sample; then latency against throughput.
    """
    points, varied = _drawn(sweep)
    ratios = [name for name in _RATIOS if _is_known(points, name)]
    design = sweep.about.get("design")
    yield from analysis_plots(sweep)
    if design in _FILLED_DESIGNS and len(varied) <= _MOST_AXES:
        for ratio in ratios:
            yield from _lines(sweep, points, ratio, varied)
            yield from sweep_maps(points, ratio, varied, loads=_LOADS)
    elif design != "tornado":
        for ratio in ratios[:1]:
            yield from _spreads(points, ratio, varied)
    if design not in SENSITIVITY_DESIGNS:
        yield from _pareto(points)


def undrawn(sweep: SweepTable) -> Iterator[str]:
    """Yield what `sweep_plots` leaves out although it was varied, and why, as sentences."""
    points, varied = _drawn(sweep)
    design = sweep.about.get("design")
    if design in _FILLED_DESIGNS and 2 <= len(varied) <= _MOST_AXES:
        reason = why_no_map(points, varied, loads=_LOADS)
        if reason:
            yield reason
    elif design != "tornado":
        rest = _spread_axes(points, varied)[_MOST_SPREADS:]
        if rest:
            yield f"Not drawn over {', '.join(map(words, rest))}: {_MOST_SPREADS} axes are, the first ones."


def _drawn(sweep: SweepTable) -> tuple[pd.DataFrame, list[str]]:
    """Return the runs that came out, and the axes that differ among them."""
    points = axis_frame(sweep)
    points = points[points["status"] == "ok"]
    # Seeds are replications by another name: a plot shows their mean.
    return points, [axis for axis in sweep.axes if axis != "seed" and len(points[axis].unique()) > 1]


def axis_frame(sweep: SweepTable) -> pd.DataFrame:
    """Return the table with axes of words in the order of the sweep, and without points between its lines.

    A search for break-even adds points to single lines; over two axes or more they would leave holes.
    """
    import pandas as pd

    points = sweep.frame()
    for axis in sweep.axes:
        if points[axis].dtype.kind not in "iuf":
            points[axis] = pd.Categorical(
                points[axis], categories=list(dict.fromkeys(points[axis])), ordered=True
            )
    if len(sweep.axes) > 1 and sweep.about.get("design") == "grid":
        along = points.groupby(sweep.axes[0], observed=True)["point"].transform("size")
        points = points[along == along.max()]
    return points


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


def _lines(sweep: SweepTable, points: pd.DataFrame, ratio: str, varied: list[str]) -> Iterator[Plot]:
    lined = [axis for axis in varied if _is_number(points, axis)]
    x = next((axis for axis in _LOADS if axis in lined), lined[0] if lined else None)
    others = [axis for axis in varied if axis != x]
    if x is None or len(others) > 1 or (others and points[others[0]].nunique() > _MOST_LINES):
        return
    series = others[0] if others else None
    by = [x] if series is None else [series, x]
    ends = [f"{ratio}.ci_low", f"{ratio}.ci_high"]
    num_lines = points[series].nunique() if series else 1
    is_banded = (
        num_lines <= _MOST_BANDS
        and not points.duplicated(by).any()
        and all(_is_known(points, end) for end in ends)
    )
    means = points.groupby(by, observed=True, as_index=False)[[ratio, *(ends if is_banded else [])]].mean()
    marked = found_crossings(sweep) if series is None and sweep.about.get("metric") == ratio else None
    low, high = ends if is_banded else (None, None)
    gains = int((means[ratio] > 1).sum())
    turns = _turns(means, x, series, ratio) if marked is None else place_in_words(sweep)
    yield Plot(
        f"{ratio}-lines".replace(".", "-"),
        f"{sentence(words(ratio))} over {words(x)}",
        f"From {figure(means[ratio].min())} to {figure(means[ratio].max())},"
        f" above 1 in {gains} of {len(means)} points.{turns}",
        lambda axes: plot_against_batch(
            means, axes, batch=x, series=series, value=ratio, low=low, high=high, crossings=marked
        ),
        height_in=3.4,
    )


def _turns(means: pd.DataFrame, x: str, series: str | None, ratio: str) -> str:
    """Say where each of a few lines crosses 1, between the points simulated."""
    groups = [(None, means)] if series is None else list(means.groupby(series, observed=True, sort=False))
    if len(groups) > _MOST_TURNS:
        return ""
    said = []
    for name, rows in groups:
        line = [
            CurvePoint(float(place), float(mean), None, None)
            for place, mean in rows.sort_values(x)[[x, ratio]].dropna().itertuples(index=False, name=None)
        ]
        places = [figure(crossing.place) for crossing in crossings(line)]
        if places:
            of = "" if series is None else f" ({named_value(series, name)})"
            said.append(f"{' and '.join(places)}{of}")
    return f" Break-even near {words(x)} {', '.join(said)}." if said else ""


def _spreads(points: pd.DataFrame, ratio: str, varied: list[str]) -> Iterator[Plot]:
    for axis in _spread_axes(points, varied)[:_MOST_SPREADS]:
        middle = float(points[axis].median())
        halves = [points[points[axis] < middle][ratio], points[points[axis] >= middle][ratio]]
        shares = [f"{int((half > 1).sum())} of {int(half.notna().sum())}" for half in halves]
        yield Plot(
            f"spread-{axis}".replace(".", "-"),
            f"{sentence(words(ratio))} over {words(axis)}",
            f"Above 1 in {shares[0]} points below {named_value(axis, middle)}, in {shares[1]} from there on.",
            lambda axes, axis=axis: plot_spread(points, axes, x=axis, value=ratio),  # type: ignore[misc]
        )


def _spread_axes(points: pd.DataFrame, varied: list[str]) -> list[str]:
    return [axis for axis in varied if _is_number(points, axis)]


def _pareto(points: pd.DataFrame) -> Iterator[Plot]:
    latency, throughput = "speculation.mean_tpot_ms", "speculation.output_throughput"
    energy = "speculation.energy_per_token_joules"
    if not (_is_known(points, latency) and _is_known(points, throughput)):
        return
    num_without = int(points[energy].isna().sum()) if _is_known(points, energy) else len(points)
    has_energy = num_without == 0
    criteria = [points[latency], -points[throughput], *([points[energy]] if has_energy else [])]
    costs = np.column_stack([np.asarray(one, dtype=np.float64) for one in criteria])
    marked = points.assign(is_best=not_dominated(costs))
    best = marked[marked["is_best"]].sort_values(latency)
    ends = [
        f"{short_value(float(row[latency]))} ms at {short_value(float(row[throughput]))} tokens/s"
        for _, row in best.iloc[[0, -1]].iterrows()
    ]
    yield Plot(
        "pareto",
        "Latency, throughput" + (" and energy" if has_energy else ""),
        f"Not dominated (none is better in one and as good in the rest): {len(best)} of {len(points)} points,"
        f" {' to '.join(dict.fromkeys(ends))}." + _of_joules(num_without, len(points)),
        lambda axes: plot_pareto(
            marked, axes, x=latency, y=throughput, energy=energy if has_energy else None, is_best="is_best"
        ),
        height_in=3.6,
    )


def _of_joules(num_without: int, num_points: int) -> str:
    """Say what joules are in a picture; a device that has none must not drop out of it."""
    if num_without == 0:
        return " Larger marks: more joules a token."
    return "" if num_without == num_points else f" Joules do not count: {num_without} points have none."


def _is_known(points: pd.DataFrame, name: str) -> bool:
    return name in points and bool(points[name].notna().any())


def _is_number(points: pd.DataFrame, axis: str) -> bool:
    return points[axis].dtype.kind in "iuf"
