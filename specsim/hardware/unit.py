"""The cost model of the closed forms: a target pass costs one time, a draft pass a fixed share of it."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from specsim.arrays import to_picoseconds
from specsim.errors import DomainError
from specsim.hardware.accelerator import Accelerator, Placement, accelerators
from specsim.hardware.model import ModelSpec
from specsim.hardware.step import CostModel, StepCosts, StepShape
from specsim.units import Seconds

_SHORTEST_STEP_S = 1e-9
"""A thousand ticks of the simulated clock: shorter steps would lose more than 0.05 % to rounding."""


@accelerators.register
class UnitProfile(Accelerator):
    """Costs in units of one target step (Leviathan et al. 2023: c is the draft cost ratio); prompts are free.

    Examples
    --------
    >>> profile = UnitProfile(kind="unit", name="c=0.1", target_step_s=0.02, draft_cost_ratio=0.1)
    >>> profile.has_power
    False
    """

    computes_energy: ClassVar[bool] = False

    kind: Literal["unit"] = "unit"
    """Kind of profile."""
    target_step_s: Seconds = Field(ge=_SHORTEST_STEP_S)
    """Time of one target pass, whatever its shape, s."""
    draft_cost_ratio: float = Field(ge=0)
    """Time of one draft pass divided by that of a target pass, c."""
    draft_flops_ratio: float | None = Field(default=None, ge=0)
    """Operations of a draft position divided by those of the target's; left out: no operations factor."""

    def build(self, model: ModelSpec | None, placement: Placement) -> CostModel:
        """Return the constant cost of one role.

        Raises
        ------
        DomainError
            A draft pass too short for the simulated clock.
        """
        if placement.role == "target":
            return UnitCosts(self.target_step_s)
        draft_s = self.target_step_s * self.draft_cost_ratio
        if 0 < draft_s < _SHORTEST_STEP_S:
            raise DomainError(
                f"a draft pass of {draft_s:g} s (target_step_s x draft_cost_ratio) is too short for a clock "
                f"of picoseconds; give 0 or at least {_SHORTEST_STEP_S:g} s"
            )
        return UnitCosts(draft_s)


class UnitCosts:
    """One time for every pass that is not only prefill; no energy and no limit."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of R steps."""
        time_s = np.where(shape.num_positions > shape.num_prefill_positions, self._step_s, 0.0)
        zeros = np.zeros_like(time_s)
        return StepCosts(
            duration_ps=to_picoseconds(time_s),
            energy_nj=np.zeros(time_s.shape, dtype=np.int64),
            memory_s=time_s,
            compute_s=zeros,
            attention_s=zeros,
            communication_s=zeros,
            overhead_s=zeros,
            flops=zeros,
            bytes=zeros,
            clock_fraction=np.ones_like(time_s),
            limit_s=zeros,
            limit_j=zeros,
            device_limit_j=zeros,
            guessed_j=zeros,
        )
