"""Randomness: one seed, named purposes, and luck that does not depend on the order in which it is asked."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from specsim.arrays import Floats


class Purpose(IntEnum):
    """What a stream is for. Numbers are for good: adding one moves no other stream."""

    ARRIVAL = 0
    PROMPT_LENGTH = 1
    OUTPUT_LENGTH = 2
    REQUEST_CLASS = 3
    STOP = 4
    NEXT_TOKEN = 5
    DRAFT = 6
    POLICY = 7
    BOOTSTRAP = 8
    SWEEP_DESIGN = 9
    CAPTURE_ORDER = 10
    TRAINING = 11
    LOG_ORDER = 12
    PROOF = 13


class RandomStreams:
    """Independent generators keyed by purpose and entity, never by order of use.

    Parameters
    ----------
    seed
        The seed of the run.
    replication
        Which replication of the run this is.

    Examples
    --------
    >>> streams = RandomStreams(7)
    >>> first = streams.generator(Purpose.ARRIVAL, 3).random()
    >>> _ = streams.generator(Purpose.DRAFT).random(1000)
    >>> first == RandomStreams(7).generator(Purpose.ARRIVAL, 3).random()
    True
    """

    def __init__(self, seed: int, *, replication: int = 0) -> None:
        self.seed = seed
        self.replication = replication

    def generator(self, purpose: Purpose, *key: int) -> np.random.Generator:
        """Return the generator of one purpose and entity, at its beginning."""
        sequence = np.random.SeedSequence(self.seed, spawn_key=(self.replication, int(purpose), *key))
        return np.random.Generator(np.random.PCG64DXSM(sequence))

    def luck(self, purpose: Purpose) -> Luck:
        """Return the table of uniforms of one purpose, keyed by request, output position and node."""
        return Luck(self, purpose)


REQUESTS_PER_BLOCK = 16
POSITIONS_PER_BLOCK = 256
_MAX_CACHED_BLOCKS = 4096


class Luck:
    """Uniforms in [0, 1) keyed by (request, output position, node), drawn in blocks.

    The same key gives the same uniform whatever else was asked for, so that a request has the same
    luck under every policy and batch. A block holds 16 requests by 256 positions: a stream per
    request costs 22 µs, a draw from a block a few nanoseconds.
    """

    def __init__(self, streams: RandomStreams, purpose: Purpose) -> None:
        self._streams = streams
        self._purpose = purpose
        self._blocks: dict[tuple[int, int, int], Floats] = {}

    def along(self, request: int, start: int, count: int, *, node: int = 0) -> Floats:
        """Uniforms of one request at positions ``start … start + count - 1``, shape [count]."""
        first = start // POSITIONS_PER_BLOCK
        last = (start + count - 1) // POSITIONS_PER_BLOCK
        row = request % REQUESTS_PER_BLOCK
        rows = [self.block(request, block, node)[row] for block in range(first, last + 1)]
        offset = start - first * POSITIONS_PER_BLOCK
        whole = rows[0] if len(rows) == 1 else np.concatenate(rows)
        return whole[offset : offset + count]

    def block(self, request: int, position_block: int, node: int) -> Floats:
        """Uniforms of the 16 requests around one and of 256 positions, [16, 256].

        ``position_block`` is the output position over 256, rounded down.
        """
        key = (request // REQUESTS_PER_BLOCK, position_block, node)
        block = self._blocks.get(key)
        if block is None:
            if len(self._blocks) >= _MAX_CACHED_BLOCKS:
                self._blocks.clear()
            generator = self._streams.generator(self._purpose, *key)
            block = generator.random((REQUESTS_PER_BLOCK, POSITIONS_PER_BLOCK))
            self._blocks[key] = block
        return block
