"""Acceptance, correction and draws against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import DomainError
from specsim.speculation.sampling import (
    acceptance_rate,
    correction_distribution,
    corrections,
    draw,
    keep_probabilities,
)
from specsim.speculation.theory import total_variation
from tests.strategies import distributions

PAIR = st.integers(1, 6).flatmap(lambda size: st.tuples(distributions(size=size), distributions(size=size)))


def test_two_token_example_accepts_six_tenths_and_emits_the_target() -> None:
    p, q = np.array([0.7, 0.3]), np.array([0.3, 0.7])
    assert acceptance_rate(p, q) == pytest.approx(0.6, abs=1.1e-16)
    kept = q * keep_probabilities(p, q)
    emitted = kept + (1 - kept.sum()) * correction_distribution(p, q)
    assert np.abs(emitted - p).max() <= 1.1e-16


@given(PAIR)
def test_token_verification_emits_the_target(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = pair
    kept = q * keep_probabilities(p, q)
    emitted = kept + (1 - kept.sum()) * correction_distribution(p, q)
    assert np.abs(emitted - p).max() < 1e-15


@given(PAIR)
def test_acceptance_and_total_variation_sum_to_one(pair: tuple[np.ndarray, np.ndarray]) -> None:
    assert acceptance_rate(*pair) + total_variation(*pair) == pytest.approx(1, abs=1e-15)


def test_equal_distributions_accept_always_and_correct_to_the_target() -> None:
    p = [0.2, 0.3, 0.5]
    assert acceptance_rate(p, p) == 1
    assert correction_distribution(p, p).tolist() == p


def test_disjoint_supports_accept_never_and_correct_to_the_target() -> None:
    assert acceptance_rate([1.0, 0.0], [0.0, 1.0]) == 0
    assert correction_distribution([1.0, 0.0], [0.0, 1.0]).tolist() == [1.0, 0.0]


def test_a_token_that_neither_gives_is_not_kept() -> None:
    assert keep_probabilities(np.zeros(1), np.zeros(1)).tolist() == [0.0]


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([0.5, 0.5], [0.2, 0.3, 0.5], "over 2 and 3 tokens"),
        ([0.5, 0.6], [0.5, 0.5], "target: sums to 1.1"),
        ([0.5, 0.5], [-0.1, 1.1], "draft: -0.1 at 0"),
        ([0.5, float("nan")], [0.5, 0.5], "target: nan at 1"),
        ([float("inf"), 0.5], [0.5, 0.5], "target: inf at 0"),
        ([], [], "at least one"),
        ([[0.5, 0.5]], [0.5, 0.5], "shape"),
        (["a", "b"], [0.5, 0.5], "not a vector of numbers"),
        ([0.3333, 0.3333, 0.3333], [0.2, 0.3, 0.5], "sums to"),
    ],
)
def test_what_is_no_pair_of_distributions_is_refused(p: list, q: list, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        acceptance_rate(p, q)
    with pytest.raises(DomainError, match=message):
        correction_distribution(p, q)


def test_corrections_treat_each_row_alone() -> None:
    target = np.array([[0.7, 0.3], [0.5, 0.5]])
    draft = np.array([[0.3, 0.7], [0.5, 0.5]])
    assert corrections(target, draft).tolist() == [[1.0, 0.0], [0.5, 0.5]]


ALMOST_ONE = float(np.nextafter(1.0, 0.0))


@given(
    st.integers(1, 8).flatmap(lambda size: distributions(size=size)),
    st.one_of(st.sampled_from([0.0, ALMOST_ONE, 5e-324]), st.floats(0, 1, exclude_max=True)),
    st.sampled_from([1.0, 0.3, 1e-12, 0.9999]),
)
def test_a_draw_has_mass_whatever_the_uniform_and_the_sum(
    p: np.ndarray, uniform: float, scale: float
) -> None:
    token = draw(p[np.newaxis] * scale, np.array([uniform]))[0]
    assert p[token] > 0


def test_draws_cut_the_unit_interval_by_the_probabilities() -> None:
    p = np.array([0.25, 0.0, 0.5, 0.25])
    uniforms = np.array([0.0, 0.249999, 0.25, 0.749999, 0.75, ALMOST_ONE])
    assert draw(np.tile(p, (6, 1)), uniforms).tolist() == [0, 0, 2, 2, 3, 3]


def test_a_trailing_zero_is_never_drawn_where_the_sum_ends_below_one() -> None:
    p = np.append(np.full(131072, np.float64(np.float32(1 / 131072)) * 0.9999), 0.0)
    assert draw(p[np.newaxis], np.array([ALMOST_ONE]))[0] < 131072


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 0.0]])
def test_a_row_without_mass_is_refused(row: list[float]) -> None:
    with pytest.raises(DomainError, match="no mass"):
        draw(np.array([row]), np.array([0.5]))


@pytest.mark.parametrize("uniform", [1.0, -1e-9, np.nan])
def test_a_uniform_outside_the_unit_interval_is_refused(uniform: float) -> None:
    with pytest.raises(DomainError, match="outside"):
        draw(np.array([[0.5, 0.5]]), np.array([uniform]))
