"""The whole way from a trace to a profile: fit of times, fit of power, and the error on rows left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from calibrate.diagnose import NotIdentified
from calibrate.figures import Figure
from calibrate.fit import TimeFit, fit_time
from calibrate.held_out import HeldOut, Slice, hold_out
from calibrate.law import Form
from calibrate.measurements import Measurements, RoundMeasurements, Trace
from calibrate.parameters import with_values
from calibrate.power import PowerFit, fit_power
from specsim.errors import ConfigError, DomainError
from specsim.hardware import RooflineProfile, load_profile
from specsim.hardware.provenance import FittedOn, Source

_THRESHOLD = 0.1
_DIGITS = 5
"""Of a figure in a file: more than any fit tells."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a trace of one device gave."""

    profile: RooflineProfile
    timed: TimeFit
    powered: PowerFit | None
    held_out: HeldOut
    held_out_power: Slice | None
    """Power of rows left out, at their measured time; None without energy."""
    threshold: float
    """Held-out error that is still good enough."""

    @property
    def passed(self) -> bool:
        """The held-out error of times is within the threshold."""
        return self.held_out.total.error <= self.threshold

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All fitted figures; where clocks vary those of the joint fit take the place of the first."""
        power = self.powered.figures if self.powered is not None else ()
        refitted = {one.path for one in power}
        return (*(one for one in self.timed.figures if one.path not in refitted), *power)

    @property
    def not_identified(self) -> tuple[NotIdentified, ...]:
        """Figures that the data could not tell."""
        power = self.powered.not_identified if self.powered is not None else ()
        return (*self.timed.not_identified, *power)

    @property
    def recommended_kind(self) -> str:
        """Kind of profile that predicts left-out cells better: ``roofline``, or ``table`` of the points."""
        choice = self.timed.choice
        return "table" if choice is not None and choice.prefers_table else "roofline"


def calibrate(
    measurements: Measurements,
    prior: RooflineProfile,
    *,
    data: str,
    form: Form | None = None,
    threshold: float = _THRESHOLD,
    nominal_sm_hz: float | None = None,
    day: date | None = None,
) -> Calibration:
    """Fit a profile to the steps of a trace and judge it on rows left out.

    Parameters
    ----------
    measurements
        Rows of one device.
    prior
        Datasheet profile of the device.
    data
        What the measurements are, with their source, for the profile's header.
    form
        The form of the law; left out: chosen by cross-validation.
    threshold
        Held-out error up to which the calibration passes.
    nominal_sm_hz
        Clock at which the peak is stated.
    day
        Day of the fit; left out: today.

    Raises
    ------
    DomainError
        Where there are too few cells.
    """
    timed = fit_time(measurements, prior, form=form)
    powered = fit_power(measurements, timed, nominal_hz=nominal_sm_hz) if prior.power is not None else None

    def refit(rows: Measurements) -> RooflineProfile:
        return fit_time(rows, prior, form=form, with_intervals=False).profile

    held_out = hold_out(measurements, prior, refit)
    power = None if powered is None else _hold_out_power(measurements, timed, nominal_sm_hz)
    profile = timed.profile if powered is None else powered.profile
    calibration = Calibration(profile, timed, powered, held_out, power, threshold)
    return _with_provenance(calibration, data, day or date.today())


def prior_of(trace: Trace, name: str | None = None) -> RooflineProfile:
    """Return the datasheet profile that a fit of a trace starts from.

    Parameters
    ----------
    trace
        Names its device.
    name
        Name or path of a profile; left out: the device's own.

    Raises
    ------
    ConfigError
        Where the trace holds several devices, or there is no such profile of kind ``roofline``.
    """
    wanted = name
    if wanted is None:
        devices = devices_of(trace)
        if len(devices) != 1:
            held = f"holds several devices ({', '.join(devices)})"
            raise ConfigError(f"{trace.name}: {held}; choose one with --device")
        wanted = devices[0]
    plain = wanted if name is not None or wanted.endswith(".datasheet") else f"{wanted}.datasheet"
    try:
        profile = load_profile(plain)
    except ConfigError as error:
        if name is not None:
            raise
        raise ConfigError(f"{error}; name the device's datasheet profile with --prior") from None
    if not isinstance(profile, RooflineProfile):
        raise ConfigError(f"profile '{wanted}' is of kind {profile.kind}; a fit starts from a roofline")
    return profile


def joined(traces: Sequence[Trace]) -> Trace:
    """Return several traces as one.

    Raises
    ------
    ConfigError
        Where there are none.
    """
    if not traces:
        raise ConfigError("no traces were given")
    steps = [one.steps for one in traces if one.steps is not None]
    rounds = [one.rounds for one in traces if one.rounds is not None]
    return Trace(
        steps=Measurements.joined(steps) if steps else None,
        rounds=RoundMeasurements.joined(rounds) if rounds else None,
        header={key: value for one in traces for key, value in one.header.items()},
        num_rows=sum(one.num_rows for one in traces),
        num_dropped=sum(one.num_dropped for one in traces),
        warnings=tuple(warning for one in traces for warning in one.warnings),
        name=", ".join(one.name for one in traces),
    )


def devices_of(trace: Trace) -> list[str]:
    """Return the names of the devices of a trace, in alphabetical order."""
    parts = [one.device for one in (trace.steps, trace.rounds) if one is not None]
    return sorted({str(name) for part in parts for name in part})


def of_device(trace: Trace, device: str) -> Trace:
    """Return the rows of one device.

    Raises
    ------
    ConfigError
        Where there are none.
    """
    known = devices_of(trace)
    if device not in known:
        raise ConfigError(f"{trace.name}: no rows of '{device}' (devices: {', '.join(known)})")
    steps, rounds = trace.steps, trace.rounds
    steps = None if steps is None else steps.take(steps.device == device)
    rounds = None if rounds is None else rounds.take(rounds.device == device)
    return replace(
        trace,
        steps=steps if steps is not None and len(steps) else None,
        rounds=rounds if rounds is not None and len(rounds) else None,
    )


def _hold_out_power(measurements: Measurements, timed: TimeFit, nominal_sm_hz: float | None) -> Slice | None:
    """Error of power where a model is left out, at the measured time of each step; None for one model."""
    cells = measurements.take(~measurements.is_step | np.isfinite(measurements.energy_j))
    names = np.array([one.name for one in cells.models] + [""])[cells.model]
    distinct = np.unique(names[cells.is_step])
    missed = []
    for name in distinct:
        left_out = cells.is_step & (names == name)
        if len(distinct) < 2:
            return None
        try:
            fit = fit_power(cells.take(~left_out), timed, nominal_hz=nominal_sm_hz)
        except DomainError:
            continue
        if fit is not None:
            missed.append(fit.relative_power_error(cells.take(left_out)))
    if not missed:
        return None
    relative = np.concatenate(missed)
    return Slice("power", len(relative), float(np.mean(np.abs(relative))), float(np.mean(relative)))


def _with_provenance(calibration: Calibration, data: str, day: date) -> Calibration:
    cells, error = calibration.timed.cells, calibration.held_out.total.error
    source = Source(source=f"fit of {data}, {day.isoformat()}", tag="derived")
    paths = [one.path for one in calibration.figures]
    paths += ["overhead.tile_positions", "overhead.tile_fraction", "overhead.smooth_exponent"]
    missing = {one.path for one in calibration.not_identified}
    provenance = {
        **calibration.profile.provenance,
        **{path: source for path in paths if path not in missing},
    }
    power = calibration.held_out_power
    fitted = FittedOn(
        data=data,
        held_out_error=_rounded(error, 3),
        num_rows=len(cells),
        date=day.isoformat(),
        form=str(calibration.timed.form),
        standard_errors={
            one.path: _rounded(one.standard_error, 2)
            for one in calibration.figures
            if one.standard_error is not None
        },
        not_identified=tuple(one.path for one in calibration.not_identified),
        num_positions=(int(cells.num_positions.min()), int(cells.num_positions.max())),
        context_tokens=(int(cells.context_tokens.min()), int(cells.context_tokens.max())),
        held_out_power_error=None if power is None else _rounded(power.error, 3),
    )
    rounded = {one.path: _rounded(one.value) for one in calibration.figures}
    profile = with_values(calibration.profile, rounded, standard_errors=fitted.standard_errors)
    profile = profile.model_copy(update={"provenance": provenance, "fitted": fitted})
    return replace(calibration, profile=profile)


def _rounded(value: float, digits: int = _DIGITS) -> float:
    return float(f"{value:.{digits}g}")
