"""Write docs/reference.md anew from the schemas and the columns: ``python -m docs.make_reference``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from docs.run_blocks import Runner
from specsim.results.metrics import DEFINITIONS
from specsim.results.schema import PROMPTS, REQUESTS, ROUNDS, SCHEMA_VERSION, STEPS, Column

REFERENCE = Path(__file__).parent / "reference.md"

Node: TypeAlias = Mapping[str, Any]

_HEAD = """\
# Reference

Made from the schemas and columns in the code by `python -m docs.make_reference`; a test holds it to them.
Numbers are SI; a string with a unit, such as `3.35 TB/s`, `80 GiB` or `2 ms`, is read as well. The commands
explain themselves: `specsim COMMAND --help`. `specsim schema` prints the same as JSON Schema for editors.
"""

_PLACES = {
    "scenario": "Keys of a scenario. A model or a profile may be a name or a path instead of its fields.",
    "hardware": "Keys of a hardware profile, a block for each cost model (`kind`).",
    "model": "Keys of a model. A Hugging Face `config.json` is read by the same names.",
}

_BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"}


def reference() -> str:
    """Return the page: keys of every input file, columns of every table, definitions of the metrics."""
    lines = [_HEAD]
    seen: set[str] = set()
    # A scenario holds the two others: they come first, so that their blocks stand under their own heading.
    blocks = {subject: list(_blocks(_schema(subject), seen)) for subject in reversed(_PLACES)}
    for subject, text in _PLACES.items():
        lines += [f"## {subject.capitalize()} files\n", f"{text}\n", *blocks[subject]]
    lines.append("## Result tables\n")
    lines.append(
        f"Version {SCHEMA_VERSION} of the columns, in Parquet and in `result.requests`, `result.prompts`, "
        "`result.steps`.\n"
    )
    for name, columns in (("requests", REQUESTS), ("prompts", PROMPTS), ("steps", STEPS), ("rounds", ROUNDS)):
        lines += [f"### {name}\n", _table(("column", "dtype", "unit", "meaning"), map(_column, columns))]
    lines.append("## Metrics in summary.json\n")
    lines.append("Names and units are those of `vllm bench serve` where it has them.\n")
    rows = ((f"`{name}`", meaning) for name, meaning in DEFINITIONS.items())
    lines.append(_table(("metric", "definition"), rows))
    return "\n".join(lines).rstrip() + "\n"


def _schema(subject: str) -> Node:
    schema: Node = json.loads(Runner().run(f"specsim schema {subject}"))
    return schema


def _column(column: Column) -> tuple[str, str, str, str]:
    return f"`{column.name}`", column.dtype, column.unit, column.meaning


def _blocks(schema: Node, seen: set[str]) -> Iterator[str]:
    """Yield a table for the schema itself, then for each definition, in the order of first mention.

    Definitions already seen, of an earlier file, are not repeated.
    """
    definitions: Mapping[str, Node] = schema.get("$defs", {})
    waiting = list(_mentioned({key: value for key, value in schema.items() if key != "$defs"}))
    if "properties" in schema:
        yield from _block(str(schema["title"]), schema, definitions, seen)
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        yield from _block(name, definitions[name], definitions, seen)
        waiting += _mentioned(definitions[name])


def _block(name: str, node: Node, definitions: Mapping[str, Node], seen: set[str]) -> Iterator[str]:
    if name in seen or "properties" not in node:
        return
    seen.add(name)
    yield f"### {name}\n"
    yield _plain(node.get("description", "")) + "\n"
    required = set(node.get("required", ()))
    rows = (
        (f"`{key}`", _type(value), _default(key, value, required), _meaning(value, definitions))
        for key, value in node["properties"].items()
    )
    yield _table(("key", "value", "default", "meaning"), rows)


def _meaning(node: Node, definitions: Mapping[str, Node]) -> str:
    """Return the description of a key, or of the block that it holds."""
    if "description" in node or "$ref" not in node:
        return _plain(node.get("description", ""))
    return _plain(definitions[_name(node["$ref"])].get("description", ""))


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _plain(text: str) -> str:
    """Return the first paragraph of a docstring on one line, its code marked as Markdown does."""
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")


def _type(node: Node) -> str:
    if "$ref" in node:
        return _link(node["$ref"])
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if options:
        return " or ".join(dict.fromkeys(_type(option) for option in options))
    bounds = ", ".join(text.format(f"{node[key]:g}") for key, text in _BOUNDS.items() if key in node)
    if node.get("type") == "array":
        items = node.get("items") or {}
        return f"list of {_type(items)}" if items else "list"
    if node.get("type") == "object":
        values = node.get("additionalProperties")
        return f"mapping to {_type(values)}" if isinstance(values, Mapping) else "mapping"
    return f"{node.get('type', 'anything')} {bounds}".strip()


def _default(key: str, node: Node, required: set[str]) -> str:
    if key in required:
        return "required"
    value = node.get("default")
    return "" if value is None or isinstance(value, dict) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _link(reference: str) -> str:
    name = _name(reference)
    return f"[{name}](#{name.lower()})"


def _mentioned(node: object) -> Iterator[str]:
    """Yield the names of all definitions that a schema refers to."""
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield _name(node["$ref"])
        for key, value in node.items():
            if key != "discriminator":
                yield from _mentioned(value)
    elif isinstance(node, list):
        for value in node:
            yield from _mentioned(value)


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(titles)
    lines = [titles, ["---"] * len(titles), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped) + "\n"


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8")
