"""One round of a batch as rows of arrays, and rounds put together of such: one after the other, or by place.

Where p and q are the same after every prefix, and the policy remembers nothing, what a round does depends on
its request and the position that it starts at alone. All rounds that may start within a window are then
computed as one batch, and the round that starts at n and emits m tokens is followed by the one at n + m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from specsim.arrays import Bools, Floats, Ints


@dataclass(slots=True)
class BatchRows:
    """The batch between two rounds, arrays [B, …]."""

    request: Ints
    position: Ints
    remaining: Ints
    context: Ints
    """The last tokens that matter, [B, L]; -1 where there are none."""
    state: Floats
    """What the policy remembers, [B, S]."""


@dataclass(slots=True)
class BatchRounds:
    """A round of the batch, arrays [B, …], or R of them, [R, B, …], and the batch after each."""

    position: Ints
    tokens: Ints
    """Emitted tokens, [B, D + 1]; -1 pads."""
    num_drafted: Ints
    num_draft_steps: Ints
    num_accepted: Ints
    num_emitted: Ints
    is_last: Bools
    after: BatchRows


_Rows = TypeVar("_Rows", BatchRows, BatchRounds)


def stacked(parts: Sequence[_Rows]) -> _Rows:
    """Return the rounds or batches with an axis before the batch's, [parts, B, …]."""
    columns: dict[str, Any] = {}
    for field in fields(parts[0]):
        values = [getattr(part, field.name) for part in parts]
        columns[field.name] = stacked(values) if isinstance(values[0], BatchRows) else np.stack(values)
    return type(parts[0])(**columns)


def taken(rows: _Rows, index: Ints | int) -> _Rows:
    """Return rows by index, its axes in place of the batch's."""
    columns: dict[str, Any] = {}
    for field in fields(rows):
        values = getattr(rows, field.name)
        columns[field.name] = taken(values, index) if isinstance(values, BatchRows) else values[index]
    return type(rows)(**columns)


def places(rows: BatchRows, count: int) -> BatchRows:
    """Return ``count`` rows for each: as it is, with one token more, with two, …; [B · count, …]."""
    repeated = taken(rows, np.repeat(np.arange(rows.request.size), count))
    ahead = np.tile(np.arange(count), rows.request.size)
    repeated.position += ahead
    repeated.remaining -= ahead
    return repeated


def chained(rounds: BatchRounds, count: int, *, horizon: int) -> BatchRounds:
    """Return the rounds of each sequence in a row, 1 … ``horizon`` of them, up to the first that ends one.

    Parameters
    ----------
    rounds
        What would happen at each of `places`, ``count`` for each sequence.
    count
        Places a sequence; the rounds stop where one would start past them.
    """
    following = np.arange(rounds.num_emitted.size) + rounds.num_emitted
    is_over = rounds.is_last | (np.arange(following.size) // count != following // count)
    visited = [np.arange(0, following.size, count)]
    while len(visited) < horizon and not is_over[visited[-1]].any():
        visited.append(following[visited[-1]])
    return taken(rounds, np.stack(visited))
