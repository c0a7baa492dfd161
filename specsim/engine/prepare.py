"""All that a run needs before its first event: requests, models on their devices, and that they fit."""

from __future__ import annotations

from dataclasses import dataclass

from specsim.arrays import MAX_CLOCK_PS, PICOSECONDS_PER_SECOND
from specsim.config.base import refuse
from specsim.engine.deploy import Deployed, check_memory, deploy_draft, deploy_target
from specsim.engine.overflow import refused_overflow
from specsim.engine.population import Population, populate
from specsim.scenario import Scenario
from specsim.streams import RandomStreams


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario with its requests and its models."""

    scenario: Scenario
    streams: RandomStreams
    population: Population
    target: Deployed
    draft: Deployed | None


MAX_OUTPUT_TOKENS = 10**8
"""Most output tokens of a run: a round of one request is a row, and all rows are kept in memory."""
MAX_PROMPT_TOKENS = 10**9
"""Longest prompt, tokens, be it drawn or recorded."""
MAX_PREFILL_PASSES = 10**7
"""Most prefill passes of a run, each a row as well."""


@refused_overflow()
def prepare(scenario: Scenario) -> Prepared:
    """Draw the requests of a scenario, deploy its models, and check that all fits.

    Raises
    ------
    ConfigError
        Where a trace cannot be read, a profile lacks a figure, or the run would be larger than
        `MAX_OUTPUT_TOKENS`, `MAX_PREFILL_PASSES` or the simulated clock.
    DomainError
        Where a figure is too large or too small to compute with.
    CapacityError
        Where weights and caches exceed a device's memory.
    """
    streams = RandomStreams(scenario.seed)
    population = populate(scenario, streams)
    refuse_endless(scenario, population)
    target, draft = deploy_target(scenario), deploy_draft(scenario)
    check_memory(
        scenario,
        target,
        draft,
        num_sequences=min(scenario.max_num_sequences, len(population.requests)),
        context_tokens=int((population.num_prompt_tokens + population.num_output_tokens).max()),
    )
    return Prepared(scenario, streams, population, target, draft)


def refuse_endless(scenario: Scenario, population: Population) -> None:
    """Raise the faults of a workload whose run would not end in reasonable time or memory."""
    batched = scenario.scheduler.max_num_batched_tokens
    arrival_s = population.requests.arrival_s
    last_s = 0.0 if arrival_s is None else float(arrival_s[-1])
    end_s = MAX_CLOCK_PS / PICOSECONDS_PER_SECOND
    found = (
        (
            "workload.prompt_tokens",
            int(population.num_prompt_tokens.max()),
            MAX_PROMPT_TOKENS,
            "tokens in the longest prompt; say what prompts to serve, or mend the trace",
        ),
        (
            "workload.output_tokens",
            int(population.num_output_tokens.sum()),
            MAX_OUTPUT_TOKENS,
            "output tokens in all; ask for fewer prompts or shorter outputs",
        ),
        (
            "scheduler.max_num_batched_tokens",
            int(population.num_prompt_tokens.sum()) // batched,
            MAX_PREFILL_PASSES,
            "prefill passes; ask for fewer or shorter prompts, or let more tokens into a pass",
        ),
        (
            "workload.request_rate",
            last_s,
            end_s,
            "s until the last request arrives; raise the rate or ask for fewer prompts",
        ),
    )
    refuse(
        [
            (path, f"{given:.3g} {noun} (at most {limit:.3g})")
            for path, given, limit, noun in found
            if given > limit
        ]
    )
