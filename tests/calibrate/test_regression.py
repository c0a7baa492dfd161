"""The solver on problems with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.regression import solve
from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.streams import Purpose, RandomStreams

_X = np.linspace(0.0, 1.0, 200)
_DESIGN = np.column_stack([np.ones_like(_X), _X])
_TRUE = np.array([1.0, 2.0])
_WIDE = (np.array([-10.0, -10.0]), np.array([10.0, 10.0]))


def _noise(seed: int, scale: float = 0.01) -> Floats:
    return RandomStreams(seed).generator(Purpose.BOOTSTRAP).normal(0.0, scale, len(_X))


def test_a_line_without_outliers_is_least_squares() -> None:
    y = _DESIGN @ _TRUE + _noise(1)
    expected, *_ = np.linalg.lstsq(_DESIGN, y, rcond=None)
    solved = solve(lambda at: _DESIGN @ at - y, np.zeros(2), *_WIDE, scale=10.0)
    assert solved.values == pytest.approx(expected, abs=1e-6)


def test_standard_errors_are_those_of_white_with_leverage() -> None:
    y = _DESIGN @ _TRUE + _noise(2)
    solved = solve(lambda at: _DESIGN @ at - y, np.zeros(2), *_WIDE, scale=10.0)
    inverse = np.linalg.inv(_DESIGN.T @ _DESIGN)
    leverage = np.einsum("ri,ij,rj->r", _DESIGN, inverse, _DESIGN)
    pull = _DESIGN * (solved.residuals / (1 - leverage))[:, None]
    assert solved.covariance == pytest.approx(inverse @ pull.T @ pull @ inverse, rel=1e-3)


def test_outliers_hardly_move_the_line() -> None:
    y = _DESIGN @ _TRUE + _noise(3)
    y[::20] += 5.0
    robust = solve(lambda at: _DESIGN @ at - y, np.zeros(2), *_WIDE)
    plain, *_ = np.linalg.lstsq(_DESIGN, y, rcond=None)
    assert np.abs(robust.values - _TRUE).max() < 0.02 < np.abs(plain - _TRUE).max()


def test_a_bound_holds_and_is_told() -> None:
    y = _DESIGN @ _TRUE + _noise(4)
    solved = solve(lambda at: _DESIGN @ at - y, np.zeros(2), np.array([-10.0, -10.0]), np.array([10.0, 1.5]))
    assert solved.is_at_bound.tolist() == [False, True]
    assert solved.values[1] == pytest.approx(1.5)
    assert solved.standard_errors[1] == 0.0 < solved.standard_errors[0]


def test_fewer_residuals_than_parameters_are_refused() -> None:
    with pytest.raises(DomainError, match="1 measured figures cannot determine 2 parameters"):
        solve(lambda at: at[:1], np.zeros(2), *_WIDE)
