"""``specsim run``: does it pay? Simulate a scenario and print the verdict."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Collection

    from specsim.errors import ConfigError, Fault
    from specsim.scenario import Scenario

DEFAULT_SCENARIO = "quickstart"
_COMMAND_LINE = "command line"

_WITHOUT_FILE = """\
name: command-line
hardware: {}
speculative_config:
  method: draft_model
  num_speculative_tokens: 4
workload: {num_prompts: 64, max_concurrency: 1, prompt_tokens: 512, output_tokens: 256}
"""
"""What a run from flags alone starts from; every value can be changed with ``--set``."""

_LOOKUP = "ngram"
"""The draft that is no model: prompt lookup."""

_FLAGS = {
    "target.model": "--target",
    "speculative_config.model": "--draft",
    "speculative_config.method": "--draft",
    "hardware.target": "--hardware",
    "distributions": "--acceptance-rate",
    "speculative_config.num_speculative_tokens": "-k",
    "workload.max_concurrency": "--max-concurrency",
    "seed": "--seed",
}
"""The flag that gives a key."""


def run(
    scenario: Annotated[
        str | None,
        typer.Argument(
            help="Name or path of a scenario; the shipped quickstart by default.", show_default=False
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Target model: a preset or a config.json.")] = None,
    draft: Annotated[
        str | None, typer.Option(help="Draft model: a preset, a config.json, or 'ngram' for prompt lookup.")
    ] = None,
    hardware: Annotated[str | None, typer.Option(help="Accelerator profile: a name or a file.")] = None,
    acceptance_rate: Annotated[
        float | None, typer.Option(help="One acceptance rate for every draft token, 0 to 1.")
    ] = None,
    num_speculative_tokens: Annotated[
        int | None, typer.Option("-k", "--num-speculative-tokens", help="The most that a round drafts.")
    ] = None,
    max_concurrency: Annotated[
        int | None, typer.Option(help="Users, each sending its next request when the last is answered.")
    ] = None,
    slo: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=LIMIT", help="Objective such as p99_ttft_ms=200; missed: exit 1."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Takes the place of the scenario's seed.")] = None,
    show_estimated_energy: Annotated[
        bool, typer.Option("--show-estimated-energy", help="Show joules that rest mostly on guessed watts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write the run into this folder.")
    ] = None,
) -> None:
    """Simulate a scenario, with and without speculation, and say whether speculation pays.

    Without a scenario, --target, --draft, --hardware, --acceptance-rate, -k and --max-concurrency
    describe one.
    """
    from specsim.cli.progress import token_progress
    from specsim.engine.simulate import simulate
    from specsim.errors import ConfigError, GateError
    from specsim.results.objectives import missed_objectives
    from specsim.results.writer import check_folder, write
    from specsim.scenario.load import placed_faults
    from specsim.scenario.settings import full_key

    flags = {
        "target.model": target,
        "speculative_config.model": None if draft == _LOOKUP else draft,
        "hardware.target": hardware,
        "speculative_config.num_speculative_tokens": num_speculative_tokens,
        "workload.max_concurrency": max_concurrency,
        "seed": seed,
        "show_estimated_energy": show_estimated_energy or None,
    }
    overrides = [f"{key}={json.dumps(value)}" for key, value in flags.items() if value is not None]
    if draft == _LOOKUP:
        overrides += ["speculative_config.method=ngram", "speculative_config.model=null"]
    if acceptance_rate is not None:
        rates = {"kind": "rates", "acceptance_rate": acceptance_rate}
        overrides.append(f"distributions={json.dumps(rates)}")
    overrides += [f"slo.{objective}" for objective in _objectives(slo or [])]
    given = {override.partition("=")[0] for override in overrides}
    given -= {full_key(setting.partition("=")[0]) for setting in settings or []}
    overrides += settings or []
    is_described = any(flag is not None for flag in (target, draft, hardware, acceptance_rate))
    try:
        loaded = _load(scenario, is_described=is_described, overrides=overrides)
    except ConfigError as error:
        raise _by_flags(error, given) from None
    if output is not None:
        check_folder(output)
    try:
        with token_progress() as progress:
            result = simulate(loaded, progress=progress)
    except ConfigError as error:
        if scenario is None and is_described:
            raise
        placed = placed_faults(error, scenario or DEFAULT_SCENARIO, overrides=overrides)
        raise _by_flags(placed, given) from None
    summary = result.summary()
    fault = None
    if output is not None:
        try:
            write(result, output)
        except ConfigError as error:
            # What took long to find is shown all the same.
            fault = error
    if as_json:
        typer.echo(json.dumps(summary, indent=2, allow_nan=False))
    else:
        from specsim.report.tables import print_summary

        print_summary(summary, sys.stdout)
    if fault is not None:
        raise fault
    missed = missed_objectives(summary, loaded.slo)
    if missed:
        raise GateError("; ".join(missed))


def _load(name: str | None, *, is_described: bool, overrides: list[str]) -> Scenario:
    """Load the named scenario, or the one that flags alone describe."""
    from specsim.config import parse
    from specsim.errors import ConfigError
    from specsim.scenario import load_scenario, scenario_of

    if name is not None or not is_described:
        return load_scenario(DEFAULT_SCENARIO if name is None else name, overrides=overrides)
    try:
        return scenario_of(parse(_WITHOUT_FILE, file=_COMMAND_LINE), overrides=overrides)
    except ConfigError as error:
        raise ConfigError([_with_flag(fault) for fault in error.faults]) from None


def _objectives(slo: list[str]) -> list[str]:
    from specsim.errors import ConfigError, Fault

    faults = [
        Fault(f"--slo {objective}", None, None, "", "is not of the form METRIC=LIMIT, as in p99_ttft_ms=200")
        for objective in slo
        if "=" not in objective
    ]
    if faults:
        raise ConfigError(faults)
    return slo


def _by_flags(error: ConfigError, keys: Collection[str]) -> ConfigError:
    """Return an error whose faults name the flags that gave these keys, where those are at fault."""
    from specsim.errors import ConfigError

    flags = {f"--set {key}": _FLAGS.get(key, f"--slo {key.removeprefix('slo.')}") for key in keys}
    return ConfigError([replace(fault, file=flags.get(fault.file, fault.file)) for fault in error.faults])


def _with_flag(fault: Fault) -> Fault:
    """Return a fault of what the flags describe, without the lines of a file that nobody has written."""
    if fault.file != _COMMAND_LINE:
        return fault
    flag = _FLAGS.get(fault.path)
    message = f"{fault.message}; give {flag}" if flag else fault.message
    return replace(fault, line=None, column=None, message=message)
