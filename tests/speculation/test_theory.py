"""Closed forms against the published tables and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import DomainError
from specsim.speculation.theory import (
    best_lookahead,
    expected_tokens,
    finite_length,
    mixture_expected_tokens,
    operations_factor,
    total_variation,
    wall_time_improvement,
)

RATES = st.floats(0, 1)
LOOKAHEADS = st.integers(0, 40)


@pytest.mark.parametrize(
    ("rate", "lookahead", "operations", "speed"),
    [
        (0.6, 2, 1.53, 1.96),
        (0.7, 3, 1.58, 2.53),
        (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69),
        (0.9, 2, 1.11, 2.71),
        (0.9, 10, 1.60, 6.86),
    ],
)
def test_leviathan_table_1(rate: float, lookahead: int, operations: float, speed: float) -> None:
    assert round(operations_factor(rate, lookahead), 2) == operations
    assert round(wall_time_improvement(rate, lookahead, 0.0), 2) == speed


@pytest.mark.parametrize(
    ("lookahead", "rate", "cost", "predicted"),
    [
        (7, 0.75, 0.02, 3.2),
        (7, 0.80, 0.04, 3.3),
        (7, 0.82, 0.11, 2.5),
        (7, 0.62, 0.02, 2.3),
        (5, 0.68, 0.04, 2.4),
        (3, 0.71, 0.11, 2.0),
        (5, 0.65, 0.02, 2.4),
        (5, 0.73, 0.04, 2.6),
        (3, 0.74, 0.11, 2.0),
        (5, 0.53, 0.02, 1.9),
        (3, 0.55, 0.04, 1.8),
        (3, 0.56, 0.11, 1.6),
    ],
)
def test_leviathan_table_2_predictions(lookahead: int, rate: float, cost: float, predicted: float) -> None:
    assert wall_time_improvement(rate, lookahead, cost) == pytest.approx(predicted, abs=0.1)


def test_operations_factor_of_a_poor_draft() -> None:
    assert operations_factor(0.2, 5) == pytest.approx(4.80, abs=0.005)


@pytest.mark.parametrize(
    ("cost", "rate", "lookahead", "improvement"),
    [
        (0.01, 0.5, 5, 1.875),
        (0.01, 0.8, 14, 4.232),
        (0.01, 0.9, 24, 7.486),
        (0.05, 0.5, 3, 1.63),
        (0.05, 0.6, 4, 1.921),
        (0.05, 0.7, 6, 2.353),
        (0.05, 0.8, 8, 3.092),
        (0.05, 0.9, 13, 4.674),
        (0.1, 0.5, 2, 1.458),
        (0.1, 0.7, 4, 1.981),
        (0.1, 0.8, 6, 2.470),
        (0.1, 0.9, 10, 3.431),
        (0.2, 0.8, 4, 1.868),
    ],
)
def test_best_lookahead_values(cost: float, rate: float, lookahead: int, improvement: float) -> None:
    assert best_lookahead(rate, cost) == lookahead
    assert wall_time_improvement(rate, lookahead, cost) == pytest.approx(improvement, abs=6e-4)


@given(RATES, LOOKAHEADS)
def test_expected_tokens_is_the_sum_of_powers(rate: float, lookahead: int) -> None:
    powers = math.fsum(rate**depth for depth in range(lookahead + 1))
    assert expected_tokens(rate, lookahead) == pytest.approx(powers, rel=1e-13)


@given(RATES, st.floats(0.01, 2))
def test_the_best_lookahead_beats_every_other(rate: float, cost: float) -> None:
    best = best_lookahead(rate, cost, limit=60)
    improvements = [wall_time_improvement(rate, lookahead, cost) for lookahead in range(61)]
    assert improvements[best] == pytest.approx(max(improvements), rel=1e-12)


@given(st.floats(0.02, 0.99), st.data())
def test_a_draft_helps_when_it_is_better_than_it_is_dear(rate: float, data: st.DataObject) -> None:
    cost = data.draw(st.floats(0.001, 0.9)) * rate
    best = best_lookahead(rate, cost, limit=2000)
    assert best >= 1
    assert wall_time_improvement(rate, best, cost) >= (1 + rate) / (1 + cost) * (1 - 1e-12)


def test_endless_gain_needs_a_limit() -> None:
    with pytest.raises(DomainError, match="give a limit"):
        best_lookahead(0.5, 0.0)
    with pytest.raises(DomainError, match="give a limit"):
        best_lookahead(1.0, 0.5)
    assert best_lookahead(0.5, 0.0, limit=9) == 9
    assert best_lookahead(1.0, 1.0) == 0
    assert best_lookahead(0.0, 0.0) == 0


@pytest.mark.parametrize(
    ("tokens", "rounds"), [(1, 1), (3, 1.4), (10, 3.389824), (100, 30.2127), (1000, 297.942)]
)
def test_finite_length_rounds(tokens: int, rounds: float) -> None:
    assert finite_length(0.8, 4, tokens).expected_rounds == pytest.approx(rounds, rel=2e-6)


def test_ten_tokens_gain_more_when_the_last_draft_is_shortened() -> None:
    shortened = finite_length(0.8, 4, 10, shorten_last_draft=True)
    assert shortened.wall_time_improvement(0.1) == pytest.approx(2.2320, abs=5e-5)
    assert shortened.expected_rounds + 0.1 * shortened.expected_drafted == pytest.approx(4.480218, abs=5e-7)
    assert finite_length(0.8, 4, 10).wall_time_improvement(0.1) == pytest.approx(2.107, abs=5e-4)


@given(RATES, st.integers(0, 5), st.integers(1, 12), st.booleans())
def test_finite_length_matches_enumeration(rate: float, lookahead: int, tokens: int, shorten: bool) -> None:
    def walk(left: int) -> tuple[float, float]:
        reach = min(lookahead, left - 1) if shorten else lookahead
        rounds, drafted = 1.0, float(reach)
        for kept in range(reach + 1):
            chance = rate**kept * (1 - rate if kept < reach else 1)
            if kept + 1 < left:
                rest = table[left - kept - 1]
                rounds, drafted = rounds + chance * rest[0], drafted + chance * rest[1]
        return rounds, drafted

    table = {0: (0.0, 0.0)}
    for left in range(1, tokens + 1):
        table[left] = walk(left)
    result = finite_length(rate, lookahead, tokens, shorten_last_draft=shorten)
    assert (result.expected_rounds, result.expected_drafted) == pytest.approx(table[tokens])


def test_long_generations_approach_the_closed_form() -> None:
    result = finite_length(0.7, 3, 20000)
    assert result.num_tokens / result.expected_rounds == pytest.approx(expected_tokens(0.7, 3), rel=1e-4)


def test_a_mixture_is_the_harmonic_mean_not_the_value_at_the_mean() -> None:
    assert mixture_expected_tokens([0.5, 0.9], [0.5, 0.5], 5) == pytest.approx(2.773, abs=5e-4)
    assert expected_tokens(0.7, 5) == pytest.approx(2.941, abs=5e-4)


@given(RATES, LOOKAHEADS)
def test_a_mixture_of_one_is_itself(rate: float, lookahead: int) -> None:
    assert mixture_expected_tokens([rate], [1.0], lookahead) == pytest.approx(
        expected_tokens(rate, lookahead)
    )


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_an_impossible_acceptance_rate_is_refused(rate: float) -> None:
    for formula in (expected_tokens, operations_factor):
        with pytest.raises(DomainError, match="acceptance_rate"):
            formula(rate, 3)


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(DomainError, match="lookahead"):
        expected_tokens(0.5, -1)
    with pytest.raises(DomainError, match="draft_cost_ratio"):
        wall_time_improvement(0.5, 3, -0.1)
    with pytest.raises(DomainError, match="draft_cost_ratio"):
        finite_length(0.5, 3, 10).wall_time_improvement(math.inf)
    with pytest.raises(DomainError, match="draft_operations_ratio"):
        operations_factor(0.5, 3, math.nan)
    with pytest.raises(DomainError, match="num_tokens"):
        finite_length(0.5, 3, 0)
    with pytest.raises(DomainError, match="token_shares"):
        mixture_expected_tokens([0.5, 0.9], [0.5, 0.6], 5)
    with pytest.raises(DomainError, match="one share for each"):
        mixture_expected_tokens([0.5, 0.9], [1.0], 5)


def test_total_variation_is_half_the_sum_of_differences() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    assert total_variation(p, q) == pytest.approx(0.3)
