"""Step functions of uniforms: the cells in which an outcome is the same, and how wide each is.

A draw, and whatever follows from it, is a function of a uniform in [0, 1) that jumps at a few places. The
probability of an outcome is then the width of its cell. The cells are found by asking the function itself:
guesses of where it jumps save halvings, but a wrong guess only costs time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specsim.arrays import Bools, Floats, Ints
from specsim.speculation.distributions import Prefixes
from specsim.speculation.draft import Draft

if TYPE_CHECKING:
    from specsim.speculation.draft import DraftSource

_EDGE = 2.0**-50
"""How near to a cell's ends the function is asked; jumps closer together than that are one."""
_MAX_HALVINGS = 60

Outcome = Callable[[Ints, Floats], Ints]
"""Outcomes [cells, …] of rows [cells] at uniforms [cells]; integers that tell outcomes apart."""


@dataclass(slots=True)
class Cells:
    """Cells of several rows; arrays [cells], sorted by row and place."""

    row: Ints
    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        """A uniform inside each cell."""
        # The last cell may be so thin that its middle rounds to 1, which is no uniform.
        return np.minimum((self.low + self.high) / 2, np.nextafter(1.0, 0.0))

    @property
    def width(self) -> Floats:
        """Probability of each cell given its row."""
        return self.high - self.low


def cells(outcome: Outcome, guesses: Floats) -> Cells:
    """Cells of [0, 1) in which the outcome of each row is constant.

    Parameters
    ----------
    outcome
        The function.
    guesses
        Where it may jump, [rows, guesses]; what is outside (0, 1) is ignored.

    Examples
    --------
    >>> found = cells(lambda row, uniform: (uniform >= 0.3).astype(int), np.array([[0.8]]))
    >>> found.width.round(12).tolist()
    [0.3, 0.7]
    """
    found = _guessed(guesses)
    for _ in range(_MAX_HALVINGS):
        is_mixed = _is_mixed(found, outcome)
        if not is_mixed.any():
            break
        found = _halved(found, is_mixed)
    return _merged(found, outcome)


def enumerated(source: DraftSource, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
    """All drafts of a one-row prefix with their probabilities, from the cells of the source's uniforms."""
    weight, uniforms = draft_cells(source, prefix)
    rows = np.zeros(weight.size, dtype=np.int64)
    drafts = source.propose(at_rows(prefix, rows), uniforms)
    for number, probability in enumerate(weight.tolist()):
        one = slice(number, number + 1)
        law = None if drafts.model_law is None else drafts.model_law[one]
        yield probability, Draft(drafts.token[one], drafts.parent[one], drafts.probabilities[one], law)


def draft_cells(source: DraftSource, prefix: Prefixes) -> tuple[Floats, Floats]:
    """Weights [cells] and uniforms [cells, N] of all drafts of a one-row prefix."""
    uniforms: Floats = np.full((1, source.num_nodes), 0.5)
    weight = np.ones(1)
    for node in range(source.num_nodes):
        guesses = _jumps_of_draw(
            source.propose(at_rows(prefix, np.zeros(len(weight), dtype=np.int64)), uniforms), node
        )

        def tokens(row: Ints, at: Floats, node: int = node, given: Floats = uniforms) -> Ints:
            asked = given[row]
            asked[:, node] = at
            draft = source.propose(at_rows(prefix, np.zeros_like(row)), asked)
            return np.concatenate([draft.token[:, : node + 1], draft.parent[:, : node + 1]], axis=1)

        found = cells(tokens, guesses)
        uniforms = uniforms[found.row]
        uniforms[:, node] = found.middle
        weight = weight[found.row] * found.width
    return weight, uniforms


def at_rows(prefix: Prefixes, rows: Ints) -> Prefixes:
    """Return some rows of prefixes, repeated as asked."""
    return Prefixes(prefix.request[rows], prefix.position[rows], prefix.tokens[rows])


def jumps(law: Floats) -> Floats:
    """Where a draw by inversion from laws [rows, V] jumps, [rows, V]."""
    upto = np.cumsum(law, axis=1)
    total = upto[:, -1:]
    places: Floats = np.where(total > 0, upto / np.where(total > 0, total, 1.0), 1.0)
    return places


def _jumps_of_draw(draft: Draft, node: int) -> Floats:
    return jumps(draft.probabilities[:, node])


def _guessed(guesses: Floats) -> Cells:
    num_rows = len(guesses)
    inside = np.sort(np.clip(guesses, 0.0, 1.0), axis=1)
    edges = np.concatenate([np.zeros((num_rows, 1)), inside, np.ones((num_rows, 1))], axis=1)
    row, place = np.nonzero(np.diff(edges, axis=1) > 0)
    return Cells(row, edges[row, place], edges[row, place + 1])


def _is_mixed(found: Cells, outcome: Outcome) -> Bools:
    """Cells wide enough to be halved whose outcomes at both ends and in the middle are not all the same."""
    is_wide = found.width > 4 * _EDGE
    wide = np.flatnonzero(is_wide)
    row = found.row[wide]
    low = _flat(outcome(row, found.low[wide] + _EDGE))
    middle = _flat(outcome(row, found.middle[wide]))
    high = _flat(outcome(row, found.high[wide] - _EDGE))
    is_mixed = np.zeros(found.row.size, dtype=bool)
    is_mixed[wide] = ((low != middle) | (middle != high)).any(axis=1)
    return is_mixed


def _halved(found: Cells, is_mixed: Bools) -> Cells:
    count = np.where(is_mixed, 2, 1)
    place = np.repeat(np.arange(found.row.size), count)
    is_second = np.concatenate([[False], place[1:] == place[:-1]])
    is_first = np.concatenate([place[1:] == place[:-1], [False]])
    middle = found.middle[place]
    return Cells(
        found.row[place],
        np.where(is_second, middle, found.low[place]),
        np.where(is_first, middle, found.high[place]),
    )


def _merged(found: Cells, outcome: Outcome) -> Cells:
    """Neighbouring cells of equal outcome as one."""
    result = _flat(outcome(found.row, found.middle))
    is_new = np.ones(found.row.size, dtype=bool)
    is_new[1:] = (found.row[1:] != found.row[:-1]) | (result[1:] != result[:-1]).any(axis=1)
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], found.row.size) - 1
    return Cells(found.row[first], found.low[first], found.high[last])


def _flat(outcome: Ints) -> Ints:
    return outcome.reshape(len(outcome), -1)
