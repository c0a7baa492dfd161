"""The identity of a run: a key over all that its result depends on, and where its figures come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

import specsim
from specsim.engine.tariffs import Rent, described
from specsim.hardware import Accelerator, ModelSpec
from specsim.results import Provenance, installed_versions
from specsim.results.provenance import ProfileKind
from specsim.results.schema import SCHEMA_VERSION
from specsim.scenario import Scenario
from specsim.speculation import RatesSpec, RecordedPaths
from specsim.speculation.trace import TraceHeader


def run_key(scenario: Scenario) -> str:
    """SHA-256 of the scenario, the content of the files that it names, the schema and the version.

    Files count by what is in them, not by where they lie.
    """
    content = {
        "scenario": _without_places(scenario),
        "traces": [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in scenario.trace_files()],
        "schema_version": SCHEMA_VERSION,
        "specsim_version": specsim.__version__,
    }
    return _sha256(content)


def _without_places(scenario: Scenario) -> JsonValue:
    """Return the scenario without what its result does not depend on: names, and where traces lie."""
    dump = scenario.model_dump(mode="json", exclude={"name", "description"})
    for owner in (dump, *dump["workload"]["classes"]):
        if owner["distributions"] and "path" in owner["distributions"]:
            del owner["distributions"]["path"]
    return dump


def provenance(
    scenario: Scenario,
    *,
    recordings: Sequence[RecordedPaths],
    is_approximate: bool,
    is_lossless: bool,
    total_variation: float | None,
    rents: Sequence[Rent],
) -> Provenance:
    """Return where the figures of a run come from."""
    profile = scenario.hardware.target
    devices: list[Accelerator] = [profile, scenario.draft_profile]
    power_is_estimated = any(device.is_power_estimated for device in devices)
    return Provenance(
        specsim_version=specsim.__version__,
        profile=profile.name,
        profile_kind=_profile_kind(profile),
        profile_sha256=_sha256(profile.model_dump(mode="json")),
        held_out_error=profile.held_out_error,
        held_out_power_error=profile.held_out_power_error,
        trace="; ".join(_described(recording.trace.header) for recording in recordings) or None,
        stand_in=_stand_in(scenario, recordings),
        acceptance_is_assumed=scenario.num_speculative_tokens > 0
        and any(isinstance(entry.distributions, RatesSpec) for entry in scenario.request_classes()),
        approximate=is_approximate,
        lossy=not is_lossless,
        total_variation=total_variation,
        power_is_estimated=power_is_estimated,
        guessed_watts=tuple(dict.fromkeys(name for device in devices for name in device.guessed_watts)),
        device_energy_is_estimated=any(device.is_device_energy_estimated for device in devices),
        price=described(scenario, rents),
        price_is_estimated=_is_price_estimated(scenario, rents, power_is_estimated),
        notes=_notes(scenario),
        versions=installed_versions(),
    )


def _is_price_estimated(scenario: Scenario, rents: Sequence[Rent], power_is_estimated: bool) -> bool:
    pays_for_joules = scenario.cost is not None and scenario.cost.usd_per_kwh is not None
    return any(rent.is_estimated for rent in rents) or (pays_for_joules and power_is_estimated)


def _profile_kind(profile: Accelerator) -> ProfileKind:
    if profile.is_fitted:
        return "fitted"
    return "unit" if profile.kind == "unit" else "datasheet"


def _described(header: TraceHeader) -> str:
    return f"{header.target} with {header.draft} at temperature {header.temperature:g}"


def _stand_in(scenario: Scenario, recordings: Sequence[RecordedPaths]) -> str | None:
    """Return the recorded pairs that are not the scenario's own, or None."""
    others = [
        _described(recording.trace.header)
        for recording in recordings
        if not _is_own_pair(scenario, recording.trace.header)
    ]
    return "; ".join(others) or None


def _is_own_pair(scenario: Scenario, header: TraceHeader) -> bool:
    """Tell whether a trace was recorded on the scenario's models, by the names of their presets."""
    config = scenario.speculative_config
    if scenario.target.model is None or not _names(header.target, scenario.target.model):
        return False
    if config is None or config.method == "ngram":
        return "lookup" in header.draft
    if config.method == "early_exit":
        return "exit" in header.draft
    if config.method in ("eagle", "eagle3") and "trained head" in header.draft:
        return True
    return config.model is not None and _names(header.draft, config.model)


def _names(recorded: str, model: ModelSpec) -> bool:
    return recorded.lower().startswith(model.name.lower())


def _notes(scenario: Scenario) -> tuple[str, ...]:
    found = (
        (
            scenario.hardware.target.kind == "unit",
            "Costs count target steps: no prompt, context, batch or power has an effect on them.",
        ),
        (
            scenario.workload.num_prompts < (scenario.workload.max_concurrency or 0),
            f"There are fewer requests than users: the load is that of {scenario.workload.num_prompts}.",
        ),
        (
            _moves_in_step(scenario),
            "All requests have one length, so that without speculation they start and end together and no "
            "prefill delays a step: speed-ups change once lengths differ; give output_tokens_stdev.",
        ),
    )
    return tuple(sentence for holds, sentence in found if holds)


def _moves_in_step(scenario: Scenario) -> bool:
    """Tell whether several users send requests of one length, each the next when the last is answered."""
    if (scenario.workload.max_concurrency or 1) < 2 or scenario.hardware.target.kind == "unit":
        return False
    classes = scenario.request_classes()
    laws = [entry.lengths.output_law() for entry in classes if isinstance(entry.distributions, RatesSpec)]
    # Texts end where they end; rates go on to the length that is asked for.
    return len(laws) == len(classes) and all(law == laws[0] and law and law.stdev == 0 for law in laws)


def _sha256(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
