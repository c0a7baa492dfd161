"""Bounded least squares with a loss that outliers cannot dominate, and standard errors that own up to misfit.

Loss: soft L1, ρ(z) = 2(√(1+z) − 1) with z = (r/s)², and s tied to the residuals' own spread (Huber 1964).
Covariance: A⁻¹ B A⁻¹ with A = Σ ρ''-weighted J Jᵀ and B = Σ (ψ/(1−h))² J Jᵀ (Huber 1967; White 1980; with
the leverage h of each residual, MacKinnon and White 1985), so that it does not rest on equal or normal
errors; and not below what equal errors would give (Angrist and Pischke 2009, section 8.1), since a figure
that few cells tell makes that estimate a noisy one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from specsim.arrays import Bools, Floats
from specsim.errors import DomainError

_STEP = 1e-5
"""Of the difference quotient; times are whole picoseconds, so a smaller one would see their rounding."""
_HUBER = 1.345
"""Residuals beyond this many spreads count linearly (95 % efficiency for normal errors)."""
_NORMAL_MAD = 0.6745
_LEAST_SPREAD = 1e-4
"""Below a hundredth of a percent every residual counts in full."""
_AT_BOUND = 1e-6
_MOST_LEVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class Regression:
    """A solved problem of K parameters and R residuals."""

    values: Floats
    """Parameters, [K]."""
    covariance: Floats
    """Of the parameters, [K, K]; rows of parameters at a bound are zero."""
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
    return Regression(values, _covariance(plain, columns, scale, held), plain, columns, scale, cost, held)


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


def _spread(residuals: Floats) -> float:
    return float(np.median(np.abs(residuals - np.median(residuals)))) / _NORMAL_MAD


def _covariance(residuals: Floats, slope: Floats, scale: float, held: Bools) -> Floats:
    num_parameters = slope.shape[1]
    covariance = np.zeros((num_parameters, num_parameters))
    free = np.flatnonzero(~held)
    if not free.size:
        return covariance
    inner = 1.0 + np.square(residuals / scale)
    part = slope[:, free]
    curvature = (part * (inner**-1.5)[:, None]).T @ part
    inverse = np.linalg.pinv(curvature, rcond=1e-14, hermitian=True)
    # A cell that alone tells a figure bends the fit towards itself, so that its residual is too small.
    leverage = np.einsum("ri,ij,rj->r", part, inverse, part) * inner**-1.5
    pull = part * (residuals / np.sqrt(inner) / (1.0 - np.minimum(leverage, _MOST_LEVERAGE)))[:, None]
    robust = inverse @ (pull.T @ pull) @ inverse
    degrees = max(len(residuals) - free.size, 1)
    # Huber (1981), eq. 6.5.
    spread = np.sum(np.square(residuals) / inner) / degrees / np.square(np.mean(inner**-1.5))
    equal = spread * np.diag(np.linalg.pinv(part.T @ part, rcond=1e-14, hermitian=True))
    own = np.diag(robust)
    widening = np.sqrt(np.maximum(equal / np.where(own > 0.0, own, np.inf), 1.0))
    covariance[np.ix_(free, free)] = robust * np.outer(widening, widening)
    return covariance
