"""An axis of a sweep: one key of the scenario, and the values that it takes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from specsim.config import Document, expand
from specsim.config.nodes import Node, Place, Scalar, plain
from specsim.errors import ConfigError
from specsim.scenario import REFERENCES
from specsim.units import scale_of, si_value

Label: TypeAlias = bool | int | float | str | None
"""What a value is called in a table."""
Spacing: TypeAlias = Literal["lin", "log"]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an axis: what it is called, and what is put into the scenario."""

    label: Label
    node: Node | None
    """None leaves the scenario's own value."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range that can be sampled anywhere between its ends."""

    low: float
    high: float
    spacing: Spacing
    is_whole: bool
    """Only whole numbers."""
    unit: str = ""
    """Unit in which it was given; its numbers here are SI."""

    def at(self, fraction: float) -> float:
        """Return the number at a fraction of the way, in [0, 1]; on a linear axis whole numbers share alike.

        Examples
        --------
        >>> round(Span(1.0, 100.0, "log", False).at(0.5), 6)
        10.0
        """
        low, high = (self.low, self.high + 1) if self.is_whole else (self.low, self.high)
        is_log = self.spacing == "log"
        number = low * math.exp(fraction * math.log(high / low)) if is_log else low + fraction * (high - low)
        return min(math.floor(number) if self.is_whole else number, self.high)

    def named(self, number: float) -> int | float:
        """Return a number as it is called in a table: rounded if whole."""
        return round(number) if self.is_whole else float(number)

    def written(self, number: float) -> int | float | str:
        """Return a number as it is put into a scenario: with the unit of the range, as it was given."""
        scale = scale_of(self.unit)
        return self.named(number) if scale is None else f"{number / scale!r} {self.unit}"


@dataclass(frozen=True, slots=True)
class Axis:
    """One key and what it is varied over: listed values, a range, or both."""

    key: str
    values: tuple[Value, ...]
    """The listed values; none for a range without a number of values."""
    span: Span | None
    place: Place
    """Where it was given, for messages."""

    @property
    def is_log(self) -> bool:
        """The values have equal ratios rather than equal steps."""
        return self.span is not None and self.span.spacing == "log"

    def listed(self) -> tuple[Value, ...]:
        """Return the values one by one.

        Raises
        ------
        ConfigError
            For a range that says no number of values.
        """
        if not self.values:
            message = "a range without a number of values; give one, as in 1e12..8e12:log:8, or sample it"
            raise ConfigError([self.place.fault(self.key, message)])
        return self.values

    def at(self, fraction: float) -> Value:
        """Return the value at a fraction in [0, 1]: of the range, or of the list in equal shares."""
        if self.span is None:
            return self.values[min(int(fraction * len(self.values)), len(self.values) - 1)]
        return self.number(self.span.at(fraction))

    def numeric(self, value: Value) -> float | None:
        """Return a value as a number, in its SI unit if it has one; None if it is none."""
        label = value.label
        is_number = isinstance(label, (int, float)) and not isinstance(label, bool)
        return float(label) if is_number else None  # type: ignore[arg-type]

    def number(self, number: float) -> Value:
        """Return a number as a value of this axis."""
        if self.span is None:
            return Value(number, Scalar(number, self.place))
        return Value(self.span.named(number), Scalar(self.span.written(number), self.place))


def label_of(node: Node) -> Label:
    """Return what a value is called in a table: a quantity in its SI unit, itself, or JSON for several."""
    if not isinstance(node, Scalar):
        return json.dumps(plain(node))
    quantity = si_value(node.value) if isinstance(node.value, str) else None
    return node.value if quantity is None else quantity


def with_files(axis: Axis, document: Document) -> Axis:
    """Return an axis whose values that name a file hold what is in the file, read once.

    Raises
    ------
    ConfigError
        For names that stand for no file.
    """
    if axis.key not in REFERENCES:
        return axis
    kind = {axis.key: REFERENCES[axis.key]}
    read = []
    for value in axis.values:
        assert value.node is not None
        node = expand(document.put(axis.key, value.node, key_place=axis.place), kind).get(axis.key)
        read.append(replace(value, node=node))
    return replace(axis, values=tuple(read))
