"""Cost of rounds: recovered where it is known, read off only between what was measured."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate import RoundMeasurements, trace_of
from calibrate.rounds import fit_rounds
from specsim.errors import DomainError
from specsim.streams import Purpose, RandomStreams


def _rounds(
    cost: tuple[float, float, float], depths: list[int], batches: list[int], *, noise: float = 0.0
) -> RoundMeasurements:
    a, b, c = cost
    grid = [(k, batch, repeat) for k in depths for batch in batches for repeat in range(4)]
    draw = RandomStreams(1).generator(Purpose.BOOTSTRAP).normal(0.0, noise or 1e-12, len(grid))
    rows = [
        {
            "k": k,
            "batch": batch,
            "acceptance_length": 1 + 0.6 * k,
            "tokens_per_s": batch * (1 + 0.6 * k) / ((a + b * k + c * (k + 1) * batch) * np.exp(error)),
        }
        for (k, batch, _), error in zip(grid, draw, strict=True)
    ]
    rounds = trace_of(pd.DataFrame(rows), file="made up", header={"device": "made-up"}).rounds
    assert rounds is not None
    return rounds


@given(st.floats(1e-3, 1e-1), st.floats(1e-5, 1e-2), st.floats(1e-6, 1e-3))
def test_coefficients_are_recovered_exactly_without_noise(a: float, b: float, c: float) -> None:
    cost = fit_rounds(_rounds((a, b, c), [1, 3, 5, 7], [1, 8, 32]))
    assert cost.coefficients_s == pytest.approx((a, b, c), rel=1e-6)


def test_one_batch_hides_the_cost_of_a_position_in_the_others() -> None:
    cost = fit_rounds(_rounds((6e-3, 3e-4, 1e-4), [3, 5, 7], [1]))
    assert cost.coefficients_s == pytest.approx((6.1e-3, 4e-4, 0.0))


def test_a_new_round_lies_in_its_interval_about_as_often_as_said() -> None:
    truth = (6e-3, 3.6e-4, 2e-5)
    cost = fit_rounds(_rounds(truth, [1, 3, 7], [1, 8], noise=0.03))
    depth, batch = np.full(4000, 5.0), np.full(4000, 4)
    low, high = cost.interval_s(depth, batch)
    a, b, c = truth
    draw = RandomStreams(2).generator(Purpose.BOOTSTRAP).normal(0.0, 0.03, 4000)
    new_s = (a + 5 * b + 24 * c) * np.exp(draw)
    assert 0.9 < np.mean((new_s > low) & (new_s < high)) < 0.99


def test_the_baseline_is_no_round_where_depths_suffice() -> None:
    with_baseline = _rounds((6e-3, 3e-4, 0.0), [0, 3, 7], [1])
    slow = with_baseline.num_speculative_tokens == 0
    rates = np.where(slow, 2.0, 1.0) * with_baseline.tokens_per_s
    data = pd.DataFrame(
        {
            "k": with_baseline.num_speculative_tokens,
            "acceptance_length": with_baseline.acceptance_length,
            "tokens_per_s": rates,
        }
    )
    rounds = trace_of(data, file="made up", header={"device": "made-up"}).rounds
    assert rounds is not None
    cost = fit_rounds(rounds)
    assert not cost.has_baseline
    assert cost.coefficients_s == pytest.approx((6e-3, 3e-4, 0.0))
    with pytest.raises(DomainError, match=r"depth of 0 is outside the measured 3–7"):
        cost.time_s(np.array([0.0]), np.array([1]))


def test_speedup_is_acceptance_length_times_baseline_over_round() -> None:
    cost = fit_rounds(_rounds((6e-3, 3e-4, 0.0), [3, 5, 7], [1]))
    assert cost.speedup(np.array([4.0]), np.array([3.0]), 5e-3) == pytest.approx(3 * 5e-3 / 7.2e-3)


@pytest.mark.parametrize(
    ("depth", "batch", "message"),
    [(9.0, 1, "depth of 9"), (3.0, 64, "batch of 64"), (0.5, 1, "depth of 0.5")],
)
def test_nothing_is_extrapolated(depth: float, batch: int, message: str) -> None:
    cost = fit_rounds(_rounds((6e-3, 3e-4, 1e-5), [1, 3, 7], [1, 8]))
    with pytest.raises(DomainError, match=message):
        cost.time_s(np.array([depth]), np.array([batch]))


def test_one_depth_is_refused() -> None:
    with pytest.raises(DomainError, match="at least two depths"):
        fit_rounds(_rounds((6e-3, 3e-4, 0.0), [3], [1, 8]))
