"""The report of one run: what the page says, from its summary and tables."""

from __future__ import annotations

from pydantic import JsonValue

from specsim.report.figures import run_plots
from specsim.report.html import HtmlTable, Page, Section, draw, render
from specsim.report.opening import Met, opening, opening_note
from specsim.report.run_files import Run
from specsim.report.tables import (
    breakdown_rows,
    comparison_head,
    comparison_rows,
    reading_note,
    speedup_line,
)
from specsim.report.what_if import WhatIf, shipped_devices, what_if
from specsim.results.writer import config_yaml
from specsim.scenario import Scenario


def run_report(run: Run) -> str:
    """Return the report of a run as HTML text.

    Parameters
    ----------
    run
        Its summary and tables.
    """
    summary = run.summary
    scenario = run.scenario
    lines = [reading_note(summary)]
    if summary["speedup"] is not None:
        lines.append(speedup_line(summary["speedup"]))
    head, rows = breakdown_rows(summary)
    panel = what_if_of(run, scenario)
    page = Page(
        title=scenario.name,
        description=scenario.description,
        verdict=summary["verdict"]["text"],
        sections=(
            Section(
                "numbers",
                "In numbers",
                tables=(
                    HtmlTable(
                        "Both arms, on the same luck",
                        ("metric", *comparison_head(summary)),
                        list(comparison_rows(summary)),
                    ),
                    HtmlTable("Where everything goes", head, rows),
                ),
                lines=lines,
            ),
            Section("figures", "In pictures", figures=draw(run_plots(run))),
        ),
        what_if=panel,
        what_if_note=opening_note(panel, "this run"),
        provenance=[
            *_provenance(summary["provenance"]),
            ("seed", str(summary["seed"])),
            ("key", summary["key"]),
        ],
        notes=(
            ("How wide to read it", [summary["how_to_read"]]),
            ("Known limitations", summary["known_limitations"]),
            ("Definitions", [f"{name}: {text}" for name, text in summary["definitions"].items()]),
        ),
        configurations=(("Configuration, every default written out", config_yaml(summary["scenario"])),),
        version=summary["specsim_version"],
    )
    return render(page)


def what_if_of(run: Run, scenario: Scenario) -> WhatIf:
    """Return the tables of the live panel, which begins where the run was."""
    summary = run.summary
    gain = summary["speedup"]["tpot"]["mean"] if summary["speedup"] else None
    met = Met.of(summary["baseline"], summary["speculation"] or {}, gain)
    context = run.requests["num_prompt_tokens"] + run.requests["num_output_tokens"] / 2
    return what_if(
        scenario,
        context_tokens=round(float(context.mean())),
        start=opening(scenario, met),
        devices=shipped_devices(),
    )


def _provenance(found: dict[str, JsonValue]) -> list[tuple[str, str]]:
    shown = []
    for name, value in found.items():
        if isinstance(value, dict):
            text = ", ".join(f"{key} {item}" for key, item in value.items())
        else:
            text = "; ".join(str(item) for item in value) if isinstance(value, list) else str(value)
        if value not in (None, [], {}):
            shown.append((name.replace("_", " "), text))
    return shown
