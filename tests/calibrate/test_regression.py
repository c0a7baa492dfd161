"""The solver on problems with known answers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

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


def test_standard_errors_are_those_of_white_with_leverage_and_few_degrees_of_freedom() -> None:
    y = _DESIGN @ _TRUE + _noise(2)
    solved = solve(lambda at: _DESIGN @ at - y, np.zeros(2), *_WIDE, scale=10.0)
    inverse = np.linalg.inv(_DESIGN.T @ _DESIGN)
    hat = _DESIGN @ inverse @ _DESIGN.T
    left = 1 - np.diag(hat)
    pull = _DESIGN * (solved.residuals / np.sqrt(left))[:, None]
    robust = np.diag(inverse @ pull.T @ pull @ inverse)
    for index, error in enumerate(solved.student * solved.standard_errors):
        scaled = np.diag((_DESIGN @ inverse)[:, index] / np.sqrt(left))
        form = scaled @ (np.eye(len(_X)) - hat) @ scaled
        degrees = np.trace(form) ** 2 / np.trace(form @ form)
        widened = scipy.stats.t.ppf(0.975, round(degrees)) / 1.96
        assert error == pytest.approx(np.sqrt(robust[index]) * widened, rel=1e-3)


@pytest.mark.parametrize("count", [5, 30])
def test_two_standard_errors_of_a_mean_are_student_s_interval(count: int) -> None:
    y = _noise(6)[:count]
    wide = (np.array([-10.0]), np.array([10.0]))
    solved = solve(lambda at: at - y, np.zeros(1), *wide, scale=10.0)
    student = scipy.stats.t.ppf(0.975, count - 1) / 1.96
    widened = solved.student * solved.standard_errors
    assert widened[0] == pytest.approx(np.std(y, ddof=1) / np.sqrt(count) * student, rel=0.01)


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
