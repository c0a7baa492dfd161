"""The roofline law: shapes of steps in, time and energy out.

t = c0 + L·τ + [memory^p + (compute/f)^p]^(1/p) + max(cache, attention/f) + a·N + c_B·B + communication

with launch overheads c0 and τ a layer, a smooth maximum (p) of the time that the weights need and that
the arithmetic needs on positions rounded up to whole tiles, the larger of the time of the KV cache and
of attention's arithmetic, a for the small kernels between the linear layers at each of N positions, host
work c_B a sequence, and f the clock that the power cap allows. Held-out error of the linear part against
public measurements of layers: 5–7 % on A100, H100 and A40. It covers one pass of one model; kernels that
switch with the number of positions are outside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Bools, Floats, Ints, to_nanojoules, to_picoseconds
from specsim.errors import DomainError
from specsim.hardware.clock import Operation, PowerCurve, StepTime, run_under_cap
from specsim.hardware.formats import ACTIVATION_BYTES
from specsim.hardware.limit import Limit
from specsim.hardware.parallel import AllReduce, all_to_all_time, allreduce_time
from specsim.hardware.step import StepCosts, StepShape
from specsim.hardware.work import Work, WorkCounter, as_floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """The law's constants for one placement; rates are those of one device."""

    num_devices: int
    launch_s: float
    """c0 + L·τ."""
    sequence_s: float
    memory_bytes_per_s: float
    """Achieved, reading weights."""
    flops_per_s: float
    """Achieved, linear layers."""
    smooth_exponent: float | None
    tile_positions: int
    tile_fraction: float
    activation_bytes: float
    """Moved by the small kernels of all layers for one position, on one device."""
    unpack_s: float
    """Clock-bound time of a step whatever its weights."""
    unpack_weight_s: float
    """Clock-bound time of each weight read."""
    attention_floor_s: float
    """Of all layers."""
    attention_bytes_per_s: float
    attention_flops_per_s: float
    cache_copies: float
    """Devices that hold the same part of the KV cache."""
    allreduce: AllReduce | None
    is_expert_parallel: bool
    power: PowerCurve | None
    guessed_watts: frozenset[str]
    """Figures of the power that are guesses."""
    byte_j: float
    flop_j: float
    limit: Limit
    device_limit: Limit | None
    """By the energy of the chips alone; None where the profile does not state it."""
    valid_positions: tuple[int, int] | None
    valid_context: tuple[int, int] | None


class RooflineCosts:
    """Cost of one model's steps by the roofline law.

    Each step's cost depends on its own shape only, to the last bit: a block of steps and the same
    steps one by one give equal integers. A pass without positions costs nothing.

    Parameters
    ----------
    coefficients
        The constants of the law.
    counter
        Counts the work of the model's steps.
    name
        The profile, for messages.
    """

    def __init__(self, coefficients: Coefficients, counter: WorkCounter, *, name: str) -> None:
        self._law = coefficients
        self._counter = counter
        self._name = name

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of R steps.

        Raises
        ------
        DomainError
            Where a shape is outside the range in which the profile was checked.
        """
        law = self._law
        self._check(shape)
        work = self._counter.count(shape)
        cache_bytes = work.cache_bytes * law.cache_copies
        num_bytes = work.weight_bytes + cache_bytes
        communication_s = self._communication(work.positions)
        overhead_s = law.launch_s + law.sequence_s * as_floats(shape.num_sequences)
        activation_s = work.positions * (law.activation_bytes / law.memory_bytes_per_s)
        devices = law.num_devices
        step = StepTime(
            fixed_s=overhead_s + communication_s + activation_s,
            memory_s=work.weight_bytes / (law.memory_bytes_per_s * devices),
            compute_s=self._compute_time(work),
            attention_memory_s=np.maximum(
                law.attention_floor_s, cache_bytes / (law.attention_bytes_per_s * devices)
            ),
            attention_compute_s=work.attention_flops / (law.attention_flops_per_s * devices),
            smooth_exponent=law.smooth_exponent,
        )
        operation = self._operate(step, work.flops, num_bytes)
        clock = operation.clock_fraction
        least_bytes = work.weight_bytes + work.cache_bytes
        costs = StepCosts(
            duration_ps=to_picoseconds(operation.time_s),
            energy_nj=to_nanojoules(operation.energy_j),
            memory_s=step.memory_s + activation_s,
            compute_s=step.compute_s / clock,
            attention_s=np.maximum(step.attention_memory_s, step.attention_compute_s / clock),
            communication_s=communication_s,
            overhead_s=overhead_s,
            flops=work.flops,
            bytes=num_bytes,
            clock_fraction=clock,
            limit_s=law.limit.time(least_bytes, work.flops),
            limit_j=law.limit.energy(least_bytes, work.flops),
            device_limit_j=(
                np.zeros_like(least_bytes)
                if law.device_limit is None
                else law.device_limit.energy(least_bytes, work.flops)
            ),
            guessed_j=self._guessed(operation, work.flops, num_bytes),
        )
        is_empty = work.positions <= 0.0
        return without(costs, is_empty) if is_empty.any() else costs

    def _compute_time(self, work: Work) -> Floats:
        """Clock-bound time of the linear layers at the nominal clock, s."""
        law = self._law
        flops = self._counter.linear_flops(work.positions, work.logit_positions, tile=law.tile_positions)
        if law.tile_fraction < 1.0:
            untiled = self._counter.linear_flops(work.positions, work.logit_positions, tile=1)
            flops = law.tile_fraction * flops + (1.0 - law.tile_fraction) * untiled
        busy_s = flops / (law.flops_per_s * law.num_devices) + law.unpack_s
        if law.unpack_weight_s:
            busy_s = busy_s + work.weight_elements * (law.unpack_weight_s / law.num_devices)
        return busy_s

    def _communication(self, positions: Floats) -> Floats:
        law, model = self._law, self._counter.model
        if law.allreduce is None:
            return np.zeros(positions.shape)
        message_bytes = positions * (model.hidden_size * ACTIVATION_BYTES)
        one_s = allreduce_time(law.allreduce, message_bytes)
        if not law.is_expert_parallel:
            return 2.0 * model.num_layers * one_s
        routed_bytes = message_bytes * model.experts_per_token
        exchanged_s = 2.0 * model.num_mixture_layers * all_to_all_time(law.allreduce, routed_bytes)
        return (2.0 * model.num_layers - model.num_mixture_layers) * one_s + exchanged_s

    def _operate(self, step: StepTime, flops: Floats, num_bytes: Floats) -> Operation:
        """Clock, time and energy of all devices, which share the work equally."""
        law = self._law
        if law.power is None:
            time_s = step.at(1.0)
            return Operation(np.ones_like(time_s), time_s, np.zeros_like(time_s))
        devices = law.num_devices
        operation = run_under_cap(
            step,
            law.power,
            compute_j=flops * (law.flop_j / devices),
            memory_j=num_bytes * (law.byte_j / devices),
        )
        return Operation(operation.clock_fraction, operation.time_s, operation.energy_j * devices)

    def _guessed(self, operation: Operation, flops: Floats, num_bytes: Floats) -> Floats:
        """Energy that guessed watts contribute, all devices, J."""
        law = self._law
        if law.power is None or not law.guessed_watts:
            return np.zeros_like(operation.energy_j)
        clock = operation.clock_fraction
        parts = {
            "active_w": law.power.active_w * operation.time_s * law.num_devices,
            "memory_w": num_bytes * law.byte_j,
            "compute_w": law.power.squared_voltage(clock) * flops * law.flop_j,
        }
        parts["clock_w"] = np.maximum(operation.energy_j - sum(parts.values()), 0.0)
        # What a guessed voltage scales is as much of a guess.
        is_voltage_guessed = any(name.startswith("clock.") for name in law.guessed_watts)
        scaled = ("compute_w", "clock_w") if is_voltage_guessed else ()
        guessed = sum(
            (part for name, part in parts.items() if name in law.guessed_watts or name in scaled),
            np.zeros_like(clock),
        )
        if "cap_w" in law.guessed_watts:
            # Where the cap holds a step, it sets the power.
            guessed = np.where(clock < law.power.max_fraction, operation.energy_j, guessed)
        return guessed

    def _check(self, shape: StepShape) -> None:
        if self._law.valid_positions is not None:
            self._check_range("num_positions", shape.num_positions, self._law.valid_positions)
        if self._law.valid_context is not None:
            context = shape.context_tokens / np.maximum(shape.num_sequences, 1)
            self._check_range("context_tokens", context, self._law.valid_context)

    def _check_range(self, axis: str, values: Floats | Ints, valid: tuple[int, int]) -> None:
        least, most = values.min(initial=valid[0]), values.max(initial=valid[1])
        if least < valid[0] or most > valid[1]:
            outside = least if least < valid[0] else most
            allowed = f"{valid[0]}–{valid[1]}"
            raise DomainError(
                f"profile '{self._name}': {axis} of {outside:g} is outside the checked range {allowed}"
            )


def without(costs: StepCosts, is_empty: Bools) -> StepCosts:
    """Return the costs with those of empty steps set to nothing."""
    clock = np.where(is_empty, 1.0, costs.clock_fraction)
    kept = ~is_empty
    return StepCosts(
        duration_ps=costs.duration_ps * kept,
        energy_nj=costs.energy_nj * kept,
        memory_s=costs.memory_s * kept,
        compute_s=costs.compute_s * kept,
        attention_s=costs.attention_s * kept,
        communication_s=costs.communication_s * kept,
        overhead_s=costs.overhead_s * kept,
        flops=costs.flops * kept,
        bytes=costs.bytes * kept,
        clock_fraction=clock,
        limit_s=costs.limit_s * kept,
        limit_j=costs.limit_j * kept,
        device_limit_j=costs.device_limit_j * kept,
        guessed_j=costs.guessed_j * kept,
    )
