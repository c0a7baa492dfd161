"""The report of a sweep: what varies, where speculation pays, and every point."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from specsim.arrays import Bools, Floats
from specsim.config import parse
from specsim.errors import ConfigError
from specsim.report.figures import Plot
from specsim.report.html import HtmlTable, Page, Section, draw, render
from specsim.report.plots import plot_against_batch, plot_map, plot_pareto
from specsim.report.plots.labels import label
from specsim.report.what_if import WhatIf, shipped_devices, what_if
from specsim.scenario import scenario_of
from specsim.sweep.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = (
    "verdict.pays",
    "speedup.tpot",
    "speedup.throughput",
    "speedup.energy",
    "speculation.mean_tpot_ms",
    "speculation.p99_ttft_ms",
    "speculation.output_throughput",
    "speculation.energy_per_token_joules",
    "speculation.spec_decode_acceptance_length",
    "baseline.mean_tpot_ms",
    "baseline.output_throughput",
)
"""Metrics in the table of points, as far as the sweep has them."""

_START_ACCEPTANCE = 0.7
"""Where the panel's slider begins; a sweep has no one acceptance rate."""

_RATIOS = ("speedup.tpot", "speedup.throughput", "speedup.energy")
_MOST_LINES = 8
"""Lines of one plot that can be told apart."""


def sweep_report(sweep: SweepTable) -> str:
    """Return the report of a sweep as HTML text.

    Parameters
    ----------
    sweep
        Its table.
    """
    points = sweep.frame()
    about = sweep.about
    panel, without_panel = _what_if(sweep)
    page = Page(
        title=f"Sweep of {about.get('scenario', 'a scenario')}",
        description=f"Over {', '.join(label(axis) for axis in sweep.axes)}.",
        verdict=_verdict(sweep, points),
        sections=(
            Section("figures", "In pictures", figures=draw(sweep_plots(sweep))),
            Section("points", "Every point", tables=(_point_table(sweep, points),)),
        ),
        what_if=panel,
        provenance=[
            (name.replace("_", " "), str(value))
            for name, value in about.items()
            if isinstance(value, (str, int, float)) and not isinstance(value, bool)
        ],
        notes=(("Left out", without_panel),),
        configurations=(("How the sweep was made", json.dumps(about, indent=2, ensure_ascii=False)),),
        version=str(about.get("specsim_version", "")),
    )
    return render(page)


def sweep_plots(sweep: SweepTable) -> Iterator[Plot]:
    """Yield the plots that a sweep's axes allow: lines over one axis of numbers, maps over two, Pareto."""
    points = sweep.frame()
    points = points[points["status"] == "ok"]
    ratios = [name for name in _RATIOS if name in points and bool(points[name].notna().any())]
    varied = [axis for axis in sweep.axes if len(points[axis].unique()) > 1]
    lined = [axis for axis in varied if _is_positive(points, axis)]
    for ratio in ratios:
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
    x = max(lined, key=lambda axis: points[axis].nunique())
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
    # The axis with more values lies across.
    y, x = sorted(varied, key=lambda axis: points[axis].nunique())
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


def _what_if(sweep: SweepTable) -> tuple[WhatIf | None, list[str]]:
    """Return the live panel's tables for the scenario swept around, or why there are none."""
    base = sweep.about.get("base")
    try:
        scenario = scenario_of(parse(json.dumps(base), file="base of the sweep"))
    except ConfigError as error:
        return None, [f"No live panel: {' '.join(str(error).split())}"]
    lengths = scenario.request_classes()[0].lengths
    context_tokens = (lengths.prompt_tokens or 0) + (lengths.output_tokens or 0) // 2
    panel = what_if(
        scenario,
        context_tokens=context_tokens,
        acceptance_rate=_START_ACCEPTANCE,
        batch=scenario.max_num_sequences,
        devices=shipped_devices(),
    )
    return panel, []


def _verdict(sweep: SweepTable, points: pd.DataFrame) -> str:
    done = points[points["status"] == "ok"]
    failed = f" {sweep.num_failed} failed." if sweep.num_failed else ""
    if "speedup.tpot" not in done or not bool(done["speedup.tpot"].notna().any()):
        return f"{len(points)} runs.{failed}"
    pays = int((done["verdict.pays"] == True).sum())  # noqa: E712  null is undecided
    best = done.iloc[int(np.nanargmax(done["speedup.tpot"].to_numpy(dtype=np.float64)))]
    where = ", ".join(f"{axis} {best[axis]}" for axis in sweep.axes)
    return (
        f"Speculation pays in {pays} of {len(done)} runs.{failed}"
        f" Largest speed-up per token: {best['speedup.tpot']:.2f}x at {where}."
    )


def _point_table(sweep: SweepTable, points: pd.DataFrame) -> HtmlTable:
    metrics = [name for name in _SHOWN if name in points]
    errors = ["error"] if sweep.num_failed else []
    columns = [*sweep.axes, *metrics, *errors]
    rows = [
        tuple(_cell(value) for value in row)
        for row in points[["point", *columns]].itertuples(index=False, name=None)
    ]
    return HtmlTable(f"{len(rows)} runs", ("point", *columns), rows)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_positive(points: pd.DataFrame, axis: str) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    values = points[axis]
    return is_numeric_dtype(values) and not is_bool_dtype(values) and bool((values > 0).all())
