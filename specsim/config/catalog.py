"""Where named files are found: beside the file that names them, in ``$SPECSIM_PATH``, or shipped."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from specsim.config.document import read
from specsim.config.nodes import Document, Scalar, shortened
from specsim.config.validate import nearest, sort_faults
from specsim.errors import ConfigError, Fault

Kind: TypeAlias = Literal["hardware_profiles", "scenarios", "models"]
"""What a name may stand for; also the name of the folder that holds such files."""

KEPT = frozenset({"target"})
"""Words that stand in the place of a name and are not one."""

_NOUNS: Mapping[Kind, str] = {
    "hardware_profiles": "accelerator profile",
    "scenarios": "scenario",
    "models": "model",
}
_SUFFIXES = (".yaml", ".yml", ".json")
_PACKAGE = Path(__file__).parents[1]


def find(kind: Kind, name: str, *, beside: Path | None = None) -> Path:
    """Return the file that a name or path stands for.

    A path (with a separator, or ending in .yaml, .yml or .json) is looked up beside the file that names
    it, then from the working folder. A bare name is looked up as ``name.yaml`` beside that file, in each
    folder of ``$SPECSIM_PATH`` and among the shipped files. A bare accelerator profile means its
    calibrated file ``name.fitted.yaml`` where one stands beside ``name.yaml``; ``name.datasheet`` means
    the plain one.

    Parameters
    ----------
    kind
        What is looked for.
    name
        Name or path.
    beside
        Folder of the file that names it.

    Raises
    ------
    ConfigError
        Where there is no such file; the message names the nearest and the folders that were searched.

    Examples
    --------
    >>> find("scenarios", "./no/such.yaml")
    Traceback (most recent call last):
    specsim.errors.ConfigError: no scenario './no/such.yaml' (searched: .)
    """
    if os.sep in name or name.endswith(_SUFFIXES):
        folders = [folder for folder in (beside, Path()) if folder is not None]
        candidates = [folder / name for folder in folders]
    else:
        folders = [*([beside] if beside is not None else []), *_folders(kind)]
        candidates = [folder / file for folder in folders for file in _files(kind, name)]
        # On the command line a name may also be a file as it is, whatever it ends in.
        candidates += [Path(name)] if beside is None and name else []
    found = next((candidate for candidate in candidates if _exists(candidate)), None)
    if found is None:
        near = _alike(name, names(kind))
        hint = f"; did you mean '{near}'?" if near else ""
        searched = ", ".join(dict.fromkeys(_shown(folder) for folder in folders))
        raise ConfigError(f"no {_NOUNS[kind]} '{shortened(name)}'{hint} (searched: {searched})")
    return found


def _alike(name: str, known: Collection[str]) -> str | None:
    """Return the known name that a given one begins or goes on, else the one spelt most like it."""
    given = name.rsplit("/", 1)[-1].lower()
    shorter = [one for one in known if given.startswith(one)]
    longer = [one for one in known if given and one.startswith(given)]
    return max(shorter, key=len, default=None) or next(iter(longer), None) or nearest(name, known)


def names(kind: Kind) -> tuple[str, ...]:
    """Return all bare names of a kind in ``$SPECSIM_PATH`` and among the shipped files, sorted."""
    stems = {path.stem for folder in _folders(kind) for path in folder.glob("*.yaml")}
    return tuple(sorted({stem.removesuffix(".fitted") for stem in stems}))


def expand(document: Document, references: Mapping[str, Kind], *, kept: Collection[str] = KEPT) -> Document:
    """Return a document in which names at the given dotted paths are replaced by the files they stand for.

    What comes from a file keeps its place there, so that a fault points into it, and a setting put over
    the result changes one figure of a named profile. ``Document.references`` tells which file each is.

    Raises
    ------
    ConfigError
        All names that stand for no file, and all files that cannot be read.
    """
    document, faults = expand_found(document, references, kept=kept)
    if faults:
        raise ConfigError(faults)
    return document


def expand_found(
    document: Document, references: Mapping[str, Kind], *, kept: Collection[str] = KEPT
) -> tuple[Document, list[Fault]]:
    """Return what `expand` does, with names that stand for no file left in place, and their faults."""
    folder = Path(document.file).parent if Path(document.file).exists() else None
    faults: list[Fault] = []
    for path, kind in references.items():
        node = document.get(path)
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or node.value in kept:
            continue
        try:
            file = find(kind, node.value, beside=folder)
        except ConfigError as error:
            faults += [node.place.fault(path, fault.message) for fault in error.faults]
            continue
        try:
            part = read(file)
        except ConfigError as error:
            # Where the whole file is at fault, the reader is told what names it.
            faults += [fault if fault.line else node.place.fault(path, str(fault)) for fault in error.faults]
            continue
        # The name is the place of the whole; what is inside keeps its place in the file.
        document = document.put(path, part.root, key_place=node.place)
        document = replace(document, references={**document.references, path: file})
    return document, sort_faults(faults)


def _files(kind: Kind, name: str) -> tuple[str, ...]:
    if kind != "hardware_profiles":
        return (f"{name}.yaml",)
    if name.endswith(".datasheet"):
        return (f"{name.removesuffix('.datasheet')}.yaml",)
    return (f"{name}.fitted.yaml", f"{name}.yaml")


def _folders(kind: Kind) -> Iterator[Path]:
    for entry in os.environ.get("SPECSIM_PATH", "").split(os.pathsep):
        if entry:
            yield Path(entry) / kind if (Path(entry) / kind).is_dir() else Path(entry)
    yield _shipped(kind)


def _shipped(kind: Kind) -> Path:
    """Return the folder of shipped files: inside the package in a wheel, beside it in a checkout."""
    if kind == "models":
        return _PACKAGE / "hardware" / "presets"
    inside = _PACKAGE / "_shipped" / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _shown(folder: Path) -> str:
    """Return a folder as short as it can be named: shipped ones by their own name."""
    if folder.is_relative_to(_PACKAGE.parent):
        return f"{folder.relative_to(_PACKAGE.parent).as_posix()}/"
    return folder.as_posix()
