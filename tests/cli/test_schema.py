"""``specsim schema``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import exit_code


@pytest.mark.parametrize("subject", ["scenario", "hardware", "model"])
def test_schema_is_written_as_it_is_printed(
    subject: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("schema", subject) == 0
    printed = capsys.readouterr().out
    assert exit_code("schema", subject, "-o", str(tmp_path / "schema.json")) == 0
    assert (tmp_path / "schema.json").read_text() == printed
    assert json.loads(printed)["$schema"].startswith("https://json-schema.org/")


def test_schema_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("schema", "model", "-o", str(tmp_path)) == 2
    assert capsys.readouterr().err == f"{tmp_path}: cannot be written: Is a directory\n"


def _resolve(schema: dict[str, object], node: object) -> dict[str, object]:
    assert isinstance(node, dict)
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]  # type: ignore[index]
    return node


def test_schema_of_a_scenario_takes_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    for block, key in (("target", "model"), ("hardware", "target"), ("hardware", "draft")):
        field = _resolve(schema, schema["properties"][block])["properties"][key]  # type: ignore[index]
        assert {"type": "string"} in field["anyOf"]
