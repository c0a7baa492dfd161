"""Where each figure of a profile comes from, and whether it is more than a guess."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from pydantic import Field

from specsim.config.base import Spec

Tag: TypeAlias = Literal["read", "derived", "measured", "given", "estimated", "prior"]
"""read in the source; derived: computed or fitted from it; measured: by us; given: by whoever runs it, with
a flag; estimated, prior: a guess."""

_GUESSES: tuple[Tag, ...] = ("estimated", "prior")


class Source(Spec):
    """Source of one figure, or of all figures below one key."""

    source: str = Field(min_length=1)
    """Who published it and where."""
    tag: Tag
    """How the figure came from there."""


class FittedOn(Spec):
    """What a calibrated profile was fitted on."""

    data: str = Field(min_length=1)
    """The measurements."""
    fits_time: bool = True
    """Step times are fitted; else only watts are, and step times are those of the datasheet profile."""
    held_out_error: float = Field(ge=0)
    """Mean absolute relative error of step time on rows left out of the fit; on all where not fitted."""
    num_rows: int | None = Field(default=None, ge=1)
    """Rows of the fit."""
    date: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}$")
    """Day of the fit, ISO 8601."""
    form: str | None = None
    """Form of the law that cross-validation chose, in words."""
    standard_errors: Mapping[str, float] = Field(default_factory=dict)
    """Standard errors of fitted figures by their dotted path, in the figure's unit."""
    not_identified: tuple[str, ...] = ()
    """Figures that the measurements could not tell, by their dotted path; they keep the prior's value."""
    num_positions: tuple[int, int] | None = None
    """Least and most positions of the measured steps; the law is not checked outside."""
    context_tokens: tuple[int, int] | None = None
    """Least and most cached tokens of a sequence in the measured steps."""
    held_out_power_error: float | None = Field(default=None, ge=0)
    """Mean absolute relative error of power on rows left out of the fit; left out: power is not fitted."""


Sources: TypeAlias = Mapping[str, Source]
"""Sources by the dotted path of a figure, such as ``power.cap_w``; ``power`` covers all below it."""


def source_of(provenance: Sources, path: str) -> Source | None:
    """Return the source of a figure: its own, or that of the nearest key above it.

    Examples
    --------
    >>> source_of({"power": Source(source="datasheet", tag="read")}, "power.cap_w").tag
    'read'
    """
    while path:
        if path in provenance:
            return provenance[path]
        path = path.rpartition(".")[0]
    return None


def is_guess(source: Source | None) -> bool:
    """Tell whether a figure is a guess: tagged so, or without a source."""
    return source is None or source.tag in _GUESSES


def figures(values: Mapping[str, object], *, under: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a profile, as the file gives them, by dotted path; list items are numbered.

    Examples
    --------
    >>> dict(figures({"power": {"cap_w": 700}, "name": "x"}))
    {'power.cap_w': 700.0}
    """
    for key, value in values.items():
        yield from _figures_in(value, f"{under}{key}")


def _figures_in(value: object, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        yield from figures(value, under=f"{path}.")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _figures_in(item, f"{path}.{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, float(value)
