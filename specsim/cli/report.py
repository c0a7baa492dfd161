"""``specsim report``: a run or a sweep as one HTML file that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

REPORT = "report.html"


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run or of a sweep.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File to write; report.html in the folder by default."
        ),
    ] = None,
) -> None:
    """Write verdict, tables, plots and a live what-if panel as one HTML file that opens offline."""
    from specsim.errors import ConfigError
    from specsim.report.run_files import read_run
    from specsim.report.run_report import run_report
    from specsim.report.sweep_report import sweep_report
    from specsim.results.writer import SUMMARY
    from specsim.sweep.files import ABOUT, read_sweep

    if (folder / ABOUT).exists():
        text = sweep_report(read_sweep(folder))
    elif (folder / SUMMARY).exists():
        text = run_report(read_run(folder))
    else:
        raise ConfigError(f"{folder}: holds neither a run ({SUMMARY}) nor a sweep ({ABOUT})")
    path = output or folder / REPORT
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
    typer.echo(str(path))
