"""Predictions of rounds that were not measured, with the interval in which a measurement would lie.

Rounds of a target with watts are predicted by their law under caps, others by their cost. A cell outside what
was measured is marked. The law goes on beyond the depths, caps and clocks that it was fitted to; a cost does
not, and neither goes on to another batch or to a kind of clock that no row watched, nor the law to a cap that
active power nearly fills: then nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate.measurements import RoundMeasurements, Texts, Trace, is_outside
from calibrate.regression import reach
from calibrate.round_calibration import RoundCalibration, RoundPower, targets_of
from calibrate.round_told import log_slopes
from calibrate.rounds import RoundCost, RoundPrediction
from specsim.arrays import Bools, Floats
from specsim.errors import ConfigError, DomainError, Fault
from specsim.results.statistics import student_quantile

_COVERED = 0.975
"""Level of the upper limit of a 95 % interval."""
_SETTINGS = ("k", "batch", "power_cap_w", "sm_lock_mhz", "mem_mhz")


@dataclass(frozen=True, slots=True)
class RoundCellPredictions:
    """Predictions of R rounds; arrays [R], NaN where nothing is said."""

    cells: RoundMeasurements
    prediction: RoundPrediction
    """Time; power and clock by the law under caps, else NaN."""
    low_s: Floats
    """Lower limit of the 95 % interval of one more measured round: error of the figures, and misfit."""
    high_s: Floats
    outside: tuple[tuple[str, ...], ...]
    """Columns in which each cell lies outside what was measured."""


def predict_round_cells(calibrations: Mapping[str, RoundCalibration], cells: Trace) -> RoundCellPredictions:
    """Predict rounds by the calibration of their target.

    Parameters
    ----------
    calibrations
        By target.
    cells
        Holds the rounds; of what may have been measured, their acceptance length alone counts.

    Raises
    ------
    ConfigError
        For every cell of a target or device that was not measured.
    DomainError
        Where the rounds of a target gave neither law nor cost.
    """
    rounds = cells.rounds
    assert rounds is not None
    targets = _targets(calibrations, rounds, cells.name)
    said = np.full((5, len(rounds)), np.nan)
    outside = np.zeros((len(_SETTINGS), len(rounds)), dtype=bool)
    for target in np.unique(targets):
        index = np.flatnonzero(targets == target)
        said[:, index], outside[:, index] = _predict(calibrations[str(target)], rounds.take(index))
    time_s, power_w, clock_fraction, low_s, high_s = said
    names = [tuple(name for name, is_out in zip(_SETTINGS, one, strict=True) if is_out) for one in outside.T]
    prediction = RoundPrediction(time_s, power_w, clock_fraction)
    return RoundCellPredictions(rounds, prediction, low_s, high_s, tuple(names))


def _targets(calibrations: Mapping[str, RoundCalibration], rounds: RoundMeasurements, file: str) -> Texts:
    """Target of each cell; one that names none is of the only target there is."""
    targets = targets_of(rounds)
    if len(calibrations) == 1:
        targets = np.where(targets == "", next(iter(calibrations)), targets)
    faults = []
    for row, target, device in zip(rounds.row, targets, rounds.device, strict=True):
        calibration = calibrations.get(str(target))
        if calibration is None:
            known = ", ".join(name or "an unnamed target" for name in calibrations)
            what = f"no rounds of '{target}' were measured" if target else "is missing"
            faults.append(Fault(file, int(row), None, "model", f"{what} (measured: {known})"))
        elif device not in calibration.rounds.device:
            known = ", ".join(np.unique(calibration.rounds.device))
            message = f"no rounds on '{device}' were measured (measured: {known})"
            faults.append(Fault(file, int(row), None, "device", message))
    if faults:
        raise ConfigError(faults)
    return targets


def _predict(calibration: RoundCalibration, cells: RoundMeasurements) -> tuple[Floats, Bools]:
    """Time, power, clock and both limits, [5, R]; settings that are outside what was measured, [5, R]."""
    if isinstance(calibration.power, RoundPower):
        return _by_law(calibration.power, cells)
    if isinstance(calibration.cost, str):
        raise DomainError(f"rounds of {calibration.target or 'an unnamed target'}: {calibration.cost}")
    return _by_cost(calibration.cost, calibration.rounds, cells)


def _by_law(power: RoundPower, cells: RoundMeasurements) -> tuple[Floats, Bools]:
    measured = power.rounds
    known, asked = (_settings(one, power.fit.nominal_memory_hz) for one in (measured, cells))
    outside = is_outside(asked, known)
    _, other_batch, _, _, other_memory = outside
    is_filled = cells.power_cap_w < power.fit.least_cap_w
    outside[_SETTINGS.index("power_cap_w")] |= is_filled
    refused = other_batch | is_filled
    if not power.watches_sm_clock:
        refused |= np.isfinite(cells.sm_lock_hz)
    if not power.watches_memory_clock:
        refused |= other_memory
    said = np.full((5, len(cells)), np.nan)
    kept = cells.take(~refused)
    by_law = power.fit.predict(kept)
    slope = log_slopes(power.fit, kept)[0]
    quantile = student_quantile(_COVERED, max(round(power.num_degrees), 1))
    off = np.exp(reach(slope, power.fit.regression.covariance, power.misfit(kept), quantile=quantile))
    time_s = by_law.round_s
    said[:, ~refused] = [time_s, by_law.power_w, by_law.clock_fraction, time_s / off, time_s * off]
    return said, outside


def _by_cost(cost: RoundCost, measured: RoundMeasurements, cells: RoundMeasurements) -> tuple[Floats, Bools]:
    depth, batch = cells.num_speculative_tokens, cells.num_sequences
    outside = np.array(
        [
            is_outside(depth, np.array(cost.depths)),
            is_outside(batch, np.array(cost.batches)),
            _is_other(cells.power_cap_w, measured.power_cap_w),
            _is_other(cells.sm_lock_hz, measured.sm_lock_hz),
            _is_other(cells.memory_clock_hz, measured.memory_clock_hz),
        ]
    )
    kept = ~outside.any(axis=0)
    said = np.full((5, len(cells)), np.nan)
    said[0, kept] = cost.time_s(depth[kept], batch[kept])
    said[3:, kept] = cost.interval_s(depth[kept], batch[kept])
    return said, outside


def _settings(rounds: RoundMeasurements, nominal_memory_hz: float) -> Floats:
    """Values of `_SETTINGS`, [5, R]; no cap and no limit of the clock are infinite."""
    return np.array(
        [
            rounds.num_speculative_tokens,
            rounds.num_sequences,
            np.nan_to_num(rounds.power_cap_w, nan=np.inf),
            np.nan_to_num(rounds.sm_lock_hz, nan=np.inf),
            np.nan_to_num(rounds.memory_clock_hz, nan=nominal_memory_hz),
        ]
    )


def _is_other(values: Floats, measured: Floats) -> Bools:
    """Cells that state a setting which is not the only one that was measured."""
    is_other: Bools = ~np.isnan(values) & ~(values[:, None] == measured).all(axis=1)
    return is_other
