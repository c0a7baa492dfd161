"""Data of the live panel: what a round costs on each device, by batch and lookahead.

The page combines these tables with the closed forms and computes no cost of its own, so its numbers are
those of the cost models, whatever their kind. What is not in the tables is not shown: nothing is
interpolated between batches, lookaheads or contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from specsim.arrays import NANOJOULES_PER_JOULE, PICOSECONDS_PER_SECOND, Floats, Ints
from specsim.config import names
from specsim.engine.deploy import Deployed, check_memory, deploy_draft, deploy_target
from specsim.engine.price import price_rounds
from specsim.errors import CapacityError, ConfigError, DomainError
from specsim.hardware import Accelerator, UnitProfile, load_profile
from specsim.hardware.guess import is_shown
from specsim.results.accounting import divide
from specsim.scenario import Scenario
from specsim.speculation.rounds import Rounds

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LOOKAHEADS = tuple(range(17))
CONTEXTS = (0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)

_UNITS = {"ps": PICOSECONDS_PER_SECOND, "nj": NANOJOULES_PER_JOULE}
"""How many of the engine's whole units make an SI unit."""

Grid = list[list[float] | None]
"""Numbers [batch][lookahead]; null for a batch that does not fit or that the profile does not cover."""


class DeviceCosts(TypedDict):
    """Cost of a round on one device, by batch and lookahead; lookahead 0 is the baseline's step."""

    name: str
    draft_s: Grid
    """All draft passes of a round, s."""
    target_s: Grid
    """The pass that verifies, s."""
    draft_j: Grid | None
    """Joules of the draft passes; null where unknown or withheld, for a batch or altogether."""
    target_j: Grid | None
    draft_flops: Grid
    target_flops: Grid
    draft_flops_ratio: float | None
    """Operations of a draft position ÷ a target position, where the cost model counts none."""
    notes: list[str]
    """What is withheld or marked, and which batches lack why."""


class CacheBytes(TypedDict):
    """Bytes that a round moves on the scenario's own device, [batch][context][lookahead]."""

    draft_bytes: list[Grid]
    target_bytes: list[Grid]


class Start(TypedDict):
    """Where the sliders begin."""

    acceptance_rate: float
    lookahead: int
    batch: int
    gain: float | None
    """What was simulated there: speed-up per token; null where it is not known."""


class WhatIf(TypedDict):
    """All tables of the live panel."""

    batches: list[int]
    lookaheads: list[int]
    contexts: list[int]
    context_tokens: int
    """Cached tokens a sequence at which ``devices`` are priced."""
    devices: list[DeviceCosts]
    """The scenario's own device first."""
    absent: list[str]
    """Devices that cannot run this pair of models, and why."""
    cache: CacheBytes | None
    """Null where the cost model counts no bytes."""
    start: Start


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Batches and lookaheads that are priced."""

    batches: tuple[int, ...]
    lookaheads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Priced:
    """Costs of rounds at one batch, [lookahead]."""

    draft_s: Floats
    target_s: Floats
    draft_j: Floats
    target_j: Floats
    draft_flops: Floats
    target_flops: Floats
    draft_bytes: Floats
    target_bytes: Floats
    guessed_fraction: Floats
    """Share of the joules that guessed watts contribute."""


def what_if(
    scenario: Scenario,
    *,
    context_tokens: int,
    start: Start,
    devices: Sequence[str] = (),
) -> WhatIf:
    """Price rounds of a scenario's models by batch and lookahead on its own device and on others.

    Parameters
    ----------
    scenario
        Models, devices and formats; what it says of requests is not used.
    context_tokens
        Cached tokens of each sequence.
    start
        Where the sliders begin; its batch and lookahead are priced beside `BATCHES` and `LOOKAHEADS`.
    devices
        Names of further profiles for the target; those that cannot run it are listed with the reason.
    """
    own = scenario.hardware.target
    sizes = _Sizes(
        tuple(sorted({*BATCHES, start["batch"]})), tuple(range(max(len(LOOKAHEADS), start["lookahead"] + 1)))
    )
    found = [_costs(scenario, own, context_tokens, sizes)]
    absent = []
    # Costs in target steps belong to a pair of models, not to a device.
    for name in () if isinstance(own, UnitProfile) else devices:
        try:
            profile = load_profile(name)
            if profile == own or isinstance(profile, UnitProfile):
                continue
            costs = _costs(scenario, profile, context_tokens, sizes)
        except (ConfigError, DomainError) as error:
            absent.append(f"{name}: {error}")
            continue
        if all(row is None for row in costs["target_s"]):
            absent.append(costs["notes"][0])
        else:
            found.append(costs)
    return {
        "batches": list(sizes.batches),
        "lookaheads": list(sizes.lookaheads),
        "contexts": list(CONTEXTS),
        "context_tokens": context_tokens,
        "devices": found,
        "absent": absent,
        "cache": _cache_bytes(scenario, sizes),
        "start": start,
    }


def shipped_devices() -> tuple[str, ...]:
    """Names of all accelerator profiles that are found."""
    return names("hardware_profiles")


def _costs(scenario: Scenario, profile: Accelerator, context_tokens: int, sizes: _Sizes) -> DeviceCosts:
    target, draft = _deployed(scenario, profile)
    notes: list[str] = []
    rows = [
        _priced_or_none(scenario, target, draft, batch, context_tokens, sizes.lookaheads, notes)
        for batch in sizes.batches
    ]
    joules = [row if row is None or _has_joules(scenario, profile, row) else None for row in rows]
    has_joules = any(row is not None for row in joules)
    notes += _notes_on_joules(profile, sizes, rows, joules)
    return {
        "name": profile.name,
        "draft_s": _grid(rows, "draft_s"),
        "target_s": _grid(rows, "target_s"),
        "draft_j": _grid(joules, "draft_j") if has_joules else None,
        "target_j": _grid(joules, "target_j") if has_joules else None,
        "draft_flops": _grid(rows, "draft_flops"),
        "target_flops": _grid(rows, "target_flops"),
        "draft_flops_ratio": profile.draft_flops_ratio if isinstance(profile, UnitProfile) else None,
        "notes": [f"{profile.name}: {note}" for note in notes],
    }


def _has_joules(scenario: Scenario, profile: Accelerator, row: _Priced) -> bool:
    """Tell whether the joules of a batch are known, and bounded or asked for."""
    is_bounded = scenario.show_estimated_energy or is_shown(float(row.guessed_fraction.max()))
    return profile.has_power and is_bounded


def _notes_on_joules(
    profile: Accelerator, sizes: _Sizes, rows: Sequence[_Priced | None], shown: Sequence[_Priced | None]
) -> Iterator[str]:
    if not profile.has_power:
        yield "joules unknown: the profile states no power"
        return
    shares = {
        batch: float(row.guessed_fraction.max())
        for batch, row in zip(sizes.batches, rows, strict=True)
        if row is not None
    }
    kept = {batch for batch, row in zip(sizes.batches, shown, strict=True) if row is not None}
    withheld = shares.keys() - kept
    at = f" at batch {', '.join(map(str, sorted(withheld)))}" if kept else ""
    for word, batches in (("joules", kept), (f"joules withheld{at}", withheld)):
        most = max((shares[batch] for batch in batches), default=0.0)
        if most:
            yield f"{word}: up to {100.0 * most:.0f} % of them from guessed watts"


def _deployed(scenario: Scenario, profile: Accelerator) -> tuple[Deployed, Deployed | None]:
    hardware = scenario.hardware.model_copy(update={"target": profile})
    moved = scenario.model_copy(update={"hardware": hardware})
    return deploy_target(moved), deploy_draft(moved)


def _priced_or_none(
    scenario: Scenario,
    target: Deployed,
    draft: Deployed | None,
    batch: int,
    context_tokens: int,
    lookaheads: Sequence[int],
    notes: list[str],
) -> _Priced | None:
    """Price all lookaheads of a batch, or say why the device cannot run it; once for the smallest batch."""
    try:
        if target.resident is not None:
            check_memory(scenario, target, draft, num_sequences=batch, context_tokens=context_tokens)
        return _priced(target, draft, batch, context_tokens, lookaheads)
    except (CapacityError, DomainError) as error:
        if not any(note.startswith("batch") for note in notes):
            notes.append(f"batch {batch} and more: {error}")
        return None


def _priced(
    target: Deployed, draft: Deployed | None, batch: int, context_tokens: int, lookaheads: Sequence[int]
) -> _Priced:
    cached: Ints = np.full(batch, context_tokens, dtype=np.int64)
    lookahead = np.repeat(np.array(lookaheads, dtype=np.int64)[:, np.newaxis], batch, axis=1)
    nothing = np.zeros_like(lookahead)
    # Nothing is emitted, so that every row is priced at the same context.
    rounds = Rounds(lookahead, lookahead, lookahead + 1, nothing, nothing, nothing.astype(np.bool_))
    baseline = price_rounds(target, None, cached, rounds.first(1)).columns
    speculation = price_rounds(target, draft, cached, rounds).columns

    def of(name: str) -> Floats:
        both = np.concatenate([baseline[name], speculation[name][1:]])
        return np.asarray(both / _UNITS.get(name.rpartition("_")[2], 1.0), dtype=np.float64)

    return _Priced(
        draft_s=of("draft_ps"),
        target_s=of("target_ps"),
        draft_j=of("draft_energy_nj"),
        target_j=of("target_energy_nj"),
        draft_flops=of("draft_flops"),
        target_flops=of("target_flops"),
        draft_bytes=of("draft_bytes"),
        target_bytes=of("target_bytes"),
        guessed_fraction=divide(
            of("guessed_j"), of("draft_energy_nj") + of("target_energy_nj"), otherwise=0.0
        ),
    )


def _cache_bytes(scenario: Scenario, sizes: _Sizes) -> CacheBytes | None:
    target, draft = _deployed(scenario, scenario.hardware.target)
    if isinstance(scenario.hardware.target, UnitProfile):
        return None
    tables: CacheBytes = {"draft_bytes": [], "target_bytes": []}
    for batch in sizes.batches:
        rows = [
            _priced_or_none(scenario, target, draft, batch, context, sizes.lookaheads, [])
            for context in CONTEXTS
        ]
        tables["draft_bytes"].append(_grid(rows, "draft_bytes"))
        tables["target_bytes"].append(_grid(rows, "target_bytes"))
    return tables


def _grid(rows: Sequence[_Priced | None], name: str) -> Grid:
    return [None if row is None else getattr(row, name).tolist() for row in rows]
