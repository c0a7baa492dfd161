"""A fitted figure of a profile, with how well it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.parameters import Parameter
from calibrate.regression import Regression
from specsim.arrays import Floats

_NORMAL_95 = 1.96
_HAIR = 1e-9


@dataclass(frozen=True, slots=True)
class Figure:
    """One fitted figure of a profile."""

    path: str
    value: float
    standard_error: float | None
    """Sandwich, widened for common misfit of neighbouring cells and for few cells; None at a bound."""
    low: float
    """Lower limit of the 95 % interval."""
    high: float
    """Upper limit."""
    is_at_bound: bool
    """A bound of physics holds it."""


def covariance_of(parameters: Sequence[Parameter], solved: Regression, *, inflation: float = 1.0) -> Floats:
    """Return the covariance of figures in their own units, [K, K]."""
    slopes = np.array([one.value_slope(float(at)) for one, at in zip(parameters, solved.values, strict=True)])
    return solved.covariance * inflation * np.outer(slopes, slopes)


def _snapped(parameter: Parameter, internal: float) -> float:
    """Return the figure, on its lower bound where the solver stopped a hair above it."""
    value = parameter.to_value(internal)
    return parameter.lower if value - parameter.lower < _HAIR * parameter.typical else value


def figures_of(
    parameters: Sequence[Parameter],
    solved: Regression,
    *,
    inflation: float = 1.0,
    intervals: Sequence[tuple[float, float]] | None = None,
) -> tuple[Figure, ...]:
    """Return the figures of a solved problem.

    Parameters
    ----------
    parameters
        The parameters, in the order of the solution.
    solved
        The solution.
    inflation
        Factor on variances.
    intervals
        Their 95 % intervals; left out: from the standard errors, within the bounds of physics.
    """
    errors = solved.student * np.sqrt(np.diag(covariance_of(parameters, solved, inflation=inflation)))
    found = []
    for index, one in enumerate(parameters):
        value, error = _snapped(one, float(solved.values[index])), float(errors[index])
        low, high = max(value - _NORMAL_95 * error, one.lower), min(value + _NORMAL_95 * error, one.upper)
        if intervals is not None:
            low, high = intervals[index]
        is_held = bool(solved.is_at_bound[index])
        known = None if is_held else error
        found.append(Figure(one.path, value, known, min(low, value), max(high, value), is_held))
    return tuple(found)
