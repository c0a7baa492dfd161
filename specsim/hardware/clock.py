"""The clock that a power cap allows, and the step time at that clock.

Under a cap a board lowers its clock until it draws just less than the cap. Only clock-bound time
stretches; memory time does not. The law follows public measurements of an RTX 3090 under caps and locked
clocks (thc1006, CC0 1.0, 2025), and predicts rounds at a depth or a cap left out within 4 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints

SETTLED_SHARE = 0.975
"""Of what a cap leaves beside active power, the share that the work of a board draws in the mean.

The work comes in bursts, and the cap holds them. Measured: 0.96–0.98 at 420 W and at 250 W of an RTX 3090
(thc1006, CC0 1.0, 2025), 0.98 at 700 W of an H100 (ML.ENERGY v3).
"""

_NUM_NEWTON = 5
"""Fixed, so that the clock of one step does not depend on which others share its array."""

_NUM_BISECTIONS = 50
_TOLERANCE = 1e-9
"""Relative miss of the allowed power from which a step is solved by bisection."""

_LEAST_STEEPNESS = 0.05
"""Least d log P / d log f of a Newton step, so that flat power proposes a finite clock."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """The parts of R steps' time at the nominal clock; arrays [R], or one number for all."""

    fixed_s: Floats
    """Launch, host and communication: independent of clock and bandwidth, s."""
    memory_s: Floats
    """Time that the weights need, s."""
    compute_s: Floats
    """Clock-bound time of the linear layers, unpacking of low-bit weights included, s."""
    attention_memory_s: Floats
    """Time that the KV cache needs, s."""
    attention_compute_s: Floats
    """Clock-bound time of attention, s."""
    smooth_exponent: float | None
    """p of the smooth maximum of memory and compute time; None is the hard maximum."""

    def at(self, clock_fraction: Floats | float) -> Floats:
        """Duration at a clock, s: fixed + [memory^p + (compute/f)^p]^(1/p) + max(attention terms)."""
        linear = smooth_maximum(self.memory_s, self.compute_s / clock_fraction, self.smooth_exponent)
        attention = np.maximum(self.attention_memory_s, self.attention_compute_s / clock_fraction)
        return self.fixed_s + linear + attention

    def take(self, rows: Ints) -> StepTime:
        """Return the parts of some rows."""
        return StepTime(
            self.fixed_s[rows],
            self.memory_s[rows],
            self.compute_s[rows],
            self.attention_memory_s[rows],
            self.attention_compute_s[rows],
            self.smooth_exponent,
        )

    def at_with_slope(self, clock_fraction: Floats) -> tuple[Floats, Floats]:
        """Duration at a clock, s, and its derivative by the clock fraction, s, which is never positive."""
        compute_s = self.compute_s / clock_fraction
        attention_s = self.attention_compute_s / clock_fraction
        high = np.maximum(self.memory_s, compute_s)
        is_compute = compute_s >= self.memory_s
        if self.smooth_exponent is None:
            linear, share = high, is_compute.astype(np.float64)
        else:
            ratio = np.power(np.minimum(self.memory_s, compute_s) / high, self.smooth_exponent)
            linear = high * np.power(1.0 + ratio, 1.0 / self.smooth_exponent)
            # share = (compute/linear)^p, and d(linear)/d(compute) = (compute/linear)^(p-1).
            share = (ratio + is_compute * (1.0 - ratio)) / (1.0 + ratio)
        is_attention = attention_s > self.attention_memory_s
        stretching = share * linear + attention_s * is_attention
        time_s = self.fixed_s + linear + np.maximum(self.attention_memory_s, attention_s)
        return time_s, -stretching / clock_fraction


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Power of one device in a step, as a function of its clock f (fraction of nominal).

    P = active_w + V²(f)·(clock_w·f + compute_j/T) + memory_j/T with V = 1 + slope·max(0, f − knee).
    """

    active_w: float
    clock_w: float
    cap_w: float
    knee_fraction: float
    slope: float
    min_fraction: float
    max_fraction: float

    @property
    def allowed_w(self) -> float:
        """Power that a board settles at where its cap binds, W: active_w + 0.975·(cap_w − active_w)."""
        return self.active_w + SETTLED_SHARE * (self.cap_w - self.active_w)

    def squared_voltage(self, clock_fraction: Floats | float) -> Floats:
        """V² relative to its value below the knee."""
        return np.square(1.0 + self.slope * np.maximum(0.0, np.asarray(clock_fraction) - self.knee_fraction))

    def energy(self, time_s: Floats, clock_fraction: Floats, compute_j: Floats, memory_j: Floats) -> Floats:
        """Energy of steps that last ``time_s`` at a clock, J."""
        voltage = self.squared_voltage(clock_fraction)
        static = (self.active_w + voltage * self.clock_w * clock_fraction) * time_s
        return static + voltage * compute_j + memory_j


@dataclass(frozen=True, slots=True)
class Operation:
    """How R steps run under a cap; arrays [R]."""

    clock_fraction: Floats
    time_s: Floats
    energy_j: Floats


def run_under_cap(step: StepTime, power: PowerCurve, *, compute_j: Floats, memory_j: Floats) -> Operation:
    """Clock, duration and energy of steps on one device under its power cap.

    The clock is the largest in [min, max] with P ≤ ``allowed_w``. Where even the lowest clock draws more,
    the board gates the clock: it works for the time of the lowest clock and waits at ``active_w`` in
    between, so the duration stretches until P = ``allowed_w``.

    Parameters
    ----------
    step
        Time at the nominal clock, arrays [R].
    power
        The device's power curve; ``active_w`` must be below its cap.
    compute_j
        Energy of the arithmetic at V = 1, J, [R].
    memory_j
        Energy of the bytes moved, J, [R].
    """
    allowed_w = power.allowed_w
    clock = np.full(compute_j.shape, power.max_fraction)
    time_s = step.at(clock)
    energy_j = power.energy(time_s, clock, compute_j, memory_j)
    rows = np.flatnonzero(energy_j > allowed_w * time_s)
    if not rows.size:
        return Operation(clock, time_s, energy_j)
    part = step.take(rows)
    part_compute_j, part_memory_j = compute_j[rows], memory_j[rows]
    solved = _largest_clock(part, power, part_compute_j, part_memory_j)
    # At the lowest clock and still above the cap: the work's energy is spread over a longer time.
    work_j = solved.energy_j - power.active_w * solved.time_s
    stretched_s = np.maximum(solved.time_s, work_j / (allowed_w - power.active_w))
    clock[rows] = solved.clock_fraction
    time_s[rows] = stretched_s
    energy_j[rows] = power.active_w * stretched_s + work_j
    return Operation(clock, time_s, energy_j)


def smooth_maximum(first: Floats, second: Floats, exponent: float | None) -> Floats:
    """Return (first^p + second^p)^(1/p), or the larger where ``exponent`` is None; not both may be 0."""
    high = np.maximum(first, second)
    if exponent is None:
        return high
    ratio = np.minimum(first, second) / high
    return high * np.power(1.0 + np.power(ratio, exponent), 1.0 / exponent)


def _largest_clock(step: StepTime, power: PowerCurve, compute_j: Floats, memory_j: Floats) -> Operation:
    """Run where P = ``allowed_w``, or at the lowest clock; P grows with f, and at the highest is above it."""
    clock = _by_newton(step, power, compute_j, memory_j)
    time_s = step.at(clock)
    energy_j = power.energy(time_s, clock, compute_j, memory_j)
    miss = energy_j / (power.allowed_w * time_s) - 1.0
    is_missed = (miss < -_TOLERANCE) | ((miss > _TOLERANCE) & (clock > power.min_fraction))
    rows = np.flatnonzero(is_missed)
    if rows.size:
        part = step.take(rows)
        clock[rows] = _by_bisection(part, power, compute_j[rows], memory_j[rows])
        time_s[rows] = part.at(clock[rows])
        energy_j[rows] = power.energy(time_s[rows], clock[rows], compute_j[rows], memory_j[rows])
    return Operation(clock, time_s, energy_j)


def _by_bisection(step: StepTime, power: PowerCurve, compute_j: Floats, memory_j: Floats) -> Floats:
    low = np.full(compute_j.shape, power.min_fraction)
    high = np.full(compute_j.shape, power.max_fraction)
    for _ in range(_NUM_BISECTIONS):
        clock = 0.5 * (low + high)
        time_s = step.at(clock)
        is_over = power.energy(time_s, clock, compute_j, memory_j) > power.allowed_w * time_s
        np.copyto(high, clock, where=is_over)
        np.copyto(low, clock, where=~is_over)
    return low


def _by_newton(step: StepTime, power: PowerCurve, compute_j: Floats, memory_j: Floats) -> Floats:
    """Newton steps on log(P − active_w) over log f, which is almost straight; a few steps may be missed."""
    allowed_w = power.allowed_w - power.active_w
    start = min(max(power.knee_fraction, power.min_fraction), power.max_fraction)
    clock = np.full(compute_j.shape, start)
    for _ in range(_NUM_NEWTON):
        time_s, slope_s = step.at_with_slope(clock)
        voltage = 1.0 + power.slope * np.maximum(0.0, clock - power.knee_fraction)
        squared = voltage * voltage
        squared_slope = (2.0 * power.slope) * voltage * (clock > power.knee_fraction)
        work_w = (squared * compute_j + memory_j) / time_s
        clock_w = squared * power.clock_w
        power_w = clock_w * clock + work_w
        slope_w = squared_slope * (power.clock_w * clock + compute_j / time_s) + clock_w
        slope_w -= work_w * slope_s / time_s
        # Where memory alone sets the time, the power does not depend on the clock.
        steepness = np.maximum(clock * slope_w / power_w, _LEAST_STEEPNESS)
        clock = clock * np.power(allowed_w / power_w, 1.0 / steepness)
        clock = np.minimum(np.maximum(clock, power.min_fraction), power.max_fraction)
    return clock
