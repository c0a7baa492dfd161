"""Break-even: where a ratio crosses 1 along an axis, for every combination of the other axes.

A speed-up need not fall steadily with the batch, so every change of sign between neighbours on the axis
is a crossing of its own. Each is narrowed by bisection with further runs: to neighbouring whole numbers,
or to `TOLERANCE` of its place. Its interval inverts the test of every place: all places around it whose
95 % interval contains 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from specsim.errors import ConfigError
from specsim.sweep.axes import Axis, Label
from specsim.sweep.design import Point
from specsim.sweep.plan import SweepPlan

TOLERANCE = 0.01
"""How narrow a crossing is bracketed, relative to its place, on an axis that is not of whole numbers."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A ratio at one place of the axis, with its interval where it has one."""

    place: float
    mean: float
    low: float | None
    high: float | None


Lines: TypeAlias = dict[tuple[Label, ...], list[CurvePoint]]
"""Points along the first axis, by the labels of the other axes."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """One place where a ratio crosses 1."""

    place: float
    low: float | None
    """Lower end of the interval; None where it is beyond the range varied, or there is no interval."""
    high: float | None
    gains: str
    """On which side the ratio is above 1: ``below`` or ``above`` the place."""


def crossings(points: Sequence[CurvePoint], *, is_log: bool = False) -> list[Crossing]:
    """Return all crossings of 1 along an axis, interpolating between neighbouring places.

    Parameters
    ----------
    points
        In the order of their places.
    is_log
        Interpolate in the logarithm of the place.

    Examples
    --------
    >>> line = [CurvePoint(x, y, y - 0.1, y + 0.1) for x, y in ((1.0, 1.4), (2.0, 1.2), (4.0, 0.8))]
    >>> [(round(c.place, 6), round(c.low, 6), round(c.high, 6), c.gains) for c in crossings(line)]
    [(3.0, 2.5, 3.5, 'below')]
    """
    place = [math.log(point.place) if is_log else point.place for point in points]
    back = math.exp if is_log else float
    found = []
    for index in _sign_changes(points):
        at = _root(place, [point.mean for point in points], index)
        low, high = _interval(place, points, index)
        found.append(
            Crossing(
                place=back(at),
                low=None if low is None else back(min(low, at)),
                high=None if high is None else back(max(high, at)),
                gains="below" if points[index].mean >= 1.0 else "above",
            )
        )
    return found


def _sign_changes(points: Sequence[CurvePoint]) -> Iterator[int]:
    """Yield the index before each change between gain (1 counts as one) and loss."""
    for index in range(len(points) - 1):
        if (points[index].mean >= 1.0) != (points[index + 1].mean >= 1.0):
            yield index


def _root(place: Sequence[float], value: Sequence[float], index: int) -> float:
    """Return where the line from one place to the next is 1."""
    before, after = value[index] - 1.0, value[index + 1] - 1.0
    return place[index] + (place[index + 1] - place[index]) * before / (before - after)


def _interval(
    place: Sequence[float], points: Sequence[CurvePoint], index: int
) -> tuple[float | None, float | None]:
    """Return the ends of the places around a crossing at which the interval contains 1."""
    lows = [point.low for point in points if point.low is not None]
    highs = [point.high for point in points if point.high is not None]
    if len(lows) < len(points) or len(highs) < len(points):
        return None, None
    # On the side that gains, the lower limit falls to 1; on the side that loses, the upper one rises to it.
    gains_below = points[index].mean >= 1.0
    left, right = (lows, highs) if gains_below else (highs, lows)

    def leaves(limits: list[float], at: int, *, gaining: bool) -> bool:
        return limits[at] > 1.0 if gaining else limits[at] < 1.0

    start = next((i for i in range(index, -1, -1) if leaves(left, i, gaining=gains_below)), None)
    end = next((i for i in range(index + 1, len(place)) if leaves(right, i, gaining=not gains_below)), None)
    return (
        None if start is None else _root(place, left, start),
        None if end is None else _root(place, right, end - 1),
    )


def check_axis(axis: Axis) -> None:
    """Refuse an axis along which nothing can be bracketed.

    Raises
    ------
    ConfigError
        If it has fewer than two values, or they are not numbers in ascending order.
    """
    numbers = [axis.numeric(value) for value in axis.listed()]
    places = [number for number in numbers if number is not None]
    if len(places) < len(numbers) or len(places) < 2 or sorted(set(places)) != places:
        message = "break-even needs at least two ascending numbers on the first axis varied"
        raise ConfigError([axis.place.fault(axis.key, message)])


def finer(plan: SweepPlan, lines: Lines) -> SweepPlan:
    """Return the plan with a point in the middle of every bracket that is still too wide.

    Parameters
    ----------
    plan
        The first axis is the one along which crossings are looked for.
    lines
        By the labels of the other axes, points in the order of their places.
    """
    axis = plan.axes[0]
    others = {point.labels[1:]: point.values[1:] for point in plan.points}
    points = list(plan.points)
    for labels, line in lines.items():
        for index in _sign_changes(line):
            middle = _middle(axis, line[index].place, line[index + 1].place)
            if middle is not None:
                points.append(Point(len(points), (axis.number(middle), *others[labels])))
    return replace(plan, points=tuple(points))


def _middle(axis: Axis, low: float, high: float) -> float | None:
    """Return the middle of a bracket, None where it is narrow enough."""
    is_whole = (
        axis.span.is_whole
        if axis.span is not None
        else all(isinstance(value.label, int) for value in axis.values)
    )
    if is_whole:
        return (
            None
            if high - low <= 1
            else float(round(math.sqrt(low * high) if axis.is_log else (low + high) / 2))
        )
    if high - low <= TOLERANCE * max(abs(low), abs(high)):
        return None
    return math.sqrt(low * high) if axis.is_log else (low + high) / 2
