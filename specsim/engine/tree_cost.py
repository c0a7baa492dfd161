"""What a round of a draft tree costs on the scenario's devices: what an optimal tree is weighed against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specsim.arrays import PICOSECONDS_PER_SECOND, Ints
from specsim.engine.prepare import Prepared
from specsim.engine.shapes import draft_passes, verification_shape
from specsim.hardware.step import CostModel, StepShape
from specsim.speculation import Rounds


def tree_round_s(prepared: Prepared) -> Callable[[tuple[int, ...], int], float]:
    """Return the time of a round, s, as a function of the positions of each draft pass and those verified.

    Taken at the largest batch of the scenario, and at the mean context halfway through its outputs, of which
    the draft has computed all but the newest token.
    """
    scenario, population = prepared.scenario, prepared.population
    num_sequences = min(scenario.max_num_sequences, len(population.requests))
    context: Ints = np.full((1, num_sequences), int(population.mean_context_tokens))

    def round_s(pass_positions: tuple[int, ...], num_positions: int) -> float:
        ones = np.ones_like(context)
        rounds = Rounds(
            num_drafted=ones * (num_positions - 1),
            num_draft_steps=ones * len(pass_positions),
            num_positions=ones * num_positions,
            num_accepted=ones * 0,
            num_emitted=ones,
            is_last=np.zeros(context.shape, dtype=bool),
            pass_positions=np.array([pass_positions], dtype=np.int64).reshape(1, len(pass_positions)),
        )
        time_ps = _total_ps(prepared.target.cost, verification_shape(context, rounds))
        if prepared.draft is not None and pass_positions:
            passes = draft_passes(context, rounds, unseen=np.zeros_like(context))
            time_ps += _total_ps(prepared.draft.cost, passes.shape)
        return time_ps / PICOSECONDS_PER_SECOND

    return round_s


def _total_ps(cost: CostModel, shape: StepShape) -> int:
    return int(cost.steps(shape).duration_ps.sum())
