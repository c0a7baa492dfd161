"""``specsim check``: are these files right, without running anything."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specsim.config import Document

_MARKS = {
    "scenario": ("speculative_config", "workload", "distributions", "lookahead", "target"),
    "accelerator profile": ("memory", "peak_flops_per_s", "kind", "overhead", "links"),
    "model": ("hidden_size", "d_model", "n_embd", "model_type", "text_config", "num_hidden_layers"),
}
"""Keys that tell what a file describes, the first match in this order."""


def check(
    files: Annotated[
        list[Path], typer.Argument(help="Scenarios, hardware profiles or models (config.json).")
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of every scenario.")
    ] = None,
) -> None:
    """Check files without simulating: keys, units, bounds, what they name, whether rules and memory fit."""
    from specsim.config.validate import sort_faults
    from specsim.errors import CapacityError, ConfigError, DomainError, Fault

    faults: list[Fault] = []
    misfits: list[CapacityError] = []
    for file in files:
        try:
            typer.echo(f"{file}: OK, {_checked(file, settings or [])}")
        except ConfigError as error:
            faults += [fault if fault.file else replace(fault, file=str(file)) for fault in error.faults]
        except DomainError as error:
            faults.append(Fault(str(file), None, None, "", str(error)))
        except CapacityError as error:
            misfits.append(CapacityError(f"{file}: {error}", lacking_bytes=error.lacking_bytes))
    # Bad input weighs more than what does not fit, and one error carries the exit code.
    last = None if faults or not misfits else misfits.pop()
    for misfit in misfits:
        typer.echo(f"specsim: {misfit}", err=True)
    if faults:
        raise ConfigError(sort_faults(dict.fromkeys(faults)))
    if last is not None:
        raise last


def _checked(file: Path, settings: list[str]) -> str:
    """Load a file as what it is, and say what that is."""
    from specsim.config import read
    from specsim.engine.prepare import prepare
    from specsim.engine.round_source import check_rounds
    from specsim.errors import ConfigError
    from specsim.hardware import load_model, load_profile
    from specsim.scenario import scenario_of
    from specsim.scenario.load import with_settings

    document = read(file)
    # A bare name would be looked up among the shipped files.
    path = str(file) if file.is_absolute() else f".{os.sep}{file}"
    kind = _kind(document)
    if kind == "scenario":
        scenario = scenario_of(document, overrides=settings)
        try:
            check_rounds(prepare(scenario))
        except ConfigError as error:
            raise with_settings(document, settings)[0].placed(error) from None
        return f"{kind} {scenario.name!r}"
    if settings:
        message = f"is no scenario but of kind {kind!r}, and --set changes scenarios"
        raise ConfigError([document.root.place.fault("", message)])
    if kind == "model":
        return f"{kind} {load_model(path).name!r}"
    return f"{kind} {load_profile(path).name!r}"


def _kind(document: Document) -> str:
    from specsim.errors import ConfigError

    for kind, keys in _MARKS.items():
        if not document.root.entries.keys().isdisjoint(keys):
            return kind
    marks = "; ".join(f"{kind}: {', '.join(keys)}" for kind, keys in _MARKS.items())
    raise ConfigError([document.root.place.fault("", f"is none of these, by its keys ({marks})")])
