"""Cost of a round of speculation from end-to-end measurements: T = a + b·K + c·(K+1)·B.

a is the pass whatever its depth, b one draft token, c one more position of one sequence (B sequences). A
depth that was not measured is read off between those that were; outside them nothing is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrate.measurements import RoundMeasurements
from calibrate.regression import reach
from specsim.arrays import Bools, Floats, Ints
from specsim.errors import DomainError
from specsim.results.statistics import student_quantile

_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class RoundPrediction:
    """What is said of R rounds; arrays [R], NaN where nothing is."""

    round_s: Floats
    power_w: Floats
    """Of all devices, W."""
    clock_fraction: Floats
    """Of the nominal clock."""

    def tokens_per_s(self, rounds: RoundMeasurements) -> Floats:
        """Return the output of all sequences, tokens/s, at the measured acceptance lengths."""
        return rounds.num_sequences * rounds.acceptance_length / self.round_s

    def energy_per_token_j(self, rounds: RoundMeasurements) -> Floats:
        """Return the energy of an output token, J."""
        return self.power_w / self.tokens_per_s(rounds)


@dataclass(frozen=True, slots=True)
class RoundCost:
    """A fitted cost of rounds.

    Examples
    --------
    >>> cost = RoundCost((6e-3, 4e-4, 0.0), np.zeros((3, 3)), 0.01, 8, (0, 5), (1, 1), True)
    >>> cost.time_s(np.array([3.0]), np.array([1])).round(5).tolist()
    [0.0072]
    """

    coefficients_s: tuple[float, float, float]
    """a, b and c, s."""
    covariance: Floats
    """Of a, b and c, s², [3, 3]."""
    spread: float
    """Relative spread of rounds about the law."""
    num_rows: int
    depths: tuple[float, float]
    """Least and most K of the fit."""
    batches: tuple[int, int]
    """Least and most sequences of the fit."""
    has_baseline: bool
    """Rows without speculation are part of the law; else K = 0 is outside it."""

    def time_s(self, num_speculative_tokens: Floats, num_sequences: Ints) -> Floats:
        """Time of a round, s, [R].

        Raises
        ------
        DomainError
            Where a depth or a batch is outside what was measured.
        """
        self._check(num_speculative_tokens, num_sequences)
        a, b, c = self.coefficients_s
        return a + b * num_speculative_tokens + c * (num_speculative_tokens + 1.0) * num_sequences

    def predict(self, rounds: RoundMeasurements) -> RoundPrediction:
        """Return the time of measured rounds; a cost says nothing of power and clock.

        Raises
        ------
        DomainError
            As `time_s`.
        """
        nothing = np.full(len(rounds), np.nan)
        time_s = self.time_s(rounds.num_speculative_tokens, rounds.num_sequences)
        return RoundPrediction(time_s, nothing, nothing)

    def interval_s(
        self, num_speculative_tokens: Floats, num_sequences: Ints, *, level: float = _LEVEL
    ) -> tuple[Floats, Floats]:
        """Return limits between which one more measured round lies, s, [R] each."""
        centre = self.time_s(num_speculative_tokens, num_sequences)
        design = _design(num_speculative_tokens, num_sequences)
        quantile = student_quantile(0.5 + level / 2, max(self.num_rows - 3, 1))
        off = reach(design, self.covariance, self.spread * centre, quantile=quantile)
        return centre - off, centre + off

    def speedup(self, num_speculative_tokens: Floats, acceptance_length: Floats, baseline_s: float) -> Floats:
        """Speed-up over a baseline step for one sequence: acceptance length times baseline over round."""
        one = np.ones(num_speculative_tokens.shape, dtype=np.int64)
        return acceptance_length * baseline_s / self.time_s(num_speculative_tokens, one)

    def _check(self, depth: Floats, batch: Ints) -> None:
        for name, values, (least, most) in (
            ("depth", depth, self.depths),
            ("batch", batch.astype(np.float64), self.batches),
        ):
            outside = values[(values < least) | (values > most)]
            if outside.size:
                measured = f"the measured {least:g}–{most:g}"
                raise DomainError(
                    f"{name} of {outside[0]:g} is outside {measured}; rounds are not extrapolated"
                )


def fit_rounds(rounds: RoundMeasurements) -> RoundCost:
    """Fit the cost of rounds by relative least squares.

    A baseline step has no draft and, often, another kernel: rows without speculation are left out of the
    law where at least two depths remain. c is fitted where batches differ; a single batch hides it in a
    and b.

    Parameters
    ----------
    rounds
        Rows of one device, target and draft.

    Raises
    ------
    DomainError
        Where fewer than two depths were measured, or fewer rows than coefficients.
    """
    drafting = rounds.num_speculative_tokens > 0
    has_baseline = len(np.unique(rounds.num_speculative_tokens[drafting])) < 2
    used = rounds if has_baseline else rounds.take(drafting)
    depth, batch = used.num_speculative_tokens, used.num_sequences
    if len(np.unique(depth)) < 2:
        raise DomainError("the cost of a draft token needs rounds of at least two depths")
    free = np.array([True, True, len(np.unique(batch)) > 1])
    if len(used) < int(free.sum()) + 1:
        raise DomainError(
            f"{len(used)} rounds cannot determine {int(free.sum())} coefficients and their error"
        )
    found, covariance, spread = _relative_least_squares(_design(depth, batch), used.round_s, free)
    return RoundCost(
        coefficients_s=(float(found[0]), float(found[1]), float(found[2])),
        covariance=covariance,
        spread=spread,
        num_rows=len(used),
        depths=(float(depth.min()), float(depth.max())),
        batches=(int(batch.min()), int(batch.max())),
        has_baseline=has_baseline,
    )


def _design(depth: Floats, batch: Ints) -> Floats:
    return np.column_stack([np.ones(len(depth)), depth, (depth + 1) * batch]).astype(np.float64)


def _relative_least_squares(design: Floats, time_s: Floats, free: Bools) -> tuple[Floats, Floats, float]:
    """Non-negative coefficients of least relative error, their covariance, and the relative spread."""
    from scipy.optimize import nnls

    columns = np.flatnonzero(free)
    weighted = design[:, columns] / time_s[:, None]
    values, _ = nnls(weighted, np.ones(len(time_s)))
    residuals = 1.0 - weighted @ values
    degrees = max(len(time_s) - len(columns), 1)
    spread = math.sqrt(float(residuals @ residuals) / degrees)
    found, covariance = np.zeros(3), np.zeros((3, 3))
    found[columns] = values
    covariance[np.ix_(columns, columns)] = spread**2 * np.linalg.pinv(weighted.T @ weighted)
    return found, covariance, spread
