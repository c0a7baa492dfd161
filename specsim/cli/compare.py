"""``specsim compare``: what changed between runs or sweeps, and whether that may be merged."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specsim.sweep.compare import Comparison
    from specsim.sweep.gates import Gate


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders of two or more runs, or of sweeps; the first is the reference."),
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION", help="Exit 1 where it holds: 'p99_tpot_ms>+5%', 'speedup.tpot<1.2'."
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every metric.")] = False,
) -> None:
    """Compare runs or sweeps with the first of them: configuration, metrics, paired intervals."""
    from specsim.errors import GateError
    from specsim.report.comparison_print import print_comparison, print_markdown
    from specsim.sweep.gates import parse_gate

    comparisons = _compared(folders, [parse_gate(text) for text in fail_if or []])
    if as_json:
        typer.echo(json.dumps([asdict(comparison) for comparison in comparisons], allow_nan=False, indent=2))
    else:
        for number, comparison in enumerate(comparisons):
            sys.stdout.write("\n" if number else "")
            (print_markdown if markdown else print_comparison)(comparison, sys.stdout)
    failures = [
        f"{comparison.after}: {failure}" for comparison in comparisons for failure in comparison.failures
    ]
    if failures:
        raise GateError("; ".join(failures))


def _compared(folders: Sequence[Path], gates: Sequence[Gate]) -> list[Comparison]:
    from specsim.errors import ConfigError
    from specsim.results.reader import read_summary, read_table
    from specsim.results.writer import PROMPTS_FILE, REQUESTS_FILE, SUMMARY
    from specsim.sweep.compare import NamedRun, compare_runs
    from specsim.sweep.compare_sweeps import compare_sweeps
    from specsim.sweep.files import ABOUT, read_sweep
    from specsim.sweep.paired import KeptTables

    if len(folders) < 2:
        raise ConfigError("nothing to compare: give two folders or more")
    kinds = {
        "sweep" if (folder / ABOUT).exists() else "run" if (folder / SUMMARY).exists() else f"{folder}"
        for folder in folders
    }
    unknown = sorted(kinds - {"sweep", "run"})
    if unknown:
        raise ConfigError(f"{unknown[0]}: holds neither a run ({SUMMARY}) nor a sweep ({ABOUT})")
    if len(kinds) > 1:
        raise ConfigError("a run cannot be compared with a sweep")
    if kinds == {"sweep"}:
        sweeps = [(str(folder), read_sweep(folder)) for folder in folders]
        return [compare_sweeps(sweeps[0], other, gates) for other in sweeps[1:]]
    runs = []
    for folder in folders:
        summary = read_summary(folder)
        tables = [read_table(folder, file, summary) for file in (REQUESTS_FILE, PROMPTS_FILE)]
        runs.append(NamedRun(str(folder), summary, KeptTables(*tables)))
    return [compare_runs(runs[0], other, gates) for other in runs[1:]]
