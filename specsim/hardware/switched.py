"""Kernels that change with the number of positions: two laws, one for each side of the switch."""

from __future__ import annotations

import numpy as np

from specsim.hardware.step import CostModel, StepCosts, StepShape


class SwitchedCosts:
    """Costs by one law up to a number of positions, by another beyond.

    A library takes matrix-vector kernels for few positions and matrix-matrix kernels for many. At the
    switch a step with more positions may cost less (llama.cpp on an RTX 3090: 57 ms at 9 positions, 71
    at 8; thc1006, CC0).

    Parameters
    ----------
    few, many
        The laws.
    max_positions
        Most positions of a step that ``few`` serves.
    """

    def __init__(self, few: CostModel, many: CostModel, *, max_positions: int) -> None:
        self._few = few
        self._many = many
        self._max_positions = max_positions

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of R steps."""
        few, many = self._few.steps(shape), self._many.steps(shape)
        is_few = shape.num_positions <= self._max_positions
        return StepCosts(
            duration_ps=np.where(is_few, few.duration_ps, many.duration_ps),
            energy_nj=np.where(is_few, few.energy_nj, many.energy_nj),
            memory_s=np.where(is_few, few.memory_s, many.memory_s),
            compute_s=np.where(is_few, few.compute_s, many.compute_s),
            attention_s=np.where(is_few, few.attention_s, many.attention_s),
            communication_s=np.where(is_few, few.communication_s, many.communication_s),
            overhead_s=np.where(is_few, few.overhead_s, many.overhead_s),
            flops=few.flops,
            bytes=few.bytes,
            clock_fraction=np.where(is_few, few.clock_fraction, many.clock_fraction),
            limit_s=few.limit_s,
            limit_j=few.limit_j,
            device_limit_j=few.device_limit_j,
            guessed_j=np.where(is_few, few.guessed_j, many.guessed_j),
        )
