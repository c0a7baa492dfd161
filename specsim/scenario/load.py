"""Scenarios from files, with the files that they name and settings put over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specsim.config import Document, find, override, parse, read, validate
from specsim.config.catalog import KEPT, Kind, expand_found
from specsim.config.nodes import Items, Node, Scalar
from specsim.config.validate import sort_faults
from specsim.errors import ConfigError
from specsim.scenario.ridge import settled
from specsim.scenario.scenario import Scenario
from specsim.scenario.stale_fit import without_stale_fit

REFERENCES: dict[str, Kind] = {
    "target.model": "models",
    "speculative_config.model": "models",
    "hardware.target": "hardware_profiles",
    "hardware.draft": "hardware_profiles",
}
"""Keys whose value may be the name or path of another file, and the catalogue it is looked up in."""


def load_scenario(source: str | Path, *, overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario by name, path or YAML text.

    Parameters
    ----------
    source
        Name of a shipped scenario, path of a file, or YAML text (more than one line).
    overrides
        Settings such as ``workload.num_prompts=8``, applied in order.

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
    return override(document_of(source), overrides).placed(error)


def document_of(source: str | Path) -> Document:
    """Return a scenario as it stands in its file, given its name, its path, or its text of several lines."""
    if isinstance(source, str) and "\n" in source:
        return parse(source)
    return read(find("scenarios", str(source)))


def scenario_of(document: Document, *, overrides: Sequence[str] = ()) -> Scenario:
    """Validate a document as a scenario, with the files that it names and settings put over it.

    A setting may name a file (``hardware.target=rtx-4090``) or change a figure inside a named one
    (``hardware.target.memory.bandwidth_bytes_per_s=4e12``).
    """
    document, faults = expand_found(document, REFERENCES)
    for setting in overrides:
        document, faults = expand_found(override(document, [setting]), REFERENCES)
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
    """Return a document with what its parts say of each other: paths of traces, fits that hold, peaks.

    Parameters
    ----------
    document
        With the files that it names, and settings put over it.
    """
    return settled(without_stale_fit(_with_found_traces(document)))


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
