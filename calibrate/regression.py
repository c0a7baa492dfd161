"""Bounded least squares with a loss that outliers cannot dominate, and standard errors that own up to misfit.

Loss: soft L1, ρ(z) = 2(√(1+z) − 1) with z = (r/s)², and s tied to the residuals' own spread (Huber 1964).
Covariance: A⁻¹ B A⁻¹ with A = Σ ρ''-weighted J Jᵀ and B = Σ ψ²/(1−h) J Jᵀ (Huber 1967; White 1980; with the
leverage h of each residual, MacKinnon and White 1985), so that it does not rest on equal or normal errors.
That is a noisy estimate of a figure that few cells tell: Student's t at the degrees of freedom of Bell and
McCaffrey (2002) widens its standard error, so that two of them cover 95 % (Imbens and Kolesár 2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from specsim.arrays import Bools, Floats
from specsim.errors import DomainError
from specsim.results.statistics import student_quantile

_STEP = 1e-5
"""Of the difference quotient; times are whole picoseconds, so a smaller one would see their rounding."""
_HUBER = 1.345
"""Residuals beyond this many spreads count linearly (95 % efficiency for normal errors)."""
_NORMAL_MAD = 0.6745
_LEAST_SPREAD = 1e-4
"""Below a hundredth of a percent every residual counts in full."""
_AT_BOUND = 1e-6
_COVERED = 0.975
_NORMAL_COVERED = 1.96
_MOST_LEVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class Regression:
    """A solved problem of K parameters and R residuals."""

    values: Floats
    """Parameters, [K]."""
    covariance: Floats
    """Of the parameters, [K, K]; rows of parameters at a bound are zero."""
    student: Floats
    """Factor on each standard error with which two of them cover 95 %, by Student's t, [K]."""
    residuals: Floats
    """[R]."""
    jacobian: Floats
    """[R, K]."""
    scale: float
    """s of the loss."""
    cost: float
    """Half the sum of the loss times s², in the residuals' squared unit."""
    is_at_bound: Bools
    """Parameters that a bound holds, [K]."""

    @property
    def standard_errors(self) -> Floats:
        """Of the parameters, [K]; 0 at a bound."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def deviance_unit(self) -> float:
        """Rise of the cost by one unit of a χ² of one degree, were the parameter alone."""
        inner = 1.0 + np.square(self.residuals / self.scale)
        degrees = max(len(self.residuals) - int((~self.is_at_bound).sum()), 1)
        pull = float(np.sum(np.square(self.residuals) / inner)) / degrees
        return 0.5 * pull / float(np.mean(inner**-1.5))


def solve(
    residuals: Callable[[Floats], Floats],
    start: Floats,
    lower: Floats,
    upper: Floats,
    *,
    scale: float | None = None,
    max_evaluations: int = 60,
    tolerance: float = 1e-9,
) -> Regression:
    """Minimise the loss of residuals within bounds.

    Parameters
    ----------
    residuals
        Function of the parameters [K], internal scale of order one, that returns [R].
    start, lower, upper
        Start and bounds, [K].
    scale
        s of the loss; left out: 1.345 spreads of the residuals of a first fit.
    max_evaluations
        Bound on the solver's iterations.
    tolerance
        Relative change of cost or parameters at which the solver stops.

    Raises
    ------
    DomainError
        Where there are fewer residuals than parameters.
    """
    inside = np.clip(start, lower + 1e-9, upper - 1e-9)
    count = len(residuals(inside))
    if count < len(start):
        raise DomainError(f"{count} measured figures cannot determine {len(start)} parameters")

    def slope(at: Floats) -> Floats:
        return jacobian(residuals, at, lower, upper)

    def run(at: Floats, spread: float) -> tuple[Floats, Floats, Floats, float]:
        found = least_squares(
            residuals,
            at,
            bounds=(lower, upper),
            jac=slope,
            loss="soft_l1",
            f_scale=spread,
            x_scale=1.0,
            max_nfev=max_evaluations,
            xtol=tolerance,
            ftol=tolerance,
            gtol=0.1 * tolerance,
        )
        # The solver returns a Jacobian weighted by the loss; the covariance needs the plain one.
        plain = residuals(found.x)
        return found.x, plain, slope(found.x), float(found.cost)

    if scale is None:
        first, plain, _, _ = run(inside, 0.05)
        inside = np.clip(first, lower + 1e-9, upper - 1e-9)
        scale = _HUBER * max(_spread(plain), _LEAST_SPREAD)
    values, plain, columns, cost = run(inside, scale)
    width = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    held = (values - lower < _AT_BOUND * width) | (upper - values < _AT_BOUND * width)
    covariance, student = _errors(plain, columns, scale, held)
    return Regression(values, covariance, student, plain, columns, scale, cost, held)


def jacobian(residuals: Callable[[Floats], Floats], at: Floats, lower: Floats, upper: Floats) -> Floats:
    """Central difference quotients of the residuals, [R, K]; one-sided at a bound."""
    columns = []
    for index in range(len(at)):
        step = _STEP * max(1.0, abs(at[index]))
        high, low = at.copy(), at.copy()
        high[index] = min(at[index] + step, upper[index])
        low[index] = max(at[index] - step, lower[index])
        columns.append((residuals(high) - residuals(low)) / (high[index] - low[index]))
    return np.column_stack(columns) if columns else np.zeros((len(residuals(at)), 0))


def reach(slope: Floats, covariance: Floats, misfit: Floats | float, *, quantile: float) -> Floats:
    """Return how far one more measurement may lie from a prediction, [R], in the prediction's unit.

    Parameters
    ----------
    slope
        Derivative of each prediction by each parameter, [R, K].
    covariance
        Of the parameters, [K, K].
    misfit
        Spread of measurements about the law, [R] or one for all.
    quantile
        Of the wanted level, in standard deviations.
    """
    law = np.einsum("ri,ij,rj->r", slope, covariance, slope)
    off: Floats = quantile * np.sqrt(law + np.square(misfit))
    return off


def _spread(residuals: Floats) -> float:
    return float(np.median(np.abs(residuals - np.median(residuals)))) / _NORMAL_MAD


def _errors(residuals: Floats, slope: Floats, scale: float, held: Bools) -> tuple[Floats, Floats]:
    num_parameters = slope.shape[1]
    covariance, student = np.zeros((num_parameters, num_parameters)), np.full(num_parameters, _NORMAL_COVERED)
    free = np.flatnonzero(~held)
    if not free.size:
        return covariance, student / _NORMAL_COVERED
    inner = 1.0 + np.square(residuals / scale)
    part = slope[:, free]
    curvature = (part * (inner**-1.5)[:, None]).T @ part
    inverse = np.linalg.pinv(curvature, rcond=1e-14, hermitian=True)
    # A cell that alone tells a figure bends the fit towards itself, so that its residual is too small.
    leverage = np.einsum("ri,ij,rj->r", part, inverse, part) * inner**-1.5
    left = 1.0 - np.minimum(leverage, _MOST_LEVERAGE)
    pull = part * (residuals / np.sqrt(inner * left))[:, None]
    weighted: Floats = part * (inner**-0.75)[:, None]
    degrees = _degrees_of_freedom(weighted, inverse, part @ inverse, left)
    covariance[np.ix_(free, free)] = inverse @ (pull.T @ pull) @ inverse
    student[free] = [student_quantile(_COVERED, max(round(float(each)), 1)) for each in degrees]
    return covariance, student / _NORMAL_COVERED


def _degrees_of_freedom(
    weighted: Floats, inverse: NDArray[np.floating], influence: Floats, left: Floats
) -> Floats:
    """Degrees of freedom of each parameter's variance, tr(B)²/tr(B²) with B = D(I − H)D, [K].

    H is the hat matrix of the weighted slopes, [R, K], and D each residual's influence on the parameter,
    [R, K], over √(1 − h), ``left``, [R].
    """
    values, vectors = np.linalg.eigh(inverse)
    roots = weighted @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    found = []
    for column in influence.T:
        own = np.square(column) / left
        shared = (roots * own[:, None]).T @ roots
        squares = np.sum(np.square(own) * (2.0 * left - 1.0)) + np.sum(np.square(shared))
        found.append(np.square(np.sum(own * left)) / squares if squares > 0.0 else 1.0)
    return np.array(found)
