"""``specsim sweep``: many scenarios around one, on all cores or a cluster."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specsim.cli.run import DEFAULT_SCENARIO

if TYPE_CHECKING:
    from specsim.sweep import Progress, SweepJob, SweepTable, Workers

_ESTIMATE_S = 2.0
"""A dry run times at most three runs, and none after this long, s."""
_MAX_ERRORS = 5
"""Most distinct errors that are printed."""


class Design(StrEnum):
    """Which points are simulated."""

    GRID = "grid"
    ZIP = "zip"
    RANDOM = "random"
    LHS = "lhs"
    SOBOL = "sobol"
    MORRIS = "morris"
    TORNADO = "tornado"


def sweep(
    scenario: Annotated[
        str,
        typer.Argument(help="Name or path of the scenario to vary.", show_default=True),
    ] = DEFAULT_SCENARIO,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES",
            help="K=0..8; KEY=1,4,16; KEY=1e12..8e12:log:8 (or lin); hardware.target=l4,h100-*.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key at every point.")
    ] = None,
    design: Annotated[
        Design,
        typer.Option(help="How points are chosen; lhs: Latin hypercube; the last three: sensitivity."),
    ] = Design.GRID,
    samples: Annotated[
        int, typer.Option(min=1, help="Points of random and lhs, base samples of sobol and morris.")
    ] = 64,
    replications: Annotated[int, typer.Option(min=1, help="Runs of each point, each with new luck.")] = 1,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC=H", help="Replicate until the relative half-width is H, as in speedup.tpot=.02."
        ),
    ] = None,
    max_replications: Annotated[int, typer.Option(min=1, help="The most that --until may take.")] = 100,
    metric: Annotated[str, typer.Option(help="What sensitivity and --break-even look at.")] = "speedup.tpot",
    break_even: Annotated[
        bool, typer.Option("--break-even", help="Find all places on the first axis where the metric is 1.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Processes; one a core by default.", show_default=False),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the dask cluster of this scheduler.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Write here; what is there is not simulated again."
        ),
    ] = None,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="Write every whole run too, into DIR/runs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the points and an estimated time.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a point failed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Simulate many scenarios around one: a table of verdicts and metrics, sensitivity, break-even."""
    from specsim.errors import ConfigError, GateError
    from specsim.sweep import Repeats, SweepJob, local_workers
    from specsim.sweep.files import check_sweep_folder

    if until is None:
        repeats = Repeats(first=replications)
    else:
        repeats = Repeats.until(until, first=replications, most=max_replications)
    if keep_runs and (output is None or cluster is not None):
        raise ConfigError("--keep-runs needs -o and processes of this machine")
    if output is not None:
        check_sweep_folder(output)
    job = SweepJob.of(
        scenario,
        vary or [],
        settings=settings or (),
        design=design.value,
        num_samples=samples,
        repeats=repeats,
        metric=metric,
        seeks_break_even=break_even,
    )
    if dry_run:
        _print_plan(job, local_workers(jobs).num_workers, output)
        return
    with _workers(cluster, jobs) as workers, _progress() as progress:
        table = job.run(workers=workers, folder=output, keep_runs=keep_runs, progress=progress)
    if as_json:
        typer.echo(json.dumps({"about": table.about, "columns": table.columns}, allow_nan=False))
    else:
        from specsim.report.sweep_print import print_sweep

        print_sweep(table, sys.stdout, folder=output)
    _report_failures(table)
    if strict and table.num_failed:
        raise GateError(f"{table.num_failed} runs failed, and --strict was given")


def _workers(cluster: str | None, jobs: int | None) -> AbstractContextManager[Workers]:
    from specsim.sweep import cluster_workers, local_workers

    return nullcontext(local_workers(jobs)) if cluster is None else cluster_workers(cluster)


def _report_failures(table: SweepTable) -> None:
    if not table.num_failed:
        return
    print(f"specsim: {table.num_failed} of {len(table)} runs failed", file=sys.stderr)
    errors = [str(error) for error in table.columns["error"] if error is not None]
    distinct = list(dict.fromkeys(errors))
    for error in distinct[:_MAX_ERRORS]:
        print(f"  {errors.count(error)} x {error}", file=sys.stderr)
    if len(distinct) > _MAX_ERRORS:
        print(f"  and {len(distinct) - _MAX_ERRORS} other errors: column 'error'", file=sys.stderr)


def _print_plan(job: SweepJob, num_workers: int, output: Path | None) -> None:
    """Print every point, and how long all of them will take."""
    from specsim.report.columns import print_columns
    from specsim.report.plots.values import shown_value

    titles = ["point", *(axis.key for axis in job.plan.axes)]
    rows = ([str(point.number), *map(shown_value, point.labels)] for point in job.plan.points)
    print_columns(titles, rows, sys.stdout)
    cases = job.first_cases()
    one_s = job.time_one(_ESTIMATE_S)
    num_known = 0 if output is None else job.num_known(output)
    known = f", {num_known} of them done" if num_known else ""
    more = (
        "" if job.repeats.metric is None and not job.seeks_break_even else ", and more as they are called for"
    )
    typer.echo(f"\n{len(job.plan.points)} points, {len(cases)} runs{more}{known}.")
    if one_s is None:
        typer.echo("No estimate of the time: none of three points could be simulated.")
        return
    total_s = (len(cases) - num_known) * one_s / num_workers
    workers = f"{num_workers} worker{'s' if num_workers > 1 else ''}"
    typer.echo(f"About {_duration(total_s)} on {workers} ({one_s:.2g} s a run, timed here).")


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None] | None]:
    """Progress with the time left; None where nobody watches."""
    from specsim.cli.progress import ProgressLine

    if not sys.stderr.isatty():
        yield None
        return
    line = ProgressLine("runs")
    start_s = time.monotonic()

    def update(progress: Progress) -> None:
        failed = f", {progress.num_failed} failed" if progress.num_failed else ""
        left = ""
        if progress.num_simulated:
            each_s = (time.monotonic() - start_s) / progress.num_simulated
            left = f", {_duration(each_s * (progress.num_cases - progress.num_done))} left"
        line.update(progress.num_done, progress.num_cases, note=f"{failed}{left}")

    try:
        yield update
    finally:
        line.close()


def _duration(time_s: float) -> str:
    """Return a time for people.

    Examples
    --------
    >>> _duration(3.2), _duration(200.0), _duration(9000.0)
    ('4 s', '3:20 min', '2:30 h')
    """
    seconds = int(time_s) + 1 if time_s < 60 else round(time_s)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d} h"
