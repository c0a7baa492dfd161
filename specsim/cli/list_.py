"""``specsim list``: what can be named in a scenario or on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar, cast, get_args

import typer

if TYPE_CHECKING:
    from specsim.config.catalog import Kind
    from specsim.hardware import DeviceCost
    from specsim.registry import Registry

T = TypeVar("T")

_DEFAULT_MODEL = "llama-3.1-8b"
_DEFAULT_CONTEXT = 2048
_LEGEND = """\
limit: bytes and operations at datasheet peaks. token: as simulated, not measured.
times: fitted to measured runs or by the datasheet; % off: the mean error on runs that were not fitted
to, where it is known; a datasheet's times are 10-30 % off as a rule.
~ rests on a guess, in part at least; joules that do so for more than half are withheld unless
--show-estimated-energy."""
"""What the columns of the comparison of devices mean."""


class Topic(StrEnum):
    """What can be listed."""

    HARDWARE = "hardware"
    MODELS = "models"
    SCENARIOS = "scenarios"
    POLICIES = "policies"
    DISTRIBUTIONS = "distributions"
    VERIFIERS = "verifiers"


def list_(
    topic: Annotated[
        Topic | None, typer.Argument(help="One of them; all by default.", show_default=False)
    ] = None,
    is_long: Annotated[
        bool, typer.Option("--long", help="With one topic: more than the name of each.")
    ] = False,
    is_compared: Annotated[
        bool, typer.Option("--compare", help="hardware: rank the devices for one token of a model.")
    ] = False,
    model: Annotated[
        str, typer.Option(help="With --compare: the model, a preset or a config.json.")
    ] = _DEFAULT_MODEL,
    dtype: Annotated[str, typer.Option(help="With --compare: format of its weights.")] = "bfloat16",
    context: Annotated[
        int, typer.Option(min=0, max=10**9, help="With --compare: cached tokens.")
    ] = _DEFAULT_CONTEXT,
    show_estimated_energy: Annotated[
        bool, typer.Option("--show-estimated-energy", help="Show joules that rest mostly on guessed watts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: names by topic.")] = False,
) -> None:
    """List hardware profiles, models, scenarios, policies, distributions and verifiers by name."""
    from specsim.errors import ConfigError

    if is_compared and topic is not Topic.HARDWARE:
        raise ConfigError("--compare ranks devices: specsim list hardware --compare")
    if is_compared:
        _compare(model, dtype, context, show_estimated_energy=show_estimated_energy, as_json=as_json)
        return
    if is_long and topic is None:
        raise ConfigError(f"--long describes one of {', '.join(Topic)}: specsim list hardware --long")
    # A scenario's name says little without its question.
    if topic is not None and (is_long or (topic is Topic.SCENARIOS and not as_json)):
        _describe(topic, as_json=as_json)
        return
    topics = list(Topic) if topic is None else [topic]
    found = {one.value: _names(one) for one in topics}
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for name, entries in found.items():
        typer.echo(f"{name}: {', '.join(entries)}")


def _names(topic: Topic) -> list[str]:
    from specsim.config import names

    if topic is Topic.HARDWARE:
        return list(names("hardware_profiles"))
    if topic is Topic.MODELS:
        return list(names("models"))
    if topic is Topic.SCENARIOS:
        return list(names("scenarios"))
    return list(_registry(topic).kinds())


def _registry(topic: Topic) -> Registry:
    from specsim.speculation import DISTRIBUTIONS, LOOKAHEAD_POLICIES, VERIFIERS

    return {
        Topic.POLICIES: LOOKAHEAD_POLICIES,
        Topic.DISTRIBUTIONS: DISTRIBUTIONS,
        Topic.VERIFIERS: VERIFIERS,
    }[topic]


def _describe(topic: Topic, *, as_json: bool) -> None:
    """Print one line for each name: the size of a model, the description of the others."""
    import sys

    from specsim.hardware import load_model
    from specsim.report.catalogue import print_descriptions, print_models

    if topic is Topic.MODELS:
        models = list(_readable(_names(topic), load_model).values())
        if as_json:
            figures = ("params_total", "params_active", "kv_elements_per_token", "num_layers")
            sizes = {model.name: {name: getattr(model, name) for name in figures} for model in models}
            typer.echo(json.dumps(sizes, indent=2))
        else:
            print_models(models, sys.stdout)
        return
    descriptions = _descriptions(topic)
    if as_json:
        typer.echo(json.dumps(descriptions, indent=2, ensure_ascii=False))
    else:
        print_descriptions(descriptions, sys.stdout)


def _descriptions(topic: Topic) -> dict[str, str]:
    """Return what each file says of itself, or the first sentence on each kind."""
    import inspect

    from specsim.config import find, read

    folders: dict[Topic, Kind] = {Topic.SCENARIOS: "scenarios", Topic.HARDWARE: "hardware_profiles"}
    if topic not in folders:
        registry = _registry(topic)
        texts = {name: (inspect.getdoc(registry[name]) or "").partition("\n\n")[0] for name in _names(topic)}
    else:
        documents = _readable(_names(topic), lambda name: read(find(folders[topic], name)))
        texts = {name: str(document.data.get("description", "")) for name, document in documents.items()}
    # A description may run over several lines.
    return {name: " ".join(text.replace("``", "`").split()) for name, text in texts.items()}


def _readable(names: Iterable[str], load: Callable[[str], T]) -> dict[str, T]:
    """Load what can be loaded; a file on the search path that cannot is told and left out."""
    from specsim.errors import ConfigError

    loaded = {}
    for name in names:
        try:
            loaded[name] = load(name)
        except ConfigError as error:
            more = f" (and {len(error.faults) - 1} more)" if len(error.faults) > 1 else ""
            typer.echo(f"left out: {error.faults[0]}{more}", err=True)
    return loaded


def _compare(model: str, dtype: str, context: int, *, show_estimated_energy: bool, as_json: bool) -> None:
    """Print all devices, the lowest limit first, and which were left out."""
    import sys

    from specsim.config import names
    from specsim.errors import ConfigError
    from specsim.hardware import compare, load_model, load_profile
    from specsim.hardware.compare import ranked
    from specsim.hardware.formats import Dtype
    from specsim.report.catalogue import print_devices

    if dtype not in get_args(Dtype):
        raise ConfigError(f"--dtype: {dtype!r} is not allowed; known: {', '.join(get_args(Dtype))}")
    spec = load_model(model)
    rows: list[DeviceCost] = []
    left_out: dict[str, list[str]] = {}
    for name, profile in _readable(names("hardware_profiles"), load_profile).items():
        try:
            found = compare([profile], spec, context_tokens=context, weight_dtype=cast("Dtype", dtype))
        except ConfigError as error:
            reason = str(error).removeprefix(f"profile '{name}' ").partition(" (")[0]
            left_out.setdefault(reason, []).append(name)
            continue
        rows += found
        if not found:
            left_out.setdefault(f"is of kind {profile.kind}, which states no peaks", []).append(name)
    rows = ranked(rows)
    if as_json:
        shown = [_without_guess(row, show_estimated_energy=show_estimated_energy) for row in rows]
        head: dict[str, object] = {"model": spec.name, "dtype": dtype, "context_tokens": context}
        typer.echo(json.dumps(head | {"devices": shown, "left_out": left_out}, indent=2))
        return
    typer.echo(
        f"One token of {spec.name} in {dtype} at {context} cached tokens, one sequence, one device each."
    )
    print_devices(rows, sys.stdout, show_estimated_energy=show_estimated_energy)
    typer.echo(_LEGEND)
    for reason, devices in left_out.items():
        typer.echo(f"Left out, since it {reason}: {', '.join(devices)}.")


def _without_guess(row: DeviceCost, *, show_estimated_energy: bool) -> dict[str, object]:
    withheld = {} if row.is_energy_shown or show_estimated_energy else {"token_j": None}
    return asdict(row) | withheld
