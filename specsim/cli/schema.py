"""``specsim schema``: JSON Schema of the input files, for editors that complete and check them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Subject(StrEnum):
    """What a schema can be of."""

    SCENARIO = "scenario"
    HARDWARE = "hardware"
    MODEL = "model"


def schema(
    subject: Annotated[Subject, typer.Argument(help="Which kind of file.")] = Subject.SCENARIO,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write instead of printing.")
    ] = None,
) -> None:
    """Print the JSON Schema of a scenario, a hardware profile or a model."""
    from specsim.writing import write_faults

    text = json.dumps(_schema(subject), indent=2) + "\n"
    if output is None:
        typer.echo(text, nl=False)
        return
    with write_faults(output):
        output.write_text(text, encoding="utf-8")


def _schema(subject: Subject) -> dict[str, Any]:
    from pydantic import TypeAdapter

    from specsim.hardware import AcceleratorProfile, ModelSpec
    from specsim.scenario import REFERENCES, Scenario

    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if subject is Subject.HARDWARE:
        return dialect | TypeAdapter(AcceleratorProfile).json_schema()
    if subject is Subject.MODEL:
        return dialect | ModelSpec.model_json_schema()
    return dialect | _allow_names(Scenario.model_json_schema(), REFERENCES)


def _allow_names(schema: dict[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return a schema in which a name may stand at each dotted path in place of what it describes.

    Names are replaced by the files that they stand for before validation, so the spec knows none.
    """
    schema = json.loads(json.dumps(schema))
    for path in paths:
        *way, last = path.split(".")
        node = schema
        for step in way:
            node = _resolved(schema, node["properties"][step])
        described = node["properties"][last]
        if {"type": "string"} not in described.get("anyOf", []):
            # A description stays outside, where editors look for it.
            text = {"description": described.pop("description")} if "description" in described else {}
            node["properties"][last] = text | {"anyOf": [{"type": "string"}, described]}
    return schema


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Follow references and an optional value to the object schema."""
    if "$ref" in node:
        target: Any = schema
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return _resolved(schema, target)
    options = [option for option in node.get("anyOf", []) if option.get("type") != "null"]
    return _resolved(schema, options[0]) if options else node
