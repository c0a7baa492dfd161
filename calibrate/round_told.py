"""What rounds tell of the figures of the law under caps, apart from what those figures lean on.

A fit of few rounds leans towards a known board (`calibrate.round_power`), so that its own standard errors
count what it leans on as if it had been measured. Here the rows speak alone, by (JᵀJ)⁻¹·s².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrate.diagnose import weakness
from calibrate.measurements import RoundMeasurements
from calibrate.parameters import Parameter, bounds_of
from calibrate.regression import jacobian
from calibrate.round_power import PARAMETERS, RoundPowerFit
from specsim.arrays import Floats

_UNSEEN = 5.0
"""So many times what a figure may be unsure by, it is not seen apart from others."""
_LEAST_EIGENVALUE = 1e-12
"""Of the largest: below it a direction is not seen at all."""


@dataclass(frozen=True, slots=True)
class Untold:
    """A figure of the law that the rows cannot tell; what it is fitted at fits them as others would."""

    path: str
    reason: str
    cells: str
    """What to measure."""


def untold(fit: RoundPowerFit, rounds: RoundMeasurements) -> tuple[Untold, ...]:
    """Return the figures that rounds cannot tell.

    Parameters
    ----------
    fit
        The law.
    rounds
        The rows that it was fitted to.
    """
    free = free_parameters(fit)
    paths = {one.path for one in free}
    found = [
        Untold(one.path, "they hold no two settings that differ in it", one.identifying_cells)
        for one in PARAMETERS
        if one.path not in paths
    ]
    slopes, residuals = _measured(fit, rounds)
    degrees = max(len(residuals) - len(free), 1)
    values, vectors = np.linalg.eigh(slopes.T @ slopes)
    spread = vectors / np.sqrt(np.maximum(values, _LEAST_EIGENVALUE * values[-1]))
    errors = np.sqrt(np.sum(np.square(spread), axis=1) * float(residuals @ residuals) / degrees)
    for index, one in enumerate(free):
        at = float(fit.regression.values[index])
        relative, reason = weakness(one, at, float(errors[index]), slopes[:, index])
        if relative > 1.0:
            why = reason if relative < _UNSEEN else "no round tells it from others"
            found.append(Untold(one.path, why, one.identifying_cells))
    return tuple(found)


def time_spread(fit: RoundPowerFit, rounds: RoundMeasurements) -> tuple[float, float]:
    """Return the relative spread of times about the law, and how many degrees of freedom tell it.

    The times' share of the figures is the sum of their leverages; at least one degree is left.

    Parameters
    ----------
    fit
        The law.
    rounds
        The rows that it was fitted to.
    """
    slopes, residuals = _measured(fit, rounds)
    inverse = np.linalg.pinv(slopes.T @ slopes, hermitian=True)
    times = slice(len(rounds))
    share = float(np.einsum("ri,ij,rj->", slopes[times], inverse, slopes[times]))
    degrees = max(len(rounds) - share, 1.0)
    return float(np.sqrt(residuals[times] @ residuals[times] / degrees)), degrees


def free_parameters(fit: RoundPowerFit) -> Sequence[Parameter]:
    """Return the parameters that were fitted, in the order of the solution."""
    by_path = {one.path: one for one in PARAMETERS}
    return [by_path[one.path] for one in fit.figures]


def log_slopes(fit: RoundPowerFit, rounds: RoundMeasurements) -> Floats:
    """Return derivatives of the logarithms of time, power and clock by the fitted figures, [3, R, K].

    The figures are on the fit's own scale, that of its covariance.
    """
    free = free_parameters(fit)

    def logs(internal: Floats) -> Floats:
        figures = tuple(
            replace(figure, value=one.to_value(float(at)))
            for figure, one, at in zip(fit.figures, free, internal, strict=True)
        )
        said = replace(fit, figures=figures).predict(rounds)
        found: Floats = np.log([said.round_s, said.power_w, said.clock_fraction])
        return found.ravel()

    lower, upper = bounds_of(free)
    slopes: Floats = jacobian(logs, fit.regression.values, lower, upper)
    by_quantity: Floats = slopes.reshape(3, len(rounds), len(free))
    return by_quantity


def _measured(fit: RoundPowerFit, rounds: RoundMeasurements) -> tuple[Floats, Floats]:
    """Slopes [N, K] and residuals [N] of the logarithms of all that was measured, times first."""
    said = fit.predict(rounds)
    measured = [rounds.round_s, rounds.power_w, rounds.sm_clock_hz / fit.nominal_sm_hz]
    residuals = np.log([said.round_s, said.power_w, said.clock_fraction]) - np.log(measured)
    known = np.isfinite(residuals)
    return log_slopes(fit, rounds)[known], residuals[known]
