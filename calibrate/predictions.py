"""Predictions of cells that were not measured, with the interval in which a measurement would lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.calibration import Calibration
from calibrate.law import TimeLaw
from calibrate.measurements import Measurements, is_outside
from calibrate.parameters import PARAMETERS
from calibrate.regression import jacobian, reach
from specsim.arrays import Bools, Floats

_NORMAL_95 = 1.96
_NORMAL_MAD = 0.6745


@dataclass(frozen=True, slots=True)
class CellPredictions:
    """Predictions of R cells; arrays [R]."""

    cells: Measurements
    time_s: Floats
    low_s: Floats
    """Lower limit of the 95 % interval of one measurement: error of the law's figures, and its misfit."""
    high_s: Floats
    power_w: Floats
    """At the measured time where the cell states one, else at the predicted; NaN without a power fit."""
    is_outside: Bools
    """The cell lies outside the positions or contexts that were measured."""


def predict_cells(calibration: Calibration, cells: Measurements) -> CellPredictions:
    """Predict cells by a calibration.

    Parameters
    ----------
    calibration
        The fit.
    cells
        Steps; times are not needed.
    """
    timed = calibration.timed
    law = TimeLaw(cells, timed.profile)
    fitted = [PARAMETERS[one.path] for one in timed.figures]
    fixed = law.fixed(fitted, timed.form)

    def log_times(internal: Floats) -> Floats:
        figures = {one.path: one.to_value(float(at)) for one, at in zip(fitted, internal, strict=True)}
        return np.log(law.predict({**fixed, **figures}, timed.form))

    at = timed.regression.values
    bounds = np.array([one.internal_bounds for one in fitted]).T if fitted else np.zeros((2, 0))
    slope = jacobian(log_times, at, bounds[0], bounds[1])
    covariance = timed.regression.covariance * timed.inflation
    misfit = np.median(np.abs(timed.log_residuals)) / _NORMAL_MAD
    off = reach(slope, covariance, misfit, quantile=_NORMAL_95)
    logs = log_times(at)
    time_s = np.exp(logs)
    measured = timed.cells
    outside = is_outside(cells.num_positions, measured.num_positions)
    outside |= is_outside(cells.context_tokens, measured.context_tokens)
    return CellPredictions(
        cells=cells,
        time_s=time_s,
        low_s=np.exp(logs - off),
        high_s=np.exp(logs + off),
        power_w=_power(calibration, cells, time_s),
        is_outside=outside,
    )


def _power(calibration: Calibration, cells: Measurements, time_s: Floats) -> Floats:
    powered = calibration.powered
    if powered is None:
        return np.full(len(cells), np.nan)
    known_s = np.where(np.isnan(cells.time_s), time_s, cells.time_s)
    return powered.predict_power(cells, known_s)
