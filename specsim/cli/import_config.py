"""``specsim import-config``: another engine's flags or files into a scenario."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specsim.config.nodes import Plain
    from specsim.importers import Imported


class Engine(StrEnum):
    """Whose configuration it is."""

    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    TRANSFORMERS = "transformers"
    LLAMA_CPP = "llama.cpp"


_WORKLOAD = {"num_prompts": 64, "max_concurrency": 1, "prompt_tokens": 512, "output_tokens": 256}
"""Requests of an imported scenario: no engine's configuration says them."""


def import_config(
    engine: Annotated[Engine, typer.Option("--from", help="Whose configuration it is.")],
    source: Annotated[
        list[str], typer.Argument(help="A file (YAML, JSON, shell script), or flags after --.")
    ],
    hardware: Annotated[str, typer.Option(help="Accelerator profile: a name or a file.")],
    target: Annotated[
        str | None, typer.Option(help="Shape of the target, where its name is no preset's.")
    ] = None,
    draft: Annotated[
        str | None, typer.Option(help="Shape of the draft, where its name is no preset's.")
    ] = None,
    acceptance_rate: Annotated[
        float | None, typer.Option(help="One acceptance rate for every draft token, 0 to 1.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Recorded trace that acceptance comes from.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the scenario.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write instead of printing.")
    ] = None,
) -> None:
    """Turn flags or files of SGLang, TensorRT-LLM, transformers or llama.cpp into a scenario.

    What is read otherwise than it looks stands in the comments at the top.
    """
    from specsim.config import parse
    from specsim.importers import IMPORTERS, read_options
    from specsim.scenario import scenario_of
    from specsim.writing import write_faults

    options = read_options(source)
    imported = IMPORTERS[engine.value](options)
    keys = _complete(imported, hardware=hardware, target=target, draft=draft)
    keys["name"] = f"{engine.value}-import".replace(".", "-")
    if "speculative_config" in keys:
        keys["distributions"] = _distributions(acceptance_rate, trace)
    unread = options.unread()
    if unread:
        imported.notes.append(f"not read, without effect on a simulation: {', '.join(unread)}")
    text = _text(imported.notes, keys, settings or [])
    scenario_of(parse(text, file="imported scenario"))
    if output is None:
        typer.echo(text, nl=False)
        return
    with write_faults(output):
        output.write_text(text, encoding="utf-8")


def _complete(
    imported: Imported, *, hardware: str, target: str | None, draft: str | None
) -> dict[str, Plain]:
    """Return the scenario's keys without those that are not given, with its models and device."""
    keys: dict[str, Plain] = {}
    for name, block in imported.scenario.items():
        assert isinstance(block, dict)
        given: dict[str, Plain] = {key: value for key, value in block.items() if value is not None}
        if given:
            keys[name] = given
    keys["target"] = {"model": _model("target", imported.target, target, imported), **_block(keys, "target")}
    if "speculative_config" in keys:
        config = _block(keys, "speculative_config")
        if config.get("method") != "ngram":
            config = {"model": _model("draft", imported.draft, draft, imported), **config}
        keys["speculative_config"] = config
    keys["hardware"] = {"target": hardware, "draft": "target"}
    keys["workload"] = {**_WORKLOAD, **_block(keys, "workload")}
    imported.notes.append("workload: the engine's configuration says nothing of requests; change it to yours")
    return keys


def _block(keys: dict[str, Plain], name: str) -> dict[str, Plain]:
    block = keys.get(name, {})
    assert isinstance(block, dict)
    return block


def _model(role: str, given: str | None, named: str | None, imported: Imported) -> str:
    """Return a preset's name or a path for a model: as the user named it, or as the engine's name tells.

    Raises
    ------
    ConfigError
        If neither is known.
    """
    from specsim.config import names
    from specsim.errors import ConfigError

    if named is not None:
        return named
    if given is None:
        raise ConfigError(f"no {role} model is named: give --{role} (a preset, or a config.json)")
    folder = Path(given)
    if folder.is_dir() and (folder / "config.json").is_file():
        return str((folder / "config.json").resolve())
    plain = folder.name.lower().removesuffix(".gguf").removeprefix("meta-")
    found = [name for name in names("models") if plain == name or plain.startswith((f"{name}-", f"{name}."))]
    if not found:
        raise ConfigError(f"no shape is known of '{given}': give --{role} (a preset, or a config.json)")
    best = max(found, key=len)
    imported.notes.append(f"{role}: '{given}' is taken for the preset {best}")
    return best


def _distributions(acceptance_rate: float | None, trace: Path | None) -> dict[str, Plain]:
    from specsim.errors import ConfigError

    if (acceptance_rate is None) == (trace is None):
        raise ConfigError(
            "say where acceptance comes from, with one of --acceptance-rate and --trace: no engine's"
            " configuration says it"
        )
    if trace is not None:
        return {"kind": "trace", "path": str(trace.resolve())}
    return {"kind": "rates", "acceptance_rate": acceptance_rate}


_ORDER = (
    "name",
    "target",
    "speculative_config",
    "lookahead",
    "distributions",
    "hardware",
    "workload",
    "scheduler",
)


def _text(notes: list[str], keys: dict[str, Plain], settings: list[str]) -> str:
    """Return the scenario as YAML, the notes as comments above it."""
    import json

    from specsim.config import parse
    from specsim.results.writer import config_yaml
    from specsim.scenario.settings import with_setting

    ordered = {name: keys[name] for name in _ORDER if name in keys}
    document = parse(json.dumps(ordered), file="imported scenario")
    for setting in settings:
        document = with_setting(document, setting)
    comments = "".join(f"# {' '.join(note.split())}\n" for note in notes)
    return comments + config_yaml(document.data)
