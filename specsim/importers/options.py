"""Options of another engine: from words of a command line, a shell script, YAML or JSON, by one name each."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specsim.config import read
from specsim.config.nodes import Plain
from specsim.errors import ConfigError, Fault

_NUMBER = re.compile(r"-[0-9.]+")
_DATA_SUFFIXES = (".yaml", ".yml", ".json")
_MAX_SCRIPT_BYTES = 1_000_000


@dataclass(slots=True)
class Imported:
    """A scenario as far as another engine's options say it, and what they leave open."""

    scenario: dict[str, Plain]
    """Keys of a scenario."""
    target: str | None = None
    """The target as the engine names it."""
    draft: str | None = None
    """The draft model as the engine names it; None where there is none."""
    notes: list[str] = field(default_factory=list)
    """What was read otherwise than it looks, or left out."""


class Options:
    """Options by name, in which every fault is gathered, and which knows what nobody asked for.

    Names are those of the engine with underscores, without leading dashes; those of a nested file are
    joined by dots.

    Parameters
    ----------
    values
        Values by name; a flag without a value is True.
    origin
        Where they come from, for messages.
    """

    def __init__(self, values: Mapping[str, Plain], *, origin: str) -> None:
        self._values = dict(values)
        self._asked: set[str] = set()
        self._origin = origin
        self._faults: list[Fault] = []

    def get(self, *names: str) -> Plain:
        """Return the value of the first name that is given, else None; the names are aliases."""
        self._asked.update(names)
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def word(self, *names: str) -> str | None:
        """Return a word, such as the name of a model."""
        value = self.get(*names)
        if value is None or isinstance(value, str):
            return value
        self.fault(names[0], f"{value!r} is not a word")
        return None

    def whole(self, *names: str, least: int = 0) -> int | None:
        """Return a whole number of at least ``least``."""
        value = self.get(*names)
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= least):
            return value
        self.fault(names[0], f"{value!r} is not a whole number of at least {least}")
        return None

    def fraction(self, *names: str) -> float | None:
        """Return a number in [0, 1]."""
        value = self.get(*names)
        try:
            number = None if value is None or isinstance(value, bool) else float(str(value))
        except ValueError:
            number = float("nan")
        if value is None or (number is not None and 0.0 <= number <= 1.0):
            return number
        self.fault(names[0], f"{value!r} is not a number between 0 and 1")
        return None

    def choice(
        self, name: str, words: Mapping[str, str | None], *, aliases: Sequence[str] = ()
    ) -> str | None:
        """Return what a word stands for; one that is not known, or that maps to None, is a fault."""
        given = self.word(name, *aliases)
        if given is None:
            return None
        found = words.get(given.lower(), "")
        if found:
            return found
        hint = f"known: {', '.join(word for word, meaning in words.items() if meaning)}"
        self.fault(name, f"'{given}' has no counterpart in a scenario ({hint})")
        return None

    def fault(self, name: str, message: str) -> None:
        """Add a fault of one option."""
        self._faults.append(Fault(self._origin, None, None, name, message))

    def unread(self) -> list[str]:
        """Return the options that nobody asked for, sorted."""
        return sorted(set(self._values) - self._asked)

    def check(self, *, marks: Sequence[str]) -> None:
        """Raise all faults; an unread option about speculation is one, since it may change the verdict.

        Parameters
        ----------
        marks
            Parts of names that tell an option about speculation.

        Raises
        ------
        ConfigError
            With every fault.
        """
        for name in self.unread():
            if any(mark in name for mark in marks):
                near = difflib.get_close_matches(name, sorted(self._asked), n=1)
                hint = f" (did you mean '{near[0]}'?)" if near else ""
                self.fault(name, f"is not read here{hint}")
        if self._faults:
            raise ConfigError(self._faults)


def read_options(words: Sequence[str]) -> Options:
    """Return the options of a file, or of the words of a command line.

    Parameters
    ----------
    words
        One path of a file (YAML, JSON, or a shell script with the command), or flags.

    Raises
    ------
    ConfigError
        If there is nothing to read, or the file cannot be read.
    """
    if not words:
        raise ConfigError("give a file, or flags after --")
    if len(words) > 1 or words[0].startswith("-"):
        return Options(_flags(words), origin="flags")
    path = Path(words[0])
    if path.suffix in _DATA_SUFFIXES:
        return Options(_flat(read(path).data), origin=str(path))
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_SCRIPT_BYTES + 1).decode("utf-8")
        if len(text) > _MAX_SCRIPT_BYTES:
            raise ConfigError(f"{path}: is larger than {_MAX_SCRIPT_BYTES} bytes")
        return Options(_flags(shlex.split(text.replace("\\\n", " "), comments=True)), origin=str(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: is no command line: {error}".replace("\n", " ")) from error


def _flags(words: Sequence[str]) -> dict[str, Plain]:
    """Options of a command line; words that belong to no flag are the program and its file."""
    values: dict[str, Plain] = {}
    rest = list(words) or [""]
    if rest[0].rpartition("/")[2].startswith("python") and "-m" in rest:
        # What follows names the server's module, not an option of it.
        del rest[: rest.index("-m") + 2]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or _NUMBER.fullmatch(word):
            continue
        name, equals, value = word.partition("=")
        name = name.lstrip("-").replace("-", "_")
        if equals:
            values[name] = value
        elif rest and (not rest[0].startswith("-") or _NUMBER.fullmatch(rest[0])):
            values[name] = rest.pop(0)
        else:
            values[name] = True
    return values


def _flat(data: Mapping[str, Plain], prefix: str = "") -> dict[str, Plain]:
    values: dict[str, Plain] = {}
    for name, value in data.items():
        path = prefix + name.replace("-", "_")
        if isinstance(value, dict) and not path.endswith("schedule"):
            values |= _flat(value, f"{path}.")
        else:
            values[path] = value
    return values
