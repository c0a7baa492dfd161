"""Kinds that others may add: a spec with a ``kind`` and a ``build`` method, under a name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Annotated, TypeVar, Union, get_args

from pydantic import BaseModel, Field

from specsim.errors import ConfigError

S = TypeVar("S", bound=BaseModel)


class Registry:
    """Specs of one seam by kind: built-ins by decorator, others by entry point.

    Parameters
    ----------
    noun
        What one entry is called in messages, such as ``"lookahead policy"``.
    group
        The entry-point group that other packages register their specs under.
    """

    def __init__(self, noun: str, *, group: str) -> None:
        self.noun = noun
        self.group = group
        self._specs: dict[str, type[BaseModel]] = {}
        self._is_complete = False

    def register(self, spec: type[S]) -> type[S]:
        """Class decorator: enter a spec under the value of its ``kind: Literal[...]`` field."""
        (kind,) = get_args(spec.model_fields["kind"].annotation)
        if self._specs.get(kind, spec) is not spec:
            raise ConfigError(f"{self.noun} '{kind}' is registered twice")
        self._specs[kind] = spec
        return spec

    def kinds(self) -> tuple[str, ...]:
        """All kinds, sorted."""
        return tuple(sorted(self._load()))

    def __iter__(self) -> Iterator[tuple[str, type[BaseModel]]]:
        """Iterate over (kind, spec), sorted by kind."""
        return iter(sorted(self._load().items()))

    def __getitem__(self, kind: str) -> type[BaseModel]:
        """Return the spec of a kind; an unknown one is a ConfigError that names the nearest."""
        specs = self._load()
        if kind in specs:
            return specs[kind]
        near = difflib.get_close_matches(kind, specs, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(specs))}"
        raise ConfigError(f"no {self.noun} '{kind}'; {hint}")

    def union(self) -> object:
        """Return the discriminated union of all specs, to be used as a field's type."""
        specs = tuple(spec for _, spec in self)
        if len(specs) == 1:
            return specs[0]
        return Annotated[Union[specs], Field(discriminator="kind")]  # noqa: UP007 - not known before it runs

    def _load(self) -> dict[str, type[BaseModel]]:
        if not self._is_complete:
            self._is_complete = True
            for entry in entry_points(group=self.group):
                loader: Callable[[], type[BaseModel]] = entry.load
                self.register(loader())
        return self._specs
