"""Scenarios from files, with the files that they name and settings put over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from specsim.config import Document, find, from_data, parse, read, validate
from specsim.config.catalog import KEPT, Kind, expand_found
from specsim.config.nodes import Items, Node, Scalar
from specsim.config.validate import sort_faults
from specsim.errors import ConfigError, Fault
from specsim.scenario.flag_sources import with_flags_as_sources
from specsim.scenario.ridge import settled
from specsim.scenario.scenario import Scenario
from specsim.scenario.settings import checked_settings, with_setting
from specsim.scenario.stale_fit import without_stale_fit

REFERENCES: dict[str, Kind] = {
    "target.model": "models",
    "speculative_config.model": "models",
    "hardware.target": "hardware_profiles",
    "hardware.draft": "hardware_profiles",
}
"""Keys whose value may be the name or path of another file, and the catalogue it is looked up in."""


def load_scenario(source: str | Path | Mapping[str, object], *, overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario by name, path or YAML text, or from its keys and values.

    Parameters
    ----------
    source
        Name of a shipped scenario, path of a file, YAML text (more than one line), or a mapping of what
        would stand in the file.
    overrides
        Settings such as ``workload.num_prompts=8`` or ``K=2``, applied in order.

    Raises
    ------
    ConfigError
        Every fault of the scenario and of the files that it names.

    Examples
    --------
    >>> load_scenario("two_token_example").num_speculative_tokens
    4
    """
    return scenario_of(document_of(source), overrides=overrides)


def placed_faults(error: ConfigError, source: str | Path, *, overrides: Sequence[str] = ()) -> ConfigError:
    """Return an error that came up after a scenario was loaded, with its faults placed where the keys are."""
    document = document_of(source)
    for setting in overrides:
        document = with_setting(document, setting)
    return document.placed(error)


def document_of(source: str | Path | Mapping[str, object]) -> Document:
    """Return a scenario as it stands in its file, given its name, its path, its text or its data.

    Raises
    ------
    ConfigError
        Where the source is none of these, or what it names cannot be read.
    """
    if isinstance(source, Mapping):
        return from_data(source, name="scenario")
    if not isinstance(source, (str, Path)):
        given = type(source).__name__
        raise ConfigError(f"a scenario is given by its name, path, YAML text or a mapping, not by a {given}")
    if isinstance(source, str) and "\n" in source:
        return parse(source)
    return read(find("scenarios", str(source)))


def with_settings(document: Document, settings: Sequence[str]) -> tuple[Document, list[Fault]]:
    """Return a document with its files read in and settings put over it in order, and names without a file.

    A setting may name a file (``hardware.target=rtx-4090``) or change a figure inside a named one
    (``hardware.target.memory.bandwidth_bytes_per_s=4e12``).

    Raises
    ------
    ConfigError
        Where a setting is not one, or its path leads nowhere.
    """
    document, faults = expand_found(document, REFERENCES)
    for setting in checked_settings(settings):
        document, faults = expand_found(with_setting(document, setting), REFERENCES)
    return document, faults


def scenario_of(document: Document, *, overrides: Sequence[str] = ()) -> Scenario:
    """Validate a document as a scenario, with the files that it names and settings put over it.

    Raises
    ------
    ConfigError
        Every fault of the document, of the settings and of the files.
    """
    document, faults = with_settings(document, overrides)
    document = completed(document)
    if not faults:
        return validate(Scenario, document)
    # The rest is checked all the same, so that all faults come at once; a name whose file is missing or
    # cannot be read is not reported again as a wrong type.
    names = {path for path in REFERENCES if _is_name(document.get(path))}
    try:
        validate(Scenario, document)
    except ConfigError as error:
        faults += [fault for fault in error.faults if fault.path not in names]
    raise ConfigError(sort_faults(faults))


def completed(document: Document) -> Document:
    """Return a document with what its parts say of each other: paths of traces, fits, sources, peaks.

    Parameters
    ----------
    document
        With the files that it names, and settings put over it.
    """
    return settled(with_flags_as_sources(without_stale_fit(_with_found_traces(document))))


def _is_name(node: Node | None) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str) and node.value not in KEPT


def _with_found_traces(document: Document) -> Document:
    """Return the document with traces that lie beside its file named by their full path."""
    folder = Path(document.file).parent
    if not Path(document.file).is_file():
        return document
    classes = document.get("workload.classes")
    count = len(classes.items) if isinstance(classes, Items) else 0
    for owner in ("distributions", *(f"workload.classes.{number}.distributions" for number in range(count))):
        node = document.get(f"{owner}.path")
        if isinstance(node, Scalar) and isinstance(node.value, str) and (folder / node.value).is_file():
            found = Scalar(str((folder / node.value).resolve()), node.place)
            document = document.put(f"{owner}.path", found)
    return document
