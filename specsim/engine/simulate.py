"""Run a scenario: both arms on the same luck, and the tables that come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from specsim.engine.arm import ArmColumns, Columns, run_arm
from specsim.engine.deploy import Deployed
from specsim.engine.identity import provenance, run_key
from specsim.engine.prepare import Prepared, prepare
from specsim.engine.round_source import rounds_of
from specsim.engine.tariffs import rents, tariffs
from specsim.errors import ConfigError, DomainError
from specsim.hardware import Accelerator, UnitProfile
from specsim.results import Labels, ResultTables, SimulationResult
from specsim.scenario import Scenario, load_scenario
from specsim.speculation import SampledRounds

DEFAULT_HORIZON = 256
MAX_SEED = 2**63 - 1

Progress = Callable[[int, int, int], None]
"""Called with the tokens of arms done, of all arms at most, and those that this arm has emitted."""


def simulate(
    scenario: Scenario | str | Path | Mapping[str, object],
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    horizon: int = DEFAULT_HORIZON,
    progress: Progress | None = None,
) -> SimulationResult:
    """Simulate a scenario: the autoregressive baseline, and speculation on the same luck.

    Parameters
    ----------
    scenario
        A scenario; the name, path or YAML text of one; or a mapping of what would stand in its file.
    overrides
        Settings such as ``K=2``, put over a scenario that is not loaded yet.
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
    DomainError
        A seed, a horizon or a figure of the scenario is outside what can be computed with.
    CapacityError
        Weights and KV cache exceed a device's memory.

    Examples
    --------
    >>> result = simulate("two_token_example")
    >>> result.summary()["speculation"]["spec_decode_acceptance_length"] > 2
    True
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, overrides=overrides)
    elif overrides:
        raise ConfigError("overrides: this scenario is loaded already; give them to load_scenario")
    if horizon < 1:
        raise DomainError(f"horizon: {horizon} is not allowed; expected at least 1 round")
    if seed is not None:
        if not 0 <= seed <= MAX_SEED:
            raise DomainError(f"seed: {seed} is not allowed; expected 0 to {MAX_SEED}")
        scenario = scenario.model_copy(update={"seed": seed})
    prepared = prepare(scenario)
    # Before the run, while the files that it names are those that were read.
    key = run_key(scenario)
    names = ("baseline",) if scenario.speculative_config is None else ("baseline", "speculation")
    num_tokens = int(prepared.population.num_output_tokens.sum())
    arms, rounds = {}, rounds_of(prepared, speculates=False)
    for number, name in enumerate(names):
        speculates = name == "speculation"
        rounds = rounds_of(prepared, speculates=True) if speculates else rounds
        arms[name] = run_arm(
            name,
            prepared,
            rounds=rounds,
            speculates=speculates,
            horizon=horizon,
            progress=progress and partial(progress, number * num_tokens, len(names) * num_tokens),
        )
    return _result(
        prepared,
        arms,
        key=key,
        is_approximate=rounds.is_approximate,
        total_variation=rounds.loss_per_token() if isinstance(rounds, SampledRounds) else None,
    )


def _result(
    prepared: Prepared,
    arms: Mapping[str, ArmColumns],
    *,
    key: str,
    is_approximate: bool,
    total_variation: float | None,
) -> SimulationResult:
    scenario, target, draft = prepared.scenario, prepared.target, prepared.draft
    idle_w = _idle_power_w(target)
    paid = rents(scenario, target, draft)
    own = draft if draft is not None and draft.has_own_devices else None
    draft_idle_w = 0.0 if own is None else _idle_power_w(own)
    guessed_draft_w = 0.0 if own is None else own.guessed_waiting_w
    return SimulationResult(
        scenario=scenario,
        seed=scenario.seed,
        key=key,
        provenance=provenance(
            scenario,
            recordings=prepared.population.recordings,
            is_approximate=is_approximate,
            is_lossless=scenario.verifier_spec.build(scenario.build_context()).is_lossless,
            total_variation=total_variation,
            rents=paid,
        ),
        tables=ResultTables.of(
            _stacked([columns.requests for columns in arms.values()]),
            _stacked([columns.steps for columns in arms.values()]),
            _stacked([columns.rounds for columns in arms.values()]),
        ),
        num_speculative_tokens=scenario.num_speculative_tokens,
        idle_power_w={"baseline": idle_w, "speculation": idle_w + draft_idle_w},
        guessed_idle_power_w={
            "baseline": target.guessed_waiting_w,
            "speculation": target.guessed_waiting_w + guessed_draft_w,
        },
        tariffs=tariffs(scenario, paid),
        draft_flops_ratio=_draft_flops_ratio(scenario.draft_profile),
        slo=scenario.slo,
        show_estimated_energy=scenario.show_estimated_energy,
    )


def _draft_flops_ratio(profile: Accelerator) -> float | None:
    """Return the stated ratio of operations where the cost model counts none."""
    return profile.draft_flops_ratio if isinstance(profile, UnitProfile) else None


def _idle_power_w(deployed: Deployed) -> float:
    return deployed.waiting_w if deployed.profile.has_power else math.nan


def _stacked(parts: Sequence[Columns]) -> Columns:
    """Stack the same columns of several arms, and empty them."""
    stacked: Columns = {}
    for name in list(parts[0]):
        # Popped as it goes, so that a million steps do not exist twice.
        values = [part.pop(name) for part in parts]
        words = [value for value in values if isinstance(value, Labels)]
        stacked[name] = (
            Labels.stacked(words) if words else np.concatenate(cast("list[NDArray[np.generic]]", values))
        )
    return stacked
