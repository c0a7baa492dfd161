"""Costs held to the physical limit: a step below it is a fault of its cost model, not a result."""

from __future__ import annotations

import numpy as np

from specsim.arrays import NANOJOULES_PER_JOULE, PICOSECONDS_PER_SECOND, Floats, Ints
from specsim.errors import DomainError
from specsim.hardware.step import CostModel, StepCosts, StepShape

_ROUNDING = 1e-9
"""Relative; a whole picosecond or nanojoule comes on top."""


class LimitedCosts:
    """The costs of another model, refused where one is below its physical limit.

    No law of the built-in kinds can get there; a measured table (bytes counted in another way, a cache
    that was left out) or a plug-in can.

    Parameters
    ----------
    costs
        The model.
    name
        Its profile, for messages.
    """

    def __init__(self, costs: CostModel, *, name: str) -> None:
        self._costs = costs
        self._name = name

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of R steps.

        Raises
        ------
        DomainError
            With the figures of the first step whose time or energy is below its limit.
        """
        costs = self._costs.steps(shape)
        self._refuse(shape, costs.duration_ps, costs.limit_s, PICOSECONDS_PER_SECOND, "s")
        self._refuse(shape, costs.energy_nj, costs.limit_j, NANOJOULES_PER_JOULE, "J")
        return costs

    def _refuse(self, shape: StepShape, spent: Ints, limit: Floats, per_unit: int, unit: str) -> None:
        is_below = spent < limit * (per_unit * (1.0 - _ROUNDING)) - 1.0
        if not is_below.any():
            return
        first = int(np.argmax(is_below))
        raise DomainError(
            f"profile '{self._name}': a step of {shape.num_sequences[first]} sequence(s),"
            f" {shape.num_positions[first]} positions and {shape.context_tokens[first]} cached tokens costs"
            f" {spent[first] / per_unit:.4g} {unit}, below its physical limit of {limit[first]:.4g} {unit}"
        )
