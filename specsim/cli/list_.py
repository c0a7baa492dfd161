"""``specsim list``: what can be named in a scenario or on the command line."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer


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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: names by topic.")] = False,
) -> None:
    """List hardware profiles, models, scenarios, policies, distributions and verifiers by name."""
    topics = list(Topic) if topic is None else [topic]
    found = {one.value: _names(one) for one in topics}
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for name, entries in found.items():
        typer.echo(f"{name}: {', '.join(entries)}")


def _names(topic: Topic) -> list[str]:
    from specsim.config import names
    from specsim.speculation import DISTRIBUTIONS, LOOKAHEAD_POLICIES, VERIFIERS

    if topic is Topic.HARDWARE:
        return list(names("hardware_profiles"))
    if topic is Topic.MODELS:
        return list(names("models"))
    if topic is Topic.SCENARIOS:
        return list(names("scenarios"))
    registries = {
        Topic.POLICIES: LOOKAHEAD_POLICIES,
        Topic.DISTRIBUTIONS: DISTRIBUTIONS,
        Topic.VERIFIERS: VERIFIERS,
    }
    return list(registries[topic].kinds())
