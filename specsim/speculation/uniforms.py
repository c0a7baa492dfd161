"""Keyed uniforms for many requests at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.streams import POSITIONS_PER_BLOCK, REQUESTS_PER_BLOCK, Luck, Purpose, RandomStreams

_MAX_SLOTS = 512


class Uniforms(Protocol):
    """Uniforms by (request, output position)."""

    def at(self, request: Ints, position: Ints) -> Floats:
        """Uniforms in [0, 1) of each pair, [pairs, nodes]."""
        ...


@dataclass(slots=True)
class RoundUniforms:
    """All luck that rounds have; a uniform that a decision has looked at is never looked at again."""

    stop: Uniforms
    """Which child is kept, by output position; one node."""
    next_token: Uniforms
    """The token after the last kept one, by output position; one node."""
    draft: Uniforms
    """Draft tokens, by the position that the round starts at; one node a draft."""

    @classmethod
    def keyed(cls, streams: RandomStreams, *, num_nodes: int) -> RoundUniforms:
        """Return the uniforms of a run, keyed by purpose, request and place."""
        return cls(
            UniformTable(streams.luck(Purpose.STOP)),
            UniformTable(streams.luck(Purpose.NEXT_TOKEN)),
            UniformTable(streams.luck(Purpose.DRAFT), num_nodes=num_nodes),
        )


class UniformTable:
    """Uniforms of (request, output position) pairs, one for each of some nodes.

    The same numbers as :class:`specsim.streams.Luck` gives one request at a time: a table of what was
    asked for lately, so that a round of the whole batch is one gather.

    Parameters
    ----------
    luck
        Where the uniforms come from.
    num_nodes
        Uniforms at each position, keyed by node 0, 1, …
    """

    def __init__(self, luck: Luck, *, num_nodes: int = 1) -> None:
        self._luck = luck
        self._slots: dict[tuple[int, int], int] = {}
        self._table: Floats = np.empty((4, REQUESTS_PER_BLOCK, POSITIONS_PER_BLOCK, num_nodes))

    def at(self, request: Ints, position: Ints) -> Floats:
        """Uniforms of each pair, [pairs, nodes]."""
        if len(self._slots) > _MAX_SLOTS:
            self._slots.clear()
        group, row = np.divmod(request, REQUESTS_PER_BLOCK)
        block, offset = np.divmod(position, POSITIONS_PER_BLOCK)
        # Pairs come in runs of one slot: a row of a batch, a window of positions.
        is_new = np.ones(request.size, dtype=np.bool_)
        is_new[1:] = (group[1:] != group[:-1]) | (block[1:] != block[:-1])
        keys = zip(group[is_new].tolist(), block[is_new].tolist(), strict=True)
        slots = np.array([self._slot(key) for key in keys], dtype=np.intp)
        uniforms: Floats = self._table[slots[np.cumsum(is_new) - 1], row, offset]
        return uniforms

    def _slot(self, key: tuple[int, int]) -> int:
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = len(self._slots)
            if slot == len(self._table):
                self._table = np.concatenate([self._table, np.empty_like(self._table)])
            group, block = key
            for node in range(self._table.shape[3]):
                self._table[slot, :, :, node] = self._luck.block(group * REQUESTS_PER_BLOCK, block, node)
        return slot
