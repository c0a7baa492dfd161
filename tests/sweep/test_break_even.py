"""Break-even: all crossings, their intervals, and the closed form."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError
from specsim.sweep import in_process
from specsim.sweep.break_even import TOLERANCE, CurvePoint, crossings
from specsim.sweep.sweep import SweepJob
from tests.sweep.small import SMALL


def _line(values: list[float], half_width: float = 0.1) -> list[CurvePoint]:
    return [CurvePoint(float(x), y, y - half_width, y + half_width) for x, y in enumerate(values, start=1)]


def test_a_curve_that_is_not_monotone_has_all_its_crossings() -> None:
    found = crossings(_line([1.2, 0.8, 1.2, 0.8]))
    assert [crossing.place for crossing in found] == pytest.approx([1.5, 2.5, 3.5])
    assert [crossing.gains for crossing in found] == ["below", "above", "below"]


@given(st.lists(st.floats(0.1, 3.0).filter(lambda y: abs(y - 1) > 1e-6), min_size=2, max_size=20))
def test_there_is_one_crossing_for_each_change_of_sign_and_it_lies_between(values: list[float]) -> None:
    found = crossings(_line(values))
    changes = [
        index for index, (a, b) in enumerate(itertools.pairwise(values), start=1) if (a > 1) != (b > 1)
    ]
    assert len(found) == len(changes)
    for crossing, index in zip(found, changes, strict=True):
        assert index <= crossing.place <= index + 1
        assert crossing.low is None or crossing.low <= crossing.place
        assert crossing.high is None or crossing.high >= crossing.place


@given(st.floats(0.01, 0.3), st.floats(0.01, 0.3))
def test_a_wider_band_gives_a_wider_interval(narrow: float, more: float) -> None:
    values = [2.0, 1.5, 0.5, 0.2]
    (tight,), (wide,) = (crossings(_line(values, width)) for width in (narrow, narrow + more))
    assert tight.low is not None
    assert tight.high is not None
    assert wide.low is not None
    assert wide.high is not None
    assert wide.low < tight.low
    assert wide.high > tight.high


def test_an_interval_that_leaves_the_range_is_open() -> None:
    (crossing,) = crossings(_line([1.05, 0.5]))
    assert crossing.low is None
    assert crossing.high is not None


def test_without_intervals_there_is_none() -> None:
    (crossing,) = crossings([CurvePoint(1.0, 1.5, None, None), CurvePoint(2.0, 0.5, None, None)])
    assert (crossing.place, crossing.low, crossing.high) == (1.5, None, None)


def test_a_crossing_on_a_log_axis_is_interpolated_in_the_logarithm() -> None:
    line = [CurvePoint(1.0, 1.5, 1.4, 1.6), CurvePoint(100.0, 0.5, 0.4, 0.6)]
    assert crossings(line, is_log=True)[0].place == pytest.approx(10.0)


def test_the_interval_covers_the_true_crossing_as_often_as_it_says() -> None:
    # The truth falls through 1 at 5; each place is seen with noise of known width.
    generator = np.random.Generator(np.random.PCG64DXSM(0))
    places = np.arange(1.0, 10.0)
    truth, deviation = 1.4 - 0.08 * places, 0.02
    covered = 0
    trials = 2000
    for _ in range(trials):
        # One error for the whole curve, as with common luck.
        means = truth + generator.normal(0.0, deviation)
        line = [
            CurvePoint(x, y, y - 1.96 * deviation, y + 1.96 * deviation)
            for x, y in zip(places, means, strict=True)
        ]
        (crossing,) = crossings(line)
        assert crossing.low is not None
        assert crossing.high is not None
        covered += crossing.low <= 5.0 <= crossing.high
    assert abs(covered / trials - 0.95) < 4 * np.sqrt(0.95 * 0.05 / trials)


def test_bisection_meets_leviathan_for_one_draft_token() -> None:
    # One draft token of cost c pays iff its acceptance is above c (Leviathan et al. 2023, Theorem 3.8).
    job = SweepJob.of(
        SMALL,
        ["distributions.acceptance_rate=0.05..0.95:lin:4", "hardware.target.draft_cost_ratio=0.2,0.4"],
        settings=["speculative_config.num_speculative_tokens=1", "workload.output_tokens=1501"],
        seeks_break_even=True,
    )
    table = job.run(workers=in_process())
    found = table.about["analysis"]["break_even"]  # type: ignore[call-overload, index]
    assert [list(crossing["others"].values()) for crossing in found] == [[0.2], [0.4]]
    for crossing, cost in zip(found, (0.2, 0.4), strict=True):
        assert crossing["place"] == pytest.approx(cost, abs=0.02)
        assert cost - 0.04 < crossing["low"] < crossing["place"] < crossing["high"] < cost + 0.04
        assert crossing["gains"] == "above"
    rates = sorted(
        rate
        for rate, cost in zip(
            table.columns["distributions.acceptance_rate"],
            table.columns["hardware.target.draft_cost_ratio"],
            strict=True,
        )
        if cost == 0.4
    )
    above = next(rate for rate in rates if rate >= found[1]["place"])
    below = max(rate for rate in rates if rate <= found[1]["place"])
    assert above - below <= TOLERANCE * above


def test_whole_numbers_are_narrowed_to_neighbours() -> None:
    job = SweepJob.of(
        SMALL, ["K=1..64:log:2"], settings=["workload.output_tokens=400"], seeks_break_even=True
    )
    table = job.run(workers=in_process())
    (crossing,) = table.about["analysis"]["break_even"]  # type: ignore[call-overload, index]
    tried = sorted(table.columns["speculative_config.num_speculative_tokens"])  # type: ignore[type-var]
    lower = max(k for k in tried if k <= crossing["place"])
    assert lower + 1 in tried
    # Rounds of K drafts cost 1 + K / 10 and give at most 1 / (1 - 0.7) tokens: 23 drafts never pay.
    assert 15 < crossing["place"] < 24


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        (["lookahead.kind=fixed,heuristic"], "two ascending numbers"),
        (["K=3,1"], "two ascending numbers"),
        (["K=3"], "two ascending numbers"),
        (["distributions.acceptance_rate=0.1..0.9"], "without a number of values"),
    ],
)
def test_an_axis_without_an_order_is_refused(vary: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SweepJob.of(SMALL, vary, seeks_break_even=True)


def test_break_even_needs_a_grid() -> None:
    with pytest.raises(ConfigError, match="needs the design grid"):
        SweepJob.of(SMALL, ["K=1..3"], design="zip", seeks_break_even=True)
