"""The requests of a run together with where their p and q come from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from specsim.arrays import Bools, Ints
from specsim.errors import ConfigError
from specsim.scenario import RequestClass, Scenario
from specsim.speculation import BuildContext, LiveSpec, RatesSpec, RecordedPaths
from specsim.speculation.distributions import Distributions, Ending, PathDistributions
from specsim.speculation.mixture import MixedPaths
from specsim.streams import RandomStreams
from specsim.workload import Requests, build_requests

_NO_DRAFT = RatesSpec(acceptance_rate=0.0)
"""Stands where a scenario without speculation names no distributions: nothing is drafted."""


@dataclass(slots=True)
class Population:
    """Requests with their lengths, endings and prompts; arrays [num_requests]."""

    requests: Requests
    distributions: Distributions
    recordings: list[RecordedPaths]
    """The recorded traces among them."""
    num_prompt_tokens: Ints
    num_output_tokens: Ints
    """Tokens at which each request ends at the latest."""
    prompt: Ints
    """Number of the prompt: the unit of resampling. Requests of one recorded prompt share it."""
    request_class: list[str]
    """Name of the class: of the mixture, or the domain of the recorded prompt."""
    ending: list[Ending]
    """How a request ends that reaches ``num_output_tokens``."""

    @property
    def mean_context_tokens(self) -> float:
        """Tokens of a request halfway through its output, prompt included, mean over the requests."""
        return float((self.num_prompt_tokens + self.num_output_tokens / 2).mean())

    @property
    def is_cut_by_recorder(self) -> Bools:
        """The recording, not the text, ends the request."""
        return np.array([ending == "recorder" for ending in self.ending], dtype=bool)


def populate(scenario: Scenario, streams: RandomStreams) -> Population:
    """Return the requests of a scenario and their distributions.

    A recorded path ends its request; ``output_tokens`` may end it earlier, never later.

    Raises
    ------
    ConfigError
        Where a trace cannot be read, or classes of different kinds cannot be mixed.
    """
    classes = scenario.request_classes()
    requests = build_requests(
        streams,
        arrivals=scenario.workload,
        classes=tuple(entry.lengths for entry in classes),
        shares=tuple(entry.share for entry in classes),
    )
    longest = int(requests.num_output_tokens.max())
    context = scenario.build_context()
    built = [_built(scenario, number, entry, context, longest) for number, entry in enumerate(classes)]
    count = len(requests)
    population = Population(
        requests=requests,
        distributions=_mixed(built, requests),
        recordings=[distributions for distributions in built if isinstance(distributions, RecordedPaths)],
        num_prompt_tokens=requests.num_prompt_tokens.copy(),
        num_output_tokens=requests.num_output_tokens.copy(),
        prompt=np.arange(count, dtype=np.int64),
        request_class=[classes[number].name for number in requests.request_class],
        ending=["cap"] * count,
    )
    if population.distributions.offers != "conditional":
        _follow_paths(population, population.distributions)
    return population


def _built(
    scenario: Scenario, number: int, entry: RequestClass, context: BuildContext, longest: int
) -> Distributions:
    """Return the distributions of a class; faults name the key that holds them."""
    spec = entry.distributions or _NO_DRAFT
    try:
        if isinstance(spec, LiveSpec) and longest > spec.max_tokens:
            raise ConfigError.at(
                "distributions.max_tokens",
                f"{spec.max_tokens} is less than the {longest} tokens of the longest request",
            )
        return spec.build(context)
    except ConfigError as error:
        classes = scenario.workload.classes
        own = f"workload.classes.{number}." if classes and classes[number].distributions is not None else ""
        raise ConfigError(
            [
                replace(fault, path=f"{own}{fault.path}") if fault.path.startswith("distributions") else fault
                for fault in error.faults
            ]
        ) from None


def _mixed(built: list[Distributions], requests: Requests) -> Distributions:
    if len(built) == 1:
        return built[0]
    paths = [distributions for distributions in built if distributions.offers != "conditional"]
    if len(paths) < len(built):
        raise ConfigError.at(
            "workload.classes", "only rates and traces can be mixed, explicit p and q cannot"
        )
    return MixedPaths(paths, request_class=requests.request_class, index_in_class=requests.index_in_class)


def _follow_paths(population: Population, distributions: PathDistributions) -> None:
    prompts: dict[tuple[int, int], int] = {}
    for request, number in enumerate(population.requests.request_class.tolist()):
        path = distributions.path(request)
        if path is None:
            population.prompt[request] = prompts.setdefault((number, -1 - request), len(prompts))
            continue
        population.prompt[request] = prompts.setdefault((number, path.prompt), len(prompts))
        population.request_class[request] = population.request_class[request] or path.domain
        population.num_prompt_tokens[request] = (
            population.num_prompt_tokens[request] or path.num_prompt_tokens
        )
        cap = int(population.num_output_tokens[request])
        if cap == 0 or cap >= path.num_tokens:
            population.num_output_tokens[request] = path.num_tokens
            population.ending[request] = path.ended_by
