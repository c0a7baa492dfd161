"""What limits the reading of a sweep: the caveats of its runs, each said once with the points it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specsim.results.reading import Caveat
from specsim.sweep.axes import Label
from specsim.sweep.order import merged

_MOST_DETAILS = 3
"""Different details of one caveat that are all told."""
_MOST_POINTS = 5
"""Points that are told by their numbers."""


@dataclass(frozen=True, slots=True)
class SharedCaveat:
    """A caveat of one or more points."""

    text: str
    """Numbers that differ are told as a range, names up to three."""
    num_points: int
    """Points that it holds at."""
    num_known: int
    """Points of which any caveat is known: those that came out."""
    axis: str | None
    """The axis whose values tell where it holds; None where it holds at all points, or no one axis does."""
    values: list[Label]
    """Those values."""
    points: list[int]
    """Where neither all points nor an axis tells: the first few of the points."""


def shared_caveats(
    by_point: Mapping[int, Sequence[Caveat]],
    labels: Mapping[str, Sequence[Label]],
    *,
    is_replicated: bool,
) -> list[SharedCaveat]:
    """Return the caveats of all points together, in the order of the first point where orders differ.

    Parameters
    ----------
    by_point
        Those of each point that came out.
    labels
        Of each axis the label of every point, [points].
    is_replicated
        Points have several replications, whose intervals take the place of those over prompts.

    Examples
    --------
    >>> few = {point: [Caveat("Only {} prompts.", (str(4 + point),))] for point in (0, 1)}
    >>> [found] = shared_caveats({**few, 2: []}, {"K": [1, 2, 3]}, is_replicated=False)
    >>> found.text, found.axis, found.values
    ('Only 4 to 5 prompts.', 'K', [1, 2])
    """
    kept = {
        point: [caveat for caveat in caveats if not (is_replicated and caveat.is_of_prompts)]
        for point, caveats in by_point.items()
    }
    orders = dict.fromkeys(
        tuple(dict.fromkeys(caveat.words for caveat in caveats)) for caveats in kept.values()
    )
    found = []
    for words in merged(orders):
        holding = {
            point: [caveat for caveat in caveats if caveat.words == words] for point, caveats in kept.items()
        }
        points = [point for point, caveats in holding.items() if caveats]
        details = dict.fromkeys(caveat.details for point in points for caveat in holding[point])
        together = Caveat(
            words, tuple(_together(list(dict.fromkeys(slot))) for slot in zip(*details, strict=True))
        )
        axis, values = _told_by(points, list(kept), labels)
        is_told = axis is not None or len(points) == len(kept)
        rest = [] if is_told else points[:_MOST_POINTS]
        found.append(SharedCaveat(together.text, len(points), len(kept), axis, values, rest))
    return found


def _together(details: Sequence[str]) -> str:
    """Return different details of one slot as one: a range of numbers of one unit, else the first few."""
    if len(details) == 1:
        return details[0]
    parted = [detail.partition(" ") for detail in details]
    if all(_is_number(number) for number, _, _ in parted) and len({unit for _, _, unit in parted}) == 1:
        ends = [find((number for number, _, _ in parted), key=float) for find in (min, max)]
        # Changes come in pairs, "-4 % to +9 %", whose own "to" a further one would blur.
        between = "…" if ends[0][0] in "+-" else " to "
        return between.join(ends) + "".join(parted[0][1:])
    rest = len(details) - _MOST_DETAILS
    return "; ".join([*details[:_MOST_DETAILS], *([f"and {rest} more"] if rest > 0 else [])])


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdecimal()


def _told_by(
    points: Sequence[int], known: Sequence[int], labels: Mapping[str, Sequence[Label]]
) -> tuple[str | None, list[Label]]:
    """Return the axis of which the values at the points are at no other point, and those values."""
    if len(points) == len(known):
        return None, []
    others = set(known) - set(points)
    for axis, label in labels.items():
        inside = list(dict.fromkeys(label[point] for point in points))
        if not set(inside) & {label[point] for point in others}:
            return axis, inside
    return None, []
