"""``specsim report``: a run or a sweep as one HTML file that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

REPORT = "report.html"
TRACE = "trace.json"


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run or of a sweep.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File to write; report.html in the folder by default."
        ),
    ] = None,
    trace_events: Annotated[
        bool,
        typer.Option(
            "--trace-events", help="Write trace.json into the folder too, for chrome://tracing or Perfetto."
        ),
    ] = False,
) -> None:
    """Write verdict, tables, plots and a live what-if panel as one HTML file that opens offline."""
    from specsim.errors import ConfigError
    from specsim.report.run_files import read_run
    from specsim.report.run_report import run_report
    from specsim.report.sweep_report import sweep_report
    from specsim.report.trace_event import trace_json
    from specsim.results.writer import SUMMARY
    from specsim.sweep.files import ABOUT, read_sweep
    from specsim.writing import write_faults, write_whole

    files = {}
    if (folder / ABOUT).exists():
        if trace_events:
            raise ConfigError("--trace-events needs the folder of a run, not of a sweep")
        files[output or folder / REPORT] = sweep_report(read_sweep(folder))
    elif (folder / SUMMARY).exists():
        run = read_run(folder)
        files[output or folder / REPORT] = run_report(run)
        if trace_events:
            files[folder / TRACE] = trace_json(run)
    else:
        raise ConfigError(f"{folder}: holds neither a run ({SUMMARY}) nor a sweep ({ABOUT})")
    for path, text in files.items():
        with write_faults(path):
            write_whole(path, text)
        typer.echo(str(path))
