"""Intervals: coverage over prompts, why requests are not the unit, pairing, and few prompts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.results.comparison import ArmComparison
from specsim.results.statistics import MAX_UNITS, Drawing, Resampling, interval, student_quantile
from specsim.results.sums import Ratio, Sums
from specsim.streams import RandomStreams
from tests.constant_cost import ClosedLoop

RATIO = Ratio("numerator", "denominator")
TRUTH = 2.0


def prompts_with_their_own_ratio(seed: int, *, num_prompts: int, repeats: int) -> tuple[Sums, Sums]:
    """Make sums by prompt and by request: a prompt has a size and a ratio around 2, a request adds noise."""
    generator = np.random.Generator(np.random.PCG64(seed))
    size = generator.lognormal(0.0, 0.4, num_prompts)
    ratio = TRUTH + generator.normal(0.0, 0.5, num_prompts)
    denominator = np.repeat(size[:, None], repeats, axis=1)
    numerator = denominator * (ratio[:, None] + generator.normal(0.0, 0.05, denominator.shape))
    by_request = {"numerator": numerator.ravel(), "denominator": denominator.ravel()}
    by_prompt = {"numerator": numerator.sum(axis=1), "denominator": denominator.sum(axis=1)}
    return by_prompt, by_request


def resampled(sums: list[Sums], seed: int, *, num_resamples: int = 2000) -> list[Sums]:
    num_prompts = len(next(iter(sums[0].values())))
    return Resampling(num_prompts, RandomStreams(seed), num_resamples=num_resamples).totals(sums)


def covers(sums: Sums, seed: int, *, num_resamples: int) -> bool:
    (totals,) = resampled([sums], seed, num_resamples=num_resamples)
    limits = interval(RATIO.of(totals), len(sums["numerator"]))
    return limits is not None and limits[0] <= TRUTH <= limits[1]


def coverage(num_trials: int, *, num_prompts: int, num_resamples: int, by_request: bool = False) -> float:
    trials = (
        prompts_with_their_own_ratio(seed, num_prompts=num_prompts, repeats=5)[by_request]
        for seed in range(num_trials)
    )
    return float(
        np.mean([covers(sums, seed, num_resamples=num_resamples) for seed, sums in enumerate(trials)])
    )


def test_a_nominal_95_percent_interval_covers_at_about_95_percent() -> None:
    assert 0.92 <= coverage(400, num_prompts=30, num_resamples=400) <= 0.975


@pytest.mark.verification
@pytest.mark.parametrize("num_prompts", [12, 30, 64])
def test_a_nominal_95_percent_interval_covers_in_92_to_97_percent(num_prompts: int) -> None:
    assert 0.92 <= coverage(3000, num_prompts=num_prompts, num_resamples=2000) <= 0.97


def test_resampling_requests_instead_of_prompts_covers_far_too_little() -> None:
    assert coverage(200, num_prompts=30, num_resamples=400, by_request=True) < 0.8


def test_pairing_cancels_what_both_arms_share() -> None:
    generator = np.random.Generator(np.random.PCG64(3))
    shared = generator.lognormal(0.0, 1.0, 50)
    arms: list[Sums] = [{"x": shared, "n": np.ones(50)}, {"x": 0.5 * shared, "n": np.ones(50)}]
    before, after = resampled(arms, 0)
    paired = Ratio("x", "n").of(before) / Ratio("x", "n").of(after)
    assert interval(paired, 50) == pytest.approx((2.0, 2.0), rel=1e-12)


def test_every_resample_draws_as_many_prompts_as_there_are() -> None:
    (totals,) = resampled([{"ones": np.ones(7), "first": np.eye(7)[0]}], 1)
    assert (totals["ones"] == 7).all()
    assert totals["first"].mean() == pytest.approx(1.0, abs=4 * np.sqrt((6 / 7) / 2000))


def test_resamples_do_not_depend_on_how_they_are_chunked() -> None:
    sums: Sums = {"x": np.arange(3000.0)}
    (long,) = resampled([sums], 5, num_resamples=700)
    (short,) = resampled([sums], 5, num_resamples=3)
    assert (long["x"][:3] == short["x"]).all()


@pytest.mark.parametrize("num_prompts", [MAX_UNITS - 1, MAX_UNITS + 1, 5 * MAX_UNITS + 3])
def test_units_share_the_prompts_out_evenly_and_each_prompt_is_drawn_once_on_average(
    num_prompts: int,
) -> None:
    resampling = Resampling(num_prompts, RandomStreams(2), num_resamples=20)
    sizes = np.bincount(resampling.unit)
    assert len(sizes) == min(num_prompts, MAX_UNITS)
    assert sizes.max() - sizes.min() <= 1
    weights = np.concatenate(list(resampling.weights()))
    assert (weights.sum(axis=1) == len(sizes)).all()
    assert weights.var() == pytest.approx(1.0, abs=0.05)


def test_prompts_dealt_into_units_give_the_interval_of_prompts_drawn_one_by_one() -> None:
    num_prompts = 4 * MAX_UNITS
    values = np.random.Generator(np.random.PCG64(7)).lognormal(0.0, 1.0, num_prompts)
    (totals,) = resampled([{"x": values, "n": np.ones(num_prompts)}], 3)
    limits = interval(Ratio("x", "n").of(totals), num_prompts)
    assert limits is not None
    # The central limit theorem: 1.96 standard errors either side, which 2000 resamples tell to some 4 %.
    half_width = 1.96 * values.std() / np.sqrt(num_prompts)
    assert (limits[1] - limits[0]) / 2 == pytest.approx(half_width, rel=0.1)
    assert limits[0] < values.mean() < limits[1]


def test_resamplings_of_other_keys_share_no_luck() -> None:
    keys: tuple[tuple[Drawing, ...], ...] = ((), (Drawing.UNPAIRED,))
    first, second = (next(Resampling(50, RandomStreams(0), key=key).weights()) for key in keys)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05


def test_one_seed_gives_one_summary_and_another_seed_other_intervals() -> None:
    loop = ClosedLoop(acceptance=(0.3, 0.9))
    first, again, other = loop.result().summary(), loop.result().summary(), loop.result(seed=1).summary()
    assert first == again
    assert first["baseline"] == other["baseline"]
    assert first["intervals"] != other["intervals"]


def test_one_prompt_has_no_interval() -> None:
    summary = ClosedLoop(prompts=(0,) * 8).result().summary()
    assert summary["speedup"] is not None
    tpot = summary["speedup"]["tpot"]
    assert tpot["mean"] is not None
    assert (tpot["ci_low"], tpot["ci_high"], tpot["num_prompts"]) == (None, None, 1)
    assert summary["verdict"]["pays"] is None
    assert all(bounds is None for bounds in summary["intervals"]["baseline"].values())
    assert "All requests come from one prompt" in " ".join(summary["known_limitations"])


def test_repeats_of_a_prompt_count_as_one() -> None:
    summary = ClosedLoop(prompts=(0, 1, 2, 3, 0, 1, 2, 3)).result().summary()
    assert summary["intervals"]["num_prompts"] == 4
    assert "8 requests come from 4 prompts" in " ".join(summary["known_limitations"])


def test_a_metric_that_a_resample_leaves_undefined_has_no_interval() -> None:
    assert interval(np.array([1.0, np.nan, 2.0]), 5) is None


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_an_impossible_confidence_level_is_refused(level: float) -> None:
    with pytest.raises(DomainError, match="not between 0 and 1"):
        interval(np.ones(3), 3, level=level)


def test_arms_of_different_requests_are_not_paired() -> None:
    arms: list[Sums] = [{"num_requests": np.array([1.0, 2.0])}, {"num_requests": np.array([2.0, 1.0])}]
    with pytest.raises(DomainError, match="cannot be paired"):
        ArmComparison.of(arms, RandomStreams(0))


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 8, 15, 30, 63, 1000])
@pytest.mark.parametrize("probability", [0.9, 0.95, 0.975])
def test_student_quantile_agrees_with_scipy(probability: float, degrees: int) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(stdtrit(degrees, probability), rel=5e-3)


@given(st.integers(2, 200))
def test_intervals_widen_as_prompts_get_fewer(num_prompts: int) -> None:
    values: Floats = np.linspace(-1.0, 1.0, 2001)
    few, many = interval(values, num_prompts), interval(values, num_prompts + 1)
    assert few is not None
    assert many is not None
    assert few[1] - few[0] >= many[1] - many[0]
    assert few[1] - few[0] > 2 * 0.95 * (1 - 1e-9)


def test_means_lie_inside_their_intervals() -> None:
    summary = ClosedLoop(acceptance=(0.2, 0.5, 0.9)).result().summary()
    for arm in ("baseline", "speculation"):
        metrics, intervals = summary[arm], summary["intervals"][arm]
        assert {"mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "mean_e2el_ms"} <= set(intervals)
        for name, bounds in intervals.items():
            if bounds is not None and name in metrics:
                assert bounds[0] * (1 - 1e-9) <= metrics[name] <= bounds[1] * (1 + 1e-9), name
