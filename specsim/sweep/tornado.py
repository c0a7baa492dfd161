"""Tornado: one key at a time to each end of its range, all others as the scenario has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specsim.errors import DomainError
from specsim.scenario import Scenario
from specsim.sweep.axes import Axis, Label, Value
from specsim.sweep.design import Point

LEFT_OUT = "left out"
"""What a key that the scenario lacks is called where it is varied."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What one key does to a figure between the ends of its range."""

    key: str
    low_label: Label
    high_label: Label
    at_low: float | None
    """The figure at the lower end; None where that point failed."""
    at_high: float | None

    @property
    def swing(self) -> float:
        """How far apart the ends are, 0 where one failed."""
        return 0.0 if self.at_low is None or self.at_high is None else abs(self.at_high - self.at_low)

    @property
    def crosses_one(self) -> bool:
        """The ends lie on both sides of 1: for a speed-up, this key alone turns the verdict."""
        ends = (self.at_low, self.at_high)
        return any(end is not None and end < 1.0 for end in ends) and any(
            end is not None and end > 1.0 for end in ends
        )


def tornado_points(axes: Sequence[Axis], scenario: Scenario) -> list[Point]:
    """Return the scenario as it is, then the lower and the upper end of each axis in turn."""
    dump = scenario.model_dump(mode="json")
    own = [Value(_at(dump, axis.key), None) for axis in axes]
    points = [Point(0, tuple(own))]
    for index, axis in enumerate(axes):
        for end in (0.0, 1.0):
            values = [*own[:index], axis.at(end), *own[index + 1 :]]
            points.append(Point(len(points), tuple(values)))
    return points


def tornado_bars(points: Sequence[Point], values: Sequence[float | None], keys: Sequence[str]) -> list[Bar]:
    """Return the bars, widest first.

    Parameters
    ----------
    points
        Those of `tornado_points`.
    values
        The figure at each point.
    keys
        The axes.

    Raises
    ------
    DomainError
        If the scenario itself has no figure.
    """
    if values[0] is None:
        raise DomainError("the scenario itself has no such figure, so there is nothing to compare with")
    bars = [
        Bar(
            key,
            points[1 + 2 * index].labels[index],
            points[2 + 2 * index].labels[index],
            values[1 + 2 * index],
            values[2 + 2 * index],
        )
        for index, key in enumerate(keys)
    ]
    return sorted(bars, key=lambda bar: -bar.swing)


def _at(dump: Mapping[str, object], key: str) -> Label:
    """Return what the scenario's own value at a key is called in a table."""
    value: object = dump
    for step in key.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return LEFT_OUT
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return str(value["name"])
    if value is None:
        return LEFT_OUT
    return value if isinstance(value, (bool, int, float, str)) else json.dumps(value)
