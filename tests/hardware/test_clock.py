"""The clock under a power cap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.arrays import Floats
from specsim.hardware.clock import Operation, PowerCurve, StepTime, run_under_cap, smooth_maximum


def _curve(cap_w: float, *, max_fraction: float = 1.2) -> PowerCurve:
    return PowerCurve(
        active_w=119.0,
        clock_w=71.6,
        cap_w=cap_w,
        knee_fraction=0.818,
        slope=1.84,
        min_fraction=0.2,
        max_fraction=max_fraction,
    )


def _rtx_3090(cap_w: float, lookahead: object) -> Operation:
    """Return rounds of a 4-bit 27B model by the fit of the thc1006 measurements (CC0)."""
    k = np.atleast_1d(np.asarray(lookahead, dtype=np.float64))
    nothing = np.zeros_like(k)
    step = StepTime(
        fixed_s=nothing,
        memory_s=(23.5 + 4.4 * k) * 1e-3,
        compute_s=(16.3 + 7.19 * k) * 1e-3,
        attention_memory_s=nothing,
        attention_compute_s=nothing,
        smooth_exponent=5.1,
    )
    return run_under_cap(
        step,
        _curve(cap_w),
        compute_j=9.49 * ((1 + k) * 0.054 + k * 0.0033),
        memory_j=0.134 * (17.56 + 0.9 * k),
    )


def test_rtx_3090_rounds_are_as_measured_under_two_caps() -> None:
    # thc1006 (CC0), K = 0, 3, 7 at 420 W and K = 7 at 250 W: ms, clock in 1,700 MHz, W.
    stock, capped = _rtx_3090(420.0, [0, 3, 7]), _rtx_3090(250.0, 7)
    assert stock.time_s * 1e3 == pytest.approx([24.1, 42.2, 71.5], rel=0.025)
    assert stock.clock_fraction == pytest.approx([1.05, 1.01, 1.02], rel=0.01)
    assert capped.time_s * 1e3 == pytest.approx([99.4], rel=0.03)
    assert capped.clock_fraction == pytest.approx([0.69], rel=0.02)
    assert capped.energy_j / capped.time_s == pytest.approx([247.0], rel=0.005)


def test_a_cap_leaves_part_of_what_it_leaves_beside_active_power() -> None:
    # Closed form: 119 + 0.975·(cap − 119) W.
    for cap_w, drawn_w in ((420.0, 412.475), (250.0, 246.725)):
        operation = _rtx_3090(cap_w, [0, 3, 7])
        assert operation.energy_j / operation.time_s == pytest.approx(drawn_w, rel=1e-6)


def test_without_a_binding_cap_the_clock_is_the_highest() -> None:
    operation = _rtx_3090(2000.0, [0, 3, 7])
    assert operation.clock_fraction.tolist() == [1.2, 1.2, 1.2]
    assert (operation.energy_j / operation.time_s < _curve(2000.0).allowed_w).all()


def test_a_cap_below_the_lowest_clock_stretches_the_step() -> None:
    operation = _rtx_3090(130.0, 7)
    uncapped_at_lowest_s = smooth_maximum(np.array([54.3e-3]), np.array([66.63e-3]) / 0.2, 5.1)
    assert operation.clock_fraction == pytest.approx(0.2)
    assert operation.time_s[0] > uncapped_at_lowest_s[0]
    assert operation.energy_j / operation.time_s == pytest.approx(_curve(130.0).allowed_w, rel=1e-9)


def test_a_cap_taxes_depth_more_than_the_baseline() -> None:
    slowdown = _rtx_3090(300.0, [0, 7]).time_s / _rtx_3090(420.0, [0, 7]).time_s
    assert slowdown[1] > slowdown[0] > 1.0


_TIMES = st.floats(1e-6, 0.1)


@st.composite
def _steps(draw: st.DrawFn) -> tuple[StepTime, PowerCurve, Floats, Floats]:
    random = np.random.default_rng(draw(st.integers(0, 2**32)))

    def column(least: float, most: float) -> Floats:
        return np.exp(random.uniform(np.log(least), np.log(most), 20))

    exponent = draw(st.sampled_from([None, 1.0, 1.7, 2.2, 5.1, 30.0]))
    step = StepTime(*(column(1e-6, 0.1) for _ in range(5)), exponent)
    cap_w = draw(st.floats(100.0, 1000.0))
    power = PowerCurve(
        active_w=draw(st.floats(0.0, 0.9)) * cap_w,
        clock_w=draw(st.sampled_from([0.0, 1.0])) * draw(st.floats(0.0, 300.0)),
        cap_w=cap_w,
        knee_fraction=draw(st.floats(0.1, 1.5)),
        slope=draw(st.floats(0.0, 3.0)),
        min_fraction=draw(st.floats(0.05, 1.0)),
        max_fraction=draw(st.floats(1.0, 1.3)),
    )
    return step, power, column(1e-3, 50.0), column(1e-3, 50.0)


@given(_steps())
def test_the_cap_is_never_exceeded(drawn: tuple[StepTime, PowerCurve, Floats, Floats]) -> None:
    step, power, compute_j, memory_j = drawn
    operation = run_under_cap(step, power, compute_j=compute_j, memory_j=memory_j)
    assert (operation.energy_j <= power.allowed_w * operation.time_s * (1 + 1e-9)).all()
    assert (operation.time_s >= step.at(power.max_fraction) * (1 - 1e-12)).all()
    assert (
        (operation.clock_fraction >= power.min_fraction) & (operation.clock_fraction <= power.max_fraction)
    ).all()


@given(_steps())
def test_the_clock_is_the_largest_that_the_cap_allows(
    drawn: tuple[StepTime, PowerCurve, Floats, Floats],
) -> None:
    step, power, compute_j, memory_j = drawn
    operation = run_under_cap(step, power, compute_j=compute_j, memory_j=memory_j)
    low, high = np.full(20, power.min_fraction), np.full(20, power.max_fraction)
    for _ in range(60):
        middle = 0.5 * (low + high)
        time_s = step.at(middle)
        is_over = power.energy(time_s, middle, compute_j, memory_j) > power.allowed_w * time_s
        low, high = np.where(is_over, low, middle), np.where(is_over, middle, high)
    time_s = step.at(power.max_fraction)
    highest = np.full(20, power.max_fraction)
    is_free = power.energy(time_s, highest, compute_j, memory_j) <= power.allowed_w * time_s
    expected = np.where(is_free, power.max_fraction, low)
    assert operation.clock_fraction == pytest.approx(expected, rel=1e-6)


@given(_steps())
def test_one_step_is_solved_as_in_a_block(drawn: tuple[StepTime, PowerCurve, Floats, Floats]) -> None:
    step, power, compute_j, memory_j = drawn
    block = run_under_cap(step, power, compute_j=compute_j, memory_j=memory_j)
    alone = run_under_cap(
        step.take(np.array([13])), power, compute_j=compute_j[13:14].copy(), memory_j=memory_j[13:14].copy()
    )
    assert alone.time_s[0] == block.time_s[13]
    assert alone.energy_j[0] == block.energy_j[13]
    assert alone.clock_fraction[0] == block.clock_fraction[13]


@given(_TIMES, _TIMES, st.floats(1.0, 50.0))
def test_smooth_maximum_lies_between_maximum_and_sum(first: float, second: float, exponent: float) -> None:
    (value,) = smooth_maximum(np.array([first]), np.array([second]), exponent)
    assert max(first, second) * (1 - 1e-12) <= value <= (first + second) * (1 + 1e-12)
