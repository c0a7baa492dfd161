"""Shapes of steps for tests."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Ints
from specsim.hardware import StepCosts, StepShape


def decode(
    *, sequences: object = 1, positions: object = 1, context: object = 1000, prefill: object = 0
) -> StepShape:
    """Return steps of sequences that each process some positions at some context, broadcast together.

    ``prefill`` of the positions of a step belong to prompts, with no logits of their own.
    """
    given = (sequences, positions, context, prefill)
    rows = np.broadcast_arrays(*(np.atleast_1d(np.asarray(values)) for values in given))
    num, each, tokens, prompt = (row.astype(np.int64) for row in rows)
    return StepShape(
        num_sequences=num,
        num_positions=num * each,
        num_prefill_positions=prompt,
        num_logit_positions=np.maximum(num * each - prompt, 0),
        context_tokens=num * tokens,
        position_context=num * each * (tokens + each),
    )


def row(shape: StepShape, index: int) -> StepShape:
    """Return one step of a block."""

    def pick(values: Ints) -> Ints:
        return values[index : index + 1].copy()

    return StepShape(
        pick(shape.num_sequences),
        pick(shape.num_positions),
        pick(shape.num_prefill_positions),
        pick(shape.num_logit_positions),
        pick(shape.context_tokens),
        pick(shape.position_context),
    )


def seconds(costs: StepCosts) -> float:
    """Return the duration of the only step, s."""
    (duration,) = costs.duration_ps.tolist()
    return duration * 1e-12
