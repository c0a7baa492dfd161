"""One arm of a run: all requests served, with or without speculation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import simpy
from numpy.typing import NDArray

from specsim.arrays import PICOSECONDS_PER_SECOND, Floats, Ints
from specsim.engine.accelerator import Accelerator
from specsim.engine.arrivals import ArrivalQueue
from specsim.engine.deploy import Deployed
from specsim.engine.overflow import refused_overflow
from specsim.engine.pair import Model, Pair, Waiting
from specsim.engine.population import Population
from specsim.engine.prepare import Prepared
from specsim.engine.recorder import Recorder
from specsim.engine.serve import Plan, Server
from specsim.results import Labels
from specsim.results.table import ColumnData
from specsim.speculation import RoundSource, SampledRounds

Progress = Callable[[int], None]
"""Called with the tokens emitted so far."""

Columns: TypeAlias = dict[str, NDArray[np.generic] | Labels]
"""Columns of a table by name."""


@dataclass(frozen=True, slots=True)
class ArmColumns:
    """The tables of one arm as columns."""

    requests: Columns
    steps: Columns
    rounds: Columns


@refused_overflow()
def run_arm(
    name: str,
    prepared: Prepared,
    *,
    rounds: RoundSource,
    speculates: bool,
    horizon: int,
    progress: Progress | None,
) -> ArmColumns:
    """Serve all requests once, with or without the draft, and return what happened."""
    env = simpy.Environment()
    scenario, population = prepared.scenario, prepared.population
    workload, scheduler = scenario.workload, scenario.scheduler
    arrival_s = population.requests.arrival_s
    arrivals = ArrivalQueue(
        len(population.requests),
        arrival_ps=None if arrival_s is None else _clock_ps(arrival_s),
        max_concurrency=workload.max_concurrency or scenario.max_num_sequences,
    )
    recorder = Recorder(len(population.requests), progress=progress)
    server = Server(
        env,
        plan=Plan(
            num_prompt_tokens=population.num_prompt_tokens,
            # A sampled text may end with its first token, before any round.
            num_output_tokens=rounds.num_output_tokens
            if isinstance(rounds, SampledRounds)
            else population.num_output_tokens,
            is_cut_by_recorder=population.is_cut_by_recorder,
            max_num_seqs=scenario.max_num_sequences,
            max_num_batched_tokens=scheduler.max_num_batched_tokens,
            horizon=horizon,
        ),
        arrivals=arrivals,
        pair=pair_of(env, prepared.target, prepared.draft if speculates else None),
        rounds=rounds,
        recorder=recorder,
    )
    env.process(server.serve())
    env.run()
    return ArmColumns(
        requests=_request_columns(name, population, arrivals, recorder),
        steps=_named(name, recorder.take_steps()),
        rounds=_named(name, recorder.take_rounds()),
    )


def _clock_ps(time_s: Floats) -> Ints:
    # `prepare` has seen to it that they are before the end of the clock.
    return np.rint(time_s * PICOSECONDS_PER_SECOND).astype(np.int64)


def pair_of(env: simpy.Environment, target: Deployed, draft: Deployed | None) -> Pair:
    """Return target and draft on their accelerators; without a draft the target alone."""
    device = Accelerator(env)
    model = Model(device, target.cost, prefills=target.prefills)
    if draft is None:
        return Pair(model)
    draft_device = Accelerator(env) if draft.has_own_devices else device
    waiting = target.num_devices if draft.has_own_devices else max(target.num_devices - draft.num_devices, 0)
    return Pair(
        model,
        Model(draft_device, draft.cost, prefills=draft.prefills),
        first_pass=draft.first_pass,
        while_drafting=Waiting(
            waiting * target.profile.waiting_w, waiting * target.profile.guessed_waiting_w
        ),
        while_verifying=Waiting(draft.waiting_w, draft.guessed_waiting_w)
        if draft.has_own_devices
        else Waiting(),
    )


def _request_columns(
    name: str, population: Population, arrivals: ArrivalQueue, recorder: Recorder
) -> Columns:
    ended_by = np.array(population.ending)
    # A sampled text that stops short of its cap has met its end token.
    ended_by[recorder.num_output_tokens < population.num_output_tokens] = "eos"
    return {
        "arm": Labels.constant(name, len(ended_by)),
        "request": np.arange(len(ended_by)),
        "prompt": population.prompt,
        "request_class": Labels.of(np.array(population.request_class)),
        "arrival_s": np.array(arrivals.arrival_ps) / PICOSECONDS_PER_SECOND,
        "first_token_s": recorder.first_token_s,
        "finish_s": recorder.finish_s,
        "num_prompt_tokens": population.num_prompt_tokens,
        "num_output_tokens": recorder.num_output_tokens,
        "ended_by": Labels.of(ended_by),
    }


def _named(name: str, columns: ColumnData) -> Columns:
    num_rows = len(next(values for values in columns.values() if not isinstance(values, Labels)))
    return {"arm": Labels.constant(name, num_rows), **columns}
