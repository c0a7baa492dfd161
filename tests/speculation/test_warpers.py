"""Warpers against hand-worked cases and their invariants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import DomainError
from specsim.speculation.warpers import temperature, top_k, top_p, warp
from tests.strategies import distributions

ANY = st.integers(1, 8).flatmap(lambda size: distributions(size=size))


@pytest.mark.parametrize("value", [0.0, 1e-6, 9.9e-6])
def test_a_vanishing_temperature_is_greedy_and_ties_go_to_the_lowest_id(value: float) -> None:
    assert temperature([2.0, 5.0, 5.0, 1.0], value).tolist() == [0, 1, 0, 0]


def test_temperature_one_is_the_softmax() -> None:
    logits = np.log([0.2, 0.3, 0.5])
    np.testing.assert_allclose(temperature(logits, 1.0), [0.2, 0.3, 0.5], rtol=1e-14)


def test_temperature_raises_probabilities_to_its_inverse() -> None:
    p = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(temperature(np.log(p), 0.5), p**2 / (p**2).sum(), rtol=1e-14)


def test_a_small_temperature_of_large_logits_does_not_overflow() -> None:
    assert temperature([1e5, -1e5, 0.0], 1e-4).tolist() == [1, 0, 0]


def test_a_token_ruled_out_by_its_logit_stays_out() -> None:
    assert temperature([-np.inf, 0.0], 1.0).tolist() == [0, 1]


@pytest.mark.parametrize("logits", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf], [], [[1.0]]])
def test_logits_without_a_distribution_are_refused(logits: list[float]) -> None:
    with pytest.raises(DomainError, match="logits"):
        temperature(logits, 1.0)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_an_impossible_temperature_is_refused(value: float) -> None:
    with pytest.raises(DomainError, match="temperature"):
        temperature([0.0, 1.0], value)


def test_top_k_keeps_the_lowest_ids_of_a_tie() -> None:
    np.testing.assert_allclose(top_k([0.25, 0.25, 0.25, 0.25], 2), [0.5, 0.5, 0, 0])


def test_top_p_keeps_the_token_that_reaches_the_mass() -> None:
    np.testing.assert_allclose(top_p([0.5, 0.3, 0.2], 0.5), [1, 0, 0])
    np.testing.assert_allclose(top_p([0.5, 0.3, 0.2], 0.51), [0.625, 0.375, 0])


@given(ANY, st.integers(1, 10))
def test_top_k_keeps_at_most_k_and_no_less_probable_one(p: np.ndarray, k: int) -> None:
    warped = top_k(p, k)
    assert np.count_nonzero(warped) <= k
    assert warped.sum() == pytest.approx(1)
    assert p[warped > 0].min() >= p[warped == 0].max(initial=0)


@given(ANY, st.floats(0.01, 1))
def test_top_p_keeps_the_mass_and_no_token_too_many(p: np.ndarray, mass: float) -> None:
    kept = p[top_p(p, mass) > 0]
    assert kept.sum() >= mass - 1e-12
    assert kept.sum() - kept.min() < mass + 1e-12


@given(ANY)
def test_wide_open_warpers_change_nothing(p: np.ndarray) -> None:
    np.testing.assert_allclose(top_k(p, 8), p, rtol=1e-14)
    np.testing.assert_allclose(top_p(p, 1.0), p, rtol=1e-14)


def test_the_pipeline_cuts_by_rank_before_it_cuts_by_mass() -> None:
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    warped = warp(logits, temperature_value=1.0, top_k_value=3, top_p_value=0.5)
    np.testing.assert_allclose(warped, [4 / 7, 3 / 7, 0, 0])


@pytest.mark.parametrize("k", [0, -1])
def test_top_k_of_nothing_is_refused(k: int) -> None:
    with pytest.raises(DomainError, match="top_k"):
        top_k([0.5, 0.5], k)


@pytest.mark.parametrize("mass", [0.0, 1.1, np.nan])
def test_top_p_outside_its_range_is_refused(mass: float) -> None:
    with pytest.raises(DomainError, match="top_p"):
        top_p([0.5, 0.5], mass)
