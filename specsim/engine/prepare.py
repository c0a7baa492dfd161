"""All that a run needs before its first event: requests, models on their devices, and that they fit."""

from __future__ import annotations

from dataclasses import dataclass

from specsim.engine.deploy import Deployed, check_memory, deploy_draft, deploy_target
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


def prepare(scenario: Scenario) -> Prepared:
    """Draw the requests of a scenario, deploy its models, and check that all fits.

    Raises
    ------
    ConfigError
        Where a trace cannot be read or a profile lacks a figure.
    CapacityError
        Where weights and caches exceed a device's memory.
    """
    streams = RandomStreams(scenario.seed)
    population = populate(scenario, streams)
    target, draft = deploy_target(scenario), deploy_draft(scenario)
    check_memory(
        scenario,
        target,
        draft,
        num_sequences=min(scenario.max_num_sequences, len(population.requests)),
        context_tokens=int((population.num_prompt_tokens + population.num_output_tokens).max()),
    )
    return Prepared(scenario, streams, population, target, draft)
