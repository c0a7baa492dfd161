"""Table profiles: step times measured on a grid, interpolated inside it and refused outside."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specsim.arrays import PICOSECONDS_PER_SECOND, Bools, Floats, to_picoseconds
from specsim.config.base import Spec, refuse
from specsim.errors import ConfigError, DomainError
from specsim.hardware.accelerator import Accelerator, Placement, accelerators
from specsim.hardware.formats import Dtype
from specsim.hardware.model import ModelSpec
from specsim.hardware.roofline import without
from specsim.hardware.step import CostModel, StepCosts, StepShape
from specsim.hardware.work import WorkCounter, as_floats
from specsim.units import Seconds

_AXES = ("num_positions", "context_tokens", "num_sequences")


class Grid(Spec):
    """Measured time of one model's steps over positions and context, and over sequences if given."""

    model: str = Field(min_length=1)
    """Name of the model that was measured."""
    dtype: Dtype = "bfloat16"
    """Format of its weights."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """Devices that shared each layer."""
    num_positions: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1)
    """Positions of the whole batch, increasing."""
    context_tokens: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    """Cached tokens of a sequence, mean over the batch, increasing."""
    num_sequences: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(default=None, min_length=1)
    """Sequences in the batch, increasing; left out: the time does not depend on them."""
    step_s: tuple[Annotated[Seconds, Field(gt=0)], ...] = Field(min_length=1)
    """Times, s: positions vary slowest, then context, then sequences."""

    @model_validator(mode="after")
    def _check_grid(self) -> Self:
        faults = [
            (name, "must increase")
            for name, axis in self.axes
            if any(after <= before for before, after in pairwise(axis))
        ]
        expected = int(np.prod([len(axis) for _, axis in self.axes]))
        if len(self.step_s) != expected:
            message = f"has {len(self.step_s)} times; the axes have {expected} points"
            faults.append(("step_s", message))
        refuse(faults)
        return self

    @property
    def axes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The axes by name, in the order of ``step_s``."""
        given = (self.num_positions, self.context_tokens, self.num_sequences)
        return [(name, axis) for name, axis in zip(_AXES, given, strict=True) if axis is not None]


@accelerators.register
class TableProfile(Accelerator):
    """A device as measured step times: no law between the points but straight lines in logarithms.

    Examples
    --------
    >>> profile = TableProfile.model_validate(
    ...     {"kind": "table", "name": "x", "grids": [{"model": "m", "num_positions": [1, 4],
    ...      "context_tokens": [0, 1000], "step_s": [0.01, 0.02, 0.02, 0.04]}]}
    ... )
    >>> profile.grids[0].step_s
    (0.01, 0.02, 0.02, 0.04)
    """

    computes_energy: ClassVar[bool] = False

    kind: Literal["table"] = "table"
    """Kind of profile."""
    grids: tuple[Grid, ...] = Field(min_length=1)
    """One grid for each model, format and number of devices that was measured."""

    def build(self, model: ModelSpec | None, placement: Placement) -> CostModel:
        """Return the measured grid of one placement."""
        if model is None:
            raise ConfigError(f"profile '{self.name}' needs the model that was measured")
        wanted = (model.name, placement.weight_dtype, placement.tensor_parallel_size)
        measured = {(grid.model, grid.dtype, grid.tensor_parallel_size): grid for grid in self.grids}
        if wanted not in measured:
            known = "; ".join(f"{one} in {dtype} on {devices}" for one, dtype, devices in measured)
            raise ConfigError(
                f"profile '{self.name}' has no measurement of {model.name} in {placement.weight_dtype}"
                f" on {placement.tensor_parallel_size} device(s) (measured: {known})"
            )
        costs = TableCosts(self, measured[wanted], WorkCounter(model, placement))
        costs.refuse_below_limit()
        return costs


class TableCosts:
    """Times interpolated in a measured grid; no energy.

    Log-log interpolation of 12 sparse points predicts whole steps within 1.2–5 % (public measurements
    of Llama-3.1-8B and 70B, LLMServingSim). Each axis is taken as log(1 + value).
    """

    def __init__(self, profile: TableProfile, grid: Grid, counter: WorkCounter) -> None:
        self._name = profile.name
        self._counter = counter
        self._axes = [(name, np.array(axis, dtype=np.float64)) for name, axis in grid.axes]
        self._log_times = np.log(np.array(grid.step_s)).reshape([len(axis) for _, axis in grid.axes])
        memory = profile.memory
        self._bytes_per_s = (
            None if memory is None else memory.bandwidth_bytes_per_s * grid.tensor_parallel_size
        )

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of R steps.

        Raises
        ------
        DomainError
            Where a step lies outside the grid.
        """
        work = self._counter.count(shape)
        sequences = np.maximum(as_floats(shape.num_sequences), 1.0)
        values = {
            "num_positions": work.positions,
            "context_tokens": as_floats(shape.context_tokens) / sequences,
            "num_sequences": sequences,
        }
        is_empty = work.positions <= 0.0
        time_s = np.exp(self._interpolated(values, is_empty))
        num_bytes = work.weight_bytes + work.cache_bytes
        zeros = np.zeros_like(time_s)
        costs = StepCosts(
            duration_ps=to_picoseconds(time_s),
            energy_nj=np.zeros(time_s.shape, dtype=np.int64),
            memory_s=zeros,
            compute_s=zeros,
            attention_s=zeros,
            communication_s=zeros,
            overhead_s=zeros,
            flops=work.flops,
            bytes=num_bytes,
            clock_fraction=np.ones_like(time_s),
            limit_s=zeros if self._bytes_per_s is None else num_bytes / self._bytes_per_s,
            limit_j=zeros,
            device_limit_j=zeros,
            guessed_j=zeros,
        )
        return without(costs, is_empty) if is_empty.any() else costs

    def refuse_below_limit(self) -> None:
        """Refuse a measured time that one sequence's bytes alone exceed at the datasheet bandwidth.

        Raises
        ------
        ConfigError
            Naming the point.
        """
        points = np.stack(
            [grid.ravel() for grid in np.meshgrid(*(axis for _, axis in self._axes), indexing="ij")]
        )
        positions, context = points[:2].astype(np.int64)
        sequences = points[2].astype(np.int64) if len(points) > 2 else np.ones_like(positions)
        nothing = np.zeros_like(positions)
        least = self.steps(StepShape(sequences, positions, nothing, nothing, sequences * context, nothing))
        below = np.flatnonzero(least.duration_ps < least.limit_s * PICOSECONDS_PER_SECOND)
        if below.size:
            first = below[0]
            measured_s, limit_s = least.duration_ps[first] / PICOSECONDS_PER_SECOND, least.limit_s[first]
            raise ConfigError(
                f"profile '{self._name}': {measured_s:.3g} s at {positions[first]} positions and"
                f" {context[first]} tokens of context is below the physical limit of {limit_s:.3g} s"
            )

    def _interpolated(self, values: Mapping[str, Floats], is_empty: Bools) -> Floats:
        """Logarithm of the times, interpolated along one axis after the other."""
        corners = [(np.zeros(is_empty.shape, dtype=np.int64), np.ones(is_empty.shape))]
        for name, axis in self._axes:
            # An empty step costs nothing wherever it lies.
            inside = np.where(is_empty, axis[0], values[name])
            self._refuse_outside(name, axis, inside)
            low = np.clip(np.searchsorted(axis, inside, side="right") - 1, 0, max(len(axis) - 2, 0))
            high = np.minimum(low + 1, len(axis) - 1)
            span = np.log1p(axis[high]) - np.log1p(axis[low])
            share = np.where(
                span > 0.0, (np.log1p(inside) - np.log1p(axis[low])) / np.where(span > 0.0, span, 1.0), 0.0
            )
            corners = [
                (index * len(axis) + end, weight * part)
                for index, weight in corners
                for end, part in ((low, 1.0 - share), (high, share))
            ]
        flat = self._log_times.ravel()
        return sum((weight * flat[index] for index, weight in corners), np.zeros(is_empty.shape))

    def _refuse_outside(self, name: str, axis: Floats, values: Floats) -> None:
        outside = values[(values < axis[0]) | (values > axis[-1])]
        if outside.size:
            raise DomainError(
                f"profile '{self._name}': {name} of {outside[0]:g} is outside the measured grid"
                f" {axis[0]:g}–{axis[-1]:g}; nothing is extrapolated"
            )
