"""A batch served without time: rounds of every request, whatever the batch and the horizon."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Ints
from specsim.engine.draft_cache import FirstPass
from specsim.speculation.rounds import RoundSource, Sequences
from tests.oracles.slow_replay import SlowRound


def serve(
    source: RoundSource, num_output_tokens: Ints, *, batch: int, horizon: int, order: Ints | None = None
) -> list[list[SlowRound]]:
    """Return the rounds of each request, served ``batch`` at a time in ``order``."""
    count = num_output_tokens.size
    waiting = [r for r in (np.arange(count) if order is None else order).tolist() if num_output_tokens[r] > 1]
    rounds: list[list[SlowRound]] = [[] for _ in range(count)]
    position = np.ones(count, dtype=np.int64)
    active: list[int] = []
    while waiting or active:
        while waiting and len(active) < batch:
            active.append(waiting.pop(0))
        request = np.array(active)
        remaining = num_output_tokens[request] - position[request]
        block = source.peek(Sequences(request, position[request], remaining), horizon=horizon)
        assert 1 <= block.num_rounds <= horizon
        assert not block.is_last[:-1].any()
        np.testing.assert_array_equal(block.num_positions, block.num_drafted + 1)
        source.commit(block.num_rounds)
        for row in range(block.num_rounds):
            for column, r in enumerate(active):
                rounds[r].append(
                    SlowRound(
                        int(position[r]),
                        int(block.num_drafted[row, column]),
                        int(block.num_draft_steps[row, column]),
                        int(block.num_accepted[row, column]),
                        int(block.num_emitted[row, column]),
                        bool(block.is_last[row, column]),
                    )
                )
                position[r] += block.num_emitted[row, column]
        active = [r for r, is_last in zip(active, block.is_last[-1], strict=True) if not is_last]
    return rounds


def first_pass_positions(rounds: list[SlowRound], first_pass: FirstPass) -> list[int]:
    """Positions of the first draft pass of each round of a request, 0 where there is none.

    The draft's cache is kept token by token: output positions that it holds with the right contents.
    """
    held: set[int] = set()
    positions = []
    for one in rounds:
        newest = one.start - 1
        if one.num_draft_steps == 0:
            positions.append(0)
            continue
        inputs = {newest} if first_pass == "newest" else set(range(one.start)) - held
        positions.append(len(inputs))
        held |= inputs
        if first_pass == "unseen":
            # Pass i + 1 reads draft i, which is right if it is kept: the token after the kept ones is not.
            read = set(range(one.start, one.start + one.num_draft_steps - 1))
            held |= {position for position in read if position < one.start + one.num_emitted - 1}
    return positions
