"""The report of a sweep: what varies, where speculation pays, and every point."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import JsonValue

from specsim.config import parse
from specsim.engine.population import populate
from specsim.errors import ConfigError
from specsim.report.html import HtmlTable, Page, Section, draw, render
from specsim.report.numbers import ABSENT, figure
from specsim.report.opening import Met, opening, opening_note
from specsim.report.plots.labels import label, words
from specsim.report.plots.values import named_value, short_value
from specsim.report.sweep_plots import sweep_plots, undrawn
from specsim.report.sweep_words import (
    best_point,
    caveat_lines,
    claim_of,
    estimate_cell,
    headline,
    intervals_line,
    rows_of_points,
    same_at_every_point,
)
from specsim.report.what_if import WhatIf, shipped_devices, what_if
from specsim.results.metrics import Metrics
from specsim.scenario import scenario_of
from specsim.streams import RandomStreams
from specsim.sweep.estimates import point_estimates
from specsim.sweep.table import SweepTable
from specsim.sweep.tornado import LEFT_OUT

_SHOWN = (
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
_FIGURES = ("at_low", "at_high", "main", "main_half_width", "other", "other_half_width")
"""Of these, the figures; the rest are values of axes and claims."""


def sweep_report(sweep: SweepTable) -> str:
    """Return the report of a sweep as HTML text.

    Parameters
    ----------
    sweep
        Its table.
    """
    about = sweep.about
    panel, note = _what_if(sweep)
    fixed = same_at_every_point(sweep, named_value)
    page = Page(
        title=f"Sweep of {about.get('scenario', 'a scenario')}",
        description=f"Over {', '.join(map(words, sweep.varied or sweep.axes))}. {fixed}".strip(),
        verdict=headline(sweep, named_value),
        sections=(
            Section("trust", "How wide to read it", remarks=list(caveat_lines(sweep, named_value))),
            Section("figures", "In pictures", figures=draw(sweep_plots(sweep)), lines=list(undrawn(sweep))),
            Section(
                "points",
                "Every point",
                tables=(*_analysis_tables(sweep), _point_table(sweep)),
                lines=[intervals_line(sweep)],
            ),
        ),
        what_if=panel,
        what_if_note="" if panel is None else note,
        provenance=[
            (name.replace("_", " "), str(value))
            for name, value in about.items()
            if isinstance(value, (str, int, float)) and not isinstance(value, bool)
        ],
        notes=(("Left out", [note] if panel is None else []),),
        configurations=(("How the sweep was made", json.dumps(about, indent=2, ensure_ascii=False)),),
        version=str(about.get("specsim_version", "")),
    )
    return render(page)


def _what_if(sweep: SweepTable) -> tuple[WhatIf | None, str]:
    """Return the live panel's tables at the point that the verdict names, and what to say of it.

    Without a speed-up it is the first point that came out; where it is no scenario, there is no panel.
    """
    best = best_point(sweep)
    came_out = (row for row, status in enumerate(sweep.columns["status"]) if status == "ok")
    row = next(came_out, 0) if best is None else best[0]
    # A name of a device before a figure inside it, which it would replace.
    settings = [
        f"{axis}={sweep.columns[axis][row]}"
        for axis in sorted(sweep.axes, key=lambda axis: axis.count("."))
        if sweep.columns[axis][row] != LEFT_OUT
    ]
    try:
        base = parse(json.dumps(sweep.about.get("base")), file="base of the sweep")
        scenario = scenario_of(base, overrides=settings)
        population = populate(scenario, RandomStreams(scenario.seed))
    except ConfigError as error:
        return None, f"No live panel: {' '.join(str(error).split())}"

    baseline, speculation = (_metrics(sweep, row, arm) for arm in ("baseline", "speculation"))
    met = Met.of(baseline, speculation, None if best is None else best[1])
    panel = what_if(
        scenario,
        context_tokens=round(population.mean_context_tokens),
        start=opening(scenario, met),
        devices=shipped_devices(),
    )
    where = "the largest speed-up" if best is not None else "the first point"
    return panel, opening_note(panel, f"point {sweep.columns['point'][row]}, {where}")


def _metrics(sweep: SweepTable, row: int, arm: str) -> Metrics:
    """Return the metrics of one arm of a run by their names in its summary."""
    found = {
        name.removeprefix(f"{arm}."): values[row]
        for name, values in sweep.columns.items()
        if name.startswith(f"{arm}.")
    }
    return cast(Metrics, found)


def _analysis_tables(sweep: SweepTable) -> Iterator[HtmlTable]:
    """Yield what was drawn from the points: places of break-even, bars, effects."""
    analysis = sweep.about.get("analysis")
    metric = label(str(sweep.about.get("metric")))
    for name, found in analysis.items() if isinstance(analysis, dict) else ():
        rows = [_flat(row) for row in found if isinstance(row, dict)] if isinstance(found, list) else []
        if rows:
            along = {"place": f"{words(sweep.axes[0])} at break-even"}
            head = tuple(along.get(key) or _HEADS.get(key) or label(key) for key in rows[0])
            cells = [tuple(_cell(key, value) for key, value in row.items()) for row in rows]
            yield HtmlTable(f"{_ANALYSES[name]}: {metric}", head, cells)


def _flat(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a row of the analysis with the other axes of a crossing as cells, and keys in words."""
    others = row.get("others")
    rest = {key: value for key, value in row.items() if key != "others"}
    if "key" in rest:
        rest["key"] = words(str(rest["key"]))
    return {**(others if isinstance(others, dict) else {}), **rest}


def _point_table(sweep: SweepTable) -> HtmlTable:
    """Return a row a point: its axes, whether it pays, means over its replications, intervals of ratios."""
    points = rows_of_points(sweep)
    shown = [name for name in _SHOWN if any(value is not None for value in sweep.columns.get(name, ()))]
    estimates = {name: point_estimates(sweep, name) for name in shown}
    errors = sweep.columns["error"] if sweep.num_failed else None

    def cell(name: str, at: int) -> str:
        estimate = estimates[name][at]
        if name.startswith("speedup."):
            return estimate_cell(estimate)
        return ABSENT if estimate is None else figure(estimate.mean)

    rows = []
    for at, replications in enumerate(points):
        first = replications[0]
        cells = [
            str(sweep.columns["point"][first]),
            *(short_value(sweep.columns[axis][first]) for axis in sweep.varied),
            claim_of(sweep, replications),
            *(cell(name, at) for name in shown),
        ]
        if errors is not None:
            cells.append(next((str(errors[row]) for row in replications if errors[row]), ABSENT))
        rows.append(tuple(cells))
    head = ["point", *map(label, sweep.varied), "speculation", *map(label, shown)]
    if errors is not None:
        head.append("error")
    runs = f", {len(sweep)} runs" if len(sweep) > len(points) else ""
    return HtmlTable(f"{len(points)} points{runs}", tuple(head), rows)


def _cell(key: str, value: JsonValue) -> str:
    if key in _FIGURES and (value is None or isinstance(value, float)):
        return figure(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ABSENT if value is None else short_value(value)
