"""Small real objects for tests of the serving loop: scripted rounds and costs that can be summed by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import simpy

from specsim.arrays import Ints
from specsim.engine.accelerator import Accelerator
from specsim.engine.arrivals import ArrivalQueue
from specsim.engine.draft_cache import FirstPass
from specsim.engine.pair import Model, Pair
from specsim.engine.recorder import Recorder
from specsim.engine.serve import Plan, Server
from specsim.hardware.step import StepCosts, StepShape
from specsim.speculation.rounds import Rounds, Sequences


@dataclass(slots=True)
class LinearCost:
    """A pass takes ``step_ps`` and ``position_ps`` more for each position and cached token."""

    step_ps: int
    position_ps: int = 0
    context_ps: int = 0
    prefill_is_free: bool = False

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of the passes; a joule a second."""
        duration = (
            self.step_ps + self.position_ps * shape.num_positions + self.context_ps * shape.context_tokens
        )
        if self.prefill_is_free:
            duration = np.where(shape.num_prefill_positions == shape.num_positions, 0, duration)
        zeros = np.zeros(duration.shape)
        seconds = duration / 1e12
        return StepCosts(
            duration_ps=duration,
            energy_nj=duration // 1000,
            memory_s=seconds,
            compute_s=zeros,
            attention_s=zeros,
            communication_s=zeros,
            overhead_s=zeros,
            flops=shape.num_positions.astype(float),
            bytes=shape.num_sequences.astype(float),
            clock_fraction=zeros + 1,
            limit_s=zeros,
            limit_j=zeros,
            device_limit_j=zeros,
            guessed_j=zeros,
        )


class ScriptedRounds:
    """Every round drafts as many, and accepts those before the next multiple of ``every``."""

    is_approximate = False

    def __init__(self, *, num_drafted: int, every: int) -> None:
        self.num_drafted = num_drafted
        self.every = every
        self.committed: list[int] = []

    def peek(self, sequences: Sequences, *, horizon: int) -> Rounds:
        """Return rounds up to the first in which a sequence ends."""
        position, remaining = sequences.position.copy(), sequences.remaining.copy()
        rows: list[tuple[Ints, Ints]] = []
        while len(rows) < horizon and (not rows or (remaining > 0).all()):
            accepted = np.minimum(self.every - 1 - position % self.every, self.num_drafted)
            emitted = np.minimum(accepted + 1, remaining)
            rows.append((np.minimum(accepted, emitted), emitted))
            position, remaining = position + emitted, remaining - emitted
        accepted = np.array([row[0] for row in rows])
        emitted = np.array([row[1] for row in rows])
        drafted = np.full_like(accepted, self.num_drafted)
        is_last = np.cumsum(emitted, axis=0) == sequences.remaining
        return Rounds(drafted, drafted, drafted + 1, accepted, emitted, is_last)

    def commit(self, num_rounds: int) -> None:
        """Note how many rounds happened."""
        self.committed.append(num_rounds)


def run(
    *,
    prompts: list[int],
    outputs: list[int],
    num_drafted: int = 0,
    every: int = 3,
    horizon: int = 64,
    max_num_seqs: int = 2,
    arrival_ps: list[int] | None = None,
    target: LinearCost | None = None,
    draft: LinearCost | None = None,
    own_device: bool = False,
    first_pass: FirstPass = "newest",
) -> tuple[Recorder, simpy.Environment]:
    """Serve requests with scripted rounds; return what was recorded and the clock."""
    env = simpy.Environment()
    device = Accelerator(env)
    draft_device = Accelerator(env) if own_device else device
    recorder = Recorder(len(prompts))
    server = Server(
        env,
        plan=Plan(
            num_prompt_tokens=np.array(prompts),
            num_output_tokens=np.array(outputs),
            is_cut_by_recorder=np.zeros(len(prompts), dtype=bool),
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=64,
            horizon=horizon,
        ),
        arrivals=ArrivalQueue(
            len(prompts),
            arrival_ps=None if arrival_ps is None else np.array(arrival_ps),
            max_concurrency=max_num_seqs,
        ),
        pair=Pair(
            Model(device, target or LinearCost(100), prefills=True),
            Model(draft_device, draft, prefills=True) if draft else None,
            first_pass=first_pass,
        ),
        rounds=ScriptedRounds(num_drafted=num_drafted, every=every),
        recorder=recorder,
    )
    env.process(server.serve())
    env.run()
    return recorder, env
