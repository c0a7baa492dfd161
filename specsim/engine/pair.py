"""A target and its draft: what a block of prefill passes or of rounds costs both of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from specsim.arrays import PICOSECONDS_PER_SECOND, Floats, Ints, to_nanojoules
from specsim.engine.accelerator import Accelerator
from specsim.engine.draft_cache import FirstPass
from specsim.engine.shapes import draft_passes, draft_positions, verification_shape
from specsim.hardware.step import CostModel, StepCosts, StepShape
from specsim.speculation.rounds import Rounds

StepColumns: TypeAlias = dict[str, Ints | Floats]
"""Columns of the steps table by name, [steps] each, in the engine's whole units."""


@dataclass(slots=True)
class Model:
    """A model on the accelerator that runs it."""

    accelerator: Accelerator
    cost: CostModel
    prefills: bool
    """It keeps a KV cache of its own that a new prompt must fill."""


@dataclass(slots=True)
class Block:
    """Consecutive steps, each a draft part and a target part, as columns of the steps table."""

    draft_ps: Ints
    """Time of the draft passes of each step, [steps]."""
    target_ps: Ints
    """Time of the target pass of each step, [steps]."""
    columns: StepColumns
    """All columns but the step's number, phase and start, [steps] each."""

    @property
    def duration_ps(self) -> Ints:
        """Time of each step, [steps]."""
        return self.draft_ps + self.target_ps

    def first(self, count: int) -> Block:
        """Return the block's first steps."""
        columns = {name: values[:count] for name, values in self.columns.items()}
        return Block(self.draft_ps[:count], self.target_ps[:count], columns)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Devices that wait while others work."""

    power_w: float = 0.0
    """Power of all of them, W."""
    guessed_w: float = 0.0
    """The part of it that is a guess, W."""


@dataclass(slots=True)
class Pair:
    """The target, and the draft if there is one."""

    target: Model
    draft: Model | None = None
    first_pass: FirstPass = "newest"
    """What the draft takes in at the start of a round."""
    while_drafting: Waiting = Waiting()
    """Devices that wait during draft passes."""
    while_verifying: Waiting = Waiting()
    """Devices that wait during target passes."""

    @property
    def shares_accelerator(self) -> bool:
        """Both models run on one accelerator, or there is no draft."""
        return self.draft is None or self.draft.accelerator is self.target.accelerator

    def prefill(self, shape: StepShape) -> Block:
        """Cost of prefill passes: the target's, then the draft's over the same tokens."""
        draft = self.draft.cost.steps(shape) if self.draft and self.draft.prefills else None
        none = np.zeros_like(shape.num_positions)
        counts: StepColumns = {
            "num_draft_passes": none + (draft is not None),
            "num_draft_positions": shape.num_positions if draft else none,
            "num_drafted": none,
            "num_accepted": none,
            "num_emitted": shape.num_logit_positions,
        }
        return self._block(shape, self.target.cost.steps(shape), draft, counts)

    def rounds(self, context: Ints, rounds: Rounds, draft_cached: Ints) -> Block:
        """Cost of rounds.

        Parameters
        ----------
        context, draft_cached
            Tokens that the caches of target and draft hold at the start of each round, [R, B].
        rounds
            What is drafted, verified and emitted.
        """
        shape, unseen = verification_shape(context, rounds), context - draft_cached
        counts: StepColumns = {
            "num_draft_passes": rounds.num_draft_steps.max(axis=1),
            "num_draft_positions": draft_positions(rounds, unseen),
            "num_drafted": rounds.num_drafted.sum(axis=1),
            "num_accepted": rounds.num_accepted.sum(axis=1),
            "num_emitted": rounds.num_emitted.sum(axis=1),
        }
        draft = None
        if self.draft is not None:
            passes = draft_passes(context, rounds, unseen)
            draft = _sum_passes(self.draft.cost.steps(passes.shape), passes.round, rounds.num_rounds)
        return self._block(shape, self.target.cost.steps(shape), draft, counts)

    def _block(
        self, shape: StepShape, target: StepCosts, draft: StepCosts | None, counts: StepColumns
    ) -> Block:
        nothing = np.zeros(target.duration_ps.shape)
        draft_ps = draft.duration_ps if draft else np.zeros_like(target.duration_ps)
        draft_nj = draft.energy_nj if draft else np.zeros_like(target.energy_nj)
        columns: StepColumns = counts | {
            "draft_ps": draft_ps,
            "target_ps": target.duration_ps,
            "num_sequences": shape.num_sequences,
            "num_positions": shape.num_positions,
            "context_tokens": shape.context_tokens,
            "memory_s": target.memory_s,
            "compute_s": target.compute_s,
            "attention_s": target.attention_s,
            "communication_s": target.communication_s,
            "overhead_s": target.overhead_s,
            "draft_energy_nj": draft_nj + _waiting_nj(self.while_drafting.power_w, draft_ps),
            "target_energy_nj": target.energy_nj
            + _waiting_nj(self.while_verifying.power_w, target.duration_ps),
            "draft_flops": draft.flops if draft else nothing,
            "target_flops": target.flops,
            "draft_bytes": draft.bytes if draft else nothing,
            "target_bytes": target.bytes,
            "target_clock_fraction": target.clock_fraction,
            "limit_s": target.limit_s + draft.limit_s if draft else target.limit_s,
            "limit_j": target.limit_j + draft.limit_j if draft else target.limit_j,
            "device_limit_j": (
                target.device_limit_j + draft.device_limit_j if draft else target.device_limit_j
            ),
            "guessed_j": (target.guessed_j + draft.guessed_j if draft else target.guessed_j)
            + _waiting_j(self.while_drafting.guessed_w, draft_ps)
            + _waiting_j(self.while_verifying.guessed_w, target.duration_ps),
        }
        return Block(draft_ps, target.duration_ps, columns)


def _sum_passes(costs: StepCosts, round_: Ints, num_rounds: int) -> StepCosts:
    """Cost of all draft passes of each round, [R]; whole numbers are summed exactly."""
    sums = {}
    for field in fields(costs):
        values = getattr(costs, field.name)
        total = np.zeros(num_rounds, dtype=values.dtype)
        np.add.at(total, round_, values)
        sums[field.name] = total
    return StepCosts(**sums)


def _waiting_nj(power_w: float, duration_ps: Ints) -> Ints:
    return to_nanojoules(_waiting_j(power_w, duration_ps))


def _waiting_j(power_w: float, duration_ps: Ints) -> Floats:
    return power_w * duration_ps / PICOSECONDS_PER_SECOND
