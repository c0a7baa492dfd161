"""The report of a sweep: what varies, where speculation pays, and every point."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from pydantic import JsonValue

from specsim.config import parse
from specsim.engine.population import populate
from specsim.errors import ConfigError
from specsim.report.html import HtmlTable, Page, Section, draw, render
from specsim.report.plots.labels import label, named_value, short_value, words
from specsim.report.sweep_plots import sweep_plots
from specsim.report.what_if import WhatIf, shipped_devices, what_if
from specsim.scenario import scenario_of
from specsim.streams import RandomStreams
from specsim.sweep.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = (
    "verdict.pays",
    "speedup.tpot",
    "speedup.throughput",
    "speedup.energy",
    "speedup.cost",
    "speculation.mean_tpot_ms",
    "speculation.p99_ttft_ms",
    "speculation.output_throughput",
    "speculation.energy_per_token_joules",
    "speculation.usd_per_mtok",
    "speculation.spec_decode_acceptance_length",
    "baseline.mean_tpot_ms",
    "baseline.output_throughput",
)
"""Metrics in the table of points, as far as the sweep has them."""

_ANALYSES = {
    "break_even": "Break-even",
    "tornado": "One parameter at a time",
    "sobol": "Shares of the variance (Sobol')",
    "morris": "Effects of a step (Morris)",
    "schedule": "Smallest lookahead whose interval reaches the best, by users at once",
}
_HEADS = {
    "lowest": "from",
    "highest": "to",
    "num_speculative_tokens": "draft tokens a round, K",
    "low": "from",
    "high": "to",
    "gains": "above 1",
    "key": "parameter",
    "low_label": "low end",
    "high_label": "high end",
    "crosses_one": "alone across 1",
    "main": "main effect",
    "main_half_width": "±",
    "other": "second measure",
    "other_half_width": "±",
}
"""Titles of what the analysis found."""

_START_ACCEPTANCE = 0.7
"""Where the panel's slider begins; a sweep has no one acceptance rate."""


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
        description=f"Over {', '.join(map(words, sweep.axes))}.",
        verdict=_verdict(sweep, points),
        sections=(
            Section("figures", "In pictures", figures=draw(sweep_plots(sweep))),
            Section("points", "Every point", tables=(*_analysis_tables(sweep), _point_table(sweep, points))),
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


def _what_if(sweep: SweepTable) -> tuple[WhatIf | None, list[str]]:
    """Return the live panel's tables for the scenario swept around, or why there are none."""
    base = sweep.about.get("base")
    try:
        scenario = scenario_of(parse(json.dumps(base), file="base of the sweep"))
        population = populate(scenario, RandomStreams(scenario.seed))
    except ConfigError as error:
        return None, [f"No live panel: {' '.join(str(error).split())}"]
    panel = what_if(
        scenario,
        context_tokens=round(population.mean_context_tokens),
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
    where = ", ".join(named_value(axis, best[axis]) for axis in sweep.axes)
    return (
        f"Speculation pays in {pays} of {len(done)} runs.{failed}"
        f" Largest speed-up per token: {best['speedup.tpot']:.2f}x at {where}"
        f" (the largest of {len(done)}: an upper end)."
    )


def _analysis_tables(sweep: SweepTable) -> Iterator[HtmlTable]:
    """Yield what was drawn from the points: places of break-even, bars, effects."""
    analysis = sweep.about.get("analysis")
    metric = label(str(sweep.about.get("metric")))
    for name, found in analysis.items() if isinstance(analysis, dict) else ():
        rows = [_flat(row) for row in found if isinstance(row, dict)] if isinstance(found, list) else []
        if rows:
            along = {"place": f"{words(sweep.axes[0])} at break-even"}
            head = tuple(along.get(key) or _HEADS.get(key) or label(key) for key in rows[0])
            cells = [tuple(_cell(value) for value in row.values()) for row in rows]
            yield HtmlTable(f"{_ANALYSES[name]}: {metric}", head, cells)


def _flat(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a row of the analysis with the other axes of a crossing as cells, and keys in words."""
    others = row.get("others")
    rest = {key: value for key, value in row.items() if key != "others"}
    if "key" in rest:
        rest["key"] = words(str(rest["key"]))
    return {**(others if isinstance(others, dict) else {}), **rest}


def _point_table(sweep: SweepTable, points: pd.DataFrame) -> HtmlTable:
    metrics = [name for name in _SHOWN if name in points and bool(points[name].notna().any())]
    errors = ["error"] if sweep.num_failed else []
    columns = [*sweep.varied, *metrics, *errors]
    rows = [
        tuple(_cell(value) for value in row)
        for row in points[["point", *columns]].itertuples(index=False, name=None)
    ]
    return HtmlTable(f"{len(rows)} runs", ("point", *map(label, columns)), rows)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return short_value(value)
