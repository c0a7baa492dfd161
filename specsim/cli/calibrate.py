"""``specsim calibrate``: from measured runs to a profile, and how far to trust it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specsim.cli.capture import capture
from specsim.cli.default_command import DefaultCommandGroup

if TYPE_CHECKING:
    from calibrate import Defaults, RoundMeasurements, Trace
    from calibrate.calibration import Calibration
    from calibrate.round_calibration import RoundCalibration

_DEFAULT_COMMAND = "fit"


class _FitByDefault(DefaultCommandGroup):
    default_command = _DEFAULT_COMMAND


calibrate = typer.Typer(
    name="calibrate",
    cls=_FitByDefault,
    help="Fit a profile to measured runs (TRACE…), or measure this machine (capture).",
    add_completion=False,
    rich_markup_mode=None,
)
calibrate.command("capture")(capture)


@calibrate.command(_DEFAULT_COMMAND, epilog="specsim calibrate capture measures this machine.")
def fit(
    traces: Annotated[list[Path], typer.Argument(help="Measured runs: own CSV, or a known tool's file.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="PROFILE", help="Profile to write (.yaml).")
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="Datasheet profile to start from; the trace's device by default.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Take the rows of this device only.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, where the trace names none.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Format of the weights, where the trace names none.")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None, typer.Option("--tp", min=1, help="Devices that share a layer, where the trace says not.")
    ] = None,
    importer: Annotated[
        str | None, typer.Option("--format", help="Format of the traces; by their content by default.")
    ] = None,
    predict: Annotated[
        Path | None,
        typer.Option(metavar="CELLS", help="Steps and rounds to predict, in the trace's own columns."),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0, help="Held-out error, of times or of tokens/s of rounds, above which the exit code is 1."
        ),
    ] = 0.1,
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="Predicted against measured, and residuals (.png).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Fit a profile to measured steps, and judge it on rows that the fit has not seen.

    Figures that the rows cannot tell keep the datasheet profile's value and are named, with what to measure.
    Rows of whole rounds give the cost of a round and, with watts, its law under power caps.
    """
    from calibrate import Defaults, read_trace
    from calibrate.calibration import calibrate as calibrate_steps
    from calibrate.calibration import joined, of_device, prior_of
    from calibrate.predictions import predict_cells
    from calibrate.report import text_lines
    from calibrate.report_json import as_json as report_json
    from calibrate.round_predictions import predict_round_cells
    from specsim.errors import ConfigError, GateError

    defaults = Defaults(model=model, dtype=dtype, tensor_parallel_size=tensor_parallel_size)
    defaults = _with_device(defaults, device, prior)
    trace = joined([read_trace(one, defaults=defaults, importer=importer) for one in traces])
    if device is not None:
        trace = of_device(trace, device)
    if trace.steps is None and (output is not None or plot is not None):
        raise ConfigError(f"{trace.name}: holds no steps, only rounds; there is no profile to fit")
    cells = None if predict is None else _cells(predict, trace, defaults)
    if cells is not None:
        trace = replace(trace, warnings=(*trace.warnings, *cells.warnings))
    calibration: Calibration | None = None
    if trace.steps is not None:
        data = trace.header.get("source", trace.name)
        start = prior_of(trace, prior)
        calibration = calibrate_steps(trace.steps, start, data=data, threshold=threshold)
    rounds = {} if trace.rounds is None else _calibrate_rounds(trace.rounds)
    predicted_steps = predicted_rounds = None
    if cells is not None and cells.steps is not None and calibration is not None:
        predicted_steps = predict_cells(calibration, cells.steps)
    if cells is not None and cells.rounds is not None:
        predicted_rounds = predict_round_cells(rounds, cells)
    if calibration is not None:
        _write(calibration, trace, output, plot)
    report = report_json if as_json else text_lines
    found = report(
        trace,
        calibration,
        rounds=rounds,
        threshold=threshold,
        predicted_steps=predicted_steps,
        predicted_rounds=predicted_rounds,
    )
    typer.echo(json.dumps(found, indent=2) if as_json else "\n".join(found))
    errors = [] if calibration is None else [calibration.held_out.total.error]
    errors += [one.error for one in rounds.values() if one.error is not None]
    if errors and max(errors) > threshold:
        raise GateError(f"held-out error {max(errors):.1%} is above the threshold of {threshold:.1%}")


def _with_device(defaults: Defaults, device: str | None, prior: str | None) -> Defaults:
    """Name the device for files that name none: as asked for, else as the prior's profile."""
    name = device or (None if prior is None else Path(prior).stem.split(".")[0])
    return replace(defaults, device=name)


def _cells(path: Path, trace: Trace, defaults: Defaults) -> Trace:
    """Read cells to predict; those that name no device are of the trace's, if it has one."""
    from calibrate import read_cells
    from calibrate.calibration import devices_of
    from specsim.errors import ConfigError

    devices = devices_of(trace)
    if len(devices) == 1:
        defaults = replace(defaults, device=devices[0])
    cells = read_cells(path, defaults=defaults)
    for name, asked, measured in (
        ("steps", cells.steps, trace.steps),
        ("rounds", cells.rounds, trace.rounds),
    ):
        if asked is not None and measured is None:
            raise ConfigError(f"{path}: holds {name}, but {trace.name} has no {name} to fit")
    return cells


def _calibrate_rounds(rounds: RoundMeasurements) -> dict[str, RoundCalibration]:
    from calibrate.round_calibration import calibrate_rounds
    from specsim.cli.progress import ProgressLine

    if not sys.stderr.isatty():
        return calibrate_rounds(rounds)
    line = ProgressLine("fits without some rounds")
    try:
        return calibrate_rounds(rounds, on_fit=line.update)
    finally:
        line.close()


def _write(calibration: Calibration, trace: Trace, output: Path | None, plot: Path | None) -> None:
    from calibrate.profile_file import write_profile

    if output is not None:
        kept = {key: trace.header[key] for key in ("source", "licence", "date") if key in trace.header}
        error = f"{calibration.held_out.total.error:.1%} ({calibration.held_out.scheme} left out)"
        write_profile(output, calibration.profile, header={**kept, "held-out error": error})
        print(f"specsim: wrote {output}", file=sys.stderr)
    if plot is not None:
        from calibrate.plots import save_plots

        save_plots(calibration, plot)
        print(f"specsim: wrote {plot}", file=sys.stderr)
