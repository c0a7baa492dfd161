"""Run a scenario: both arms on the same luck, and the tables that come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from specsim.engine.arm import ArmColumns, run_arm
from specsim.engine.deploy import Deployed, check_memory, deploy_draft, deploy_target
from specsim.engine.identity import provenance, run_key
from specsim.engine.population import Population, populate
from specsim.results import Labels, ResultTables, SimulationResult
from specsim.results.table import ColumnData
from specsim.scenario import Scenario, load_scenario
from specsim.speculation import PlainRounds, RoundSource, build_rounds
from specsim.streams import RandomStreams

DEFAULT_HORIZON = 64

Progress = Callable[[int, int, int], None]
"""Called with the tokens of arms done, of all arms at most, and those that this arm has emitted."""


def simulate(
    scenario: Scenario | str | Path,
    *,
    seed: int | None = None,
    horizon: int = DEFAULT_HORIZON,
    progress: Progress | None = None,
) -> SimulationResult:
    """Simulate a scenario: the autoregressive baseline, and speculation on the same luck.

    Parameters
    ----------
    scenario
        A scenario, or the name, path or YAML text of one.
    seed
        Takes the place of the scenario's seed.
    horizon
        Rounds that may be stepped in one block; results do not depend on it.
    progress
        Told now and then how far the run is.

    Raises
    ------
    ConfigError
        Faults of the scenario or of a file that it names.
    CapacityError
        Weights and KV cache exceed a device's memory.

    Examples
    --------
    >>> result = simulate("two_token_example")
    >>> result.summary()["speculation"]["spec_decode_acceptance_length"] > 2
    True
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    if seed is not None:
        scenario = scenario.model_copy(update={"seed": seed})
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
    names = ("baseline",) if scenario.speculative_config is None else ("baseline", "speculation")
    num_tokens = int(population.num_output_tokens.sum())
    arms = {}
    for number, name in enumerate(names):
        speculates = name == "speculation"
        rounds = _rounds(scenario, population, streams, speculates=speculates)
        arms[name] = run_arm(
            name,
            scenario,
            population,
            target=target,
            draft=draft if speculates else None,
            rounds=rounds,
            horizon=horizon,
            progress=progress and partial(progress, number * num_tokens, len(names) * num_tokens),
        )
    return _result(scenario, population, arms, target=target, draft=draft, rounds=rounds)


def _rounds(scenario: Scenario, population: Population, streams: RandomStreams, *, speculates: bool) -> RoundSource:
    """Return where the rounds of an arm come from; a sampled text is drawn anew in each."""
    if population.distributions.offers == "path" and not speculates:
        return PlainRounds()
    num_speculative_tokens = scenario.num_speculative_tokens if speculates else 0
    return build_rounds(
        population.distributions,
        scenario.lookahead.build(scenario.build_context()),
        scenario.verifier_spec.build(scenario.build_context()),
        streams=streams,
        num_output_tokens=population.num_output_tokens,
        num_speculative_tokens=num_speculative_tokens,
        shorten_last_draft=scenario.shorten_last_draft,
    )


def _result(
    scenario: Scenario,
    population: Population,
    arms: Mapping[str, ArmColumns],
    *,
    target: Deployed,
    draft: Deployed | None,
    rounds: RoundSource,
) -> SimulationResult:
    tables = ResultTables.of(
        _stacked([columns.requests for columns in arms.values()]),
        _stacked([columns.steps for columns in arms.values()]),
        _stacked([columns.rounds for columns in arms.values()]),
    )
    return SimulationResult(
        scenario=scenario,
        seed=scenario.seed,
        key=run_key(scenario),
        provenance=provenance(
            scenario,
            recordings=population.recordings,
            is_approximate=rounds.is_approximate,
            is_lossless=scenario.verifier_spec.build(scenario.build_context()).is_lossless,
        ),
        tables=tables,
        num_speculative_tokens=scenario.num_speculative_tokens,
        idle_power_w={
            "baseline": _idle_power_w(target),
            "speculation": _idle_power_w(target)
            + (_idle_power_w(draft) if draft and draft.has_own_devices else 0.0),
        },
        slo=scenario.slo,
        show_estimated_energy=scenario.show_estimated_energy,
    )


def _idle_power_w(deployed: Deployed) -> float:
    return deployed.waiting_w if deployed.profile.has_power else math.nan


def _stacked(parts: Sequence[ColumnData]) -> ColumnData:
    """Stack the same columns of several arms."""
    stacked: dict[str, NDArray[Any] | Labels] = {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        words = [value for value in values if isinstance(value, Labels)]
        stacked[name] = Labels.stacked(words) if words else np.concatenate(cast("list[NDArray[Any]]", values))
    return stacked
