"""Percentiles under resampled prompts: every request counts as often as its prompt is drawn.

Exact, without sorting or adding up all requests for every resample: the sorted requests are cut into
blocks, how many of each block are drawn is a product of matrices, and only the block in which the
percentile lies is counted request by request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.results.statistics import Resampling

_LEAST_BLOCK = 256
_MOST_BLOCKS = 256


def resampled_percentiles(
    values: Floats, prompt: Ints, probabilities: Sequence[float], resampling: Resampling
) -> Floats:
    """Return percentiles of requests (Hyndman and Fan 1996, type 7), [probabilities, resamples].

    Parameters
    ----------
    values
        Of each request, [requests]; NaN where it has none, which is left out.
    prompt
        Place of its prompt among those resampled, [requests].
    probabilities
        Such as 0.99.
    resampling
        Of the prompts.
    """
    known = ~np.isnan(values)
    ranked = Ranked.of(values[known], resampling.unit[prompt[known]], resampling.num_units)
    return np.concatenate([ranked.percentiles(probabilities, w) for w in resampling.weights()], axis=1)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Requests in the order of a value, cut into blocks."""

    values: Floats
    """Ascending, [requests]."""
    unit: Ints
    """Unit of each, [requests]."""
    by_block: Floats
    """Requests of each unit in each block, [units, blocks]."""
    block_size: int

    @classmethod
    def of(cls, values: Floats, unit: Ints, num_units: int, *, block_size: int | None = None) -> Ranked:
        """Sort requests by their values, [requests]; ``unit`` of each, [requests], is below ``num_units``."""
        order = np.argsort(values, kind="stable")
        size = block_size or max(_LEAST_BLOCK, -(-len(values) // _MOST_BLOCKS))
        num_blocks = max(1, -(-len(values) // size))
        place = unit[order] * num_blocks + np.arange(len(values)) // size
        counts = np.bincount(place, minlength=num_units * num_blocks)
        return cls(values[order], unit[order], counts.reshape(num_units, num_blocks).astype(np.float64), size)

    def percentiles(self, probabilities: Sequence[float], weights: Floats) -> Floats:
        """Return percentiles under whole weights of the units, [probabilities, sets].

        Parameters
        ----------
        probabilities
            Such as 0.99.
        weights
            [sets, units]; a set under which no request counts has no percentile, NaN.

        Examples
        --------
        >>> ranked = Ranked.of(np.array([3.0, 1.0, 2.0]), np.array([0, 1, 1]), 2)
        >>> ranked.percentiles([0.5], np.array([[1.0, 1.0], [2.0, 0.0]])).tolist()
        [[2.0, 3.0]]
        """
        # Whole numbers below 2^53 in every order of addition, so the product is exact.
        in_block = weights @ self.by_block
        until = np.cumsum(in_block, axis=1)
        some = np.flatnonzero(until[:, -1] > 0)
        weights, until, before = weights[some], until[some], (until - in_block)[some]
        last = until[:, -1] - 1.0
        found = np.full((len(probabilities), len(in_block)), np.nan)
        for row, probability in zip(found, probabilities, strict=True):
            place = last * probability
            below = np.floor(place)
            low, high = (
                self._values_at(rank, weights, until, before)
                for rank in (below, np.minimum(below + 1.0, last))
            )
            row[some] = low + (place - below) * (high - low)
        return found

    def _values_at(self, rank: Floats, weights: Floats, until: Floats, before: Floats) -> Floats:
        """Return the value of a rank, counted from 0, in each set, [sets], given the counts by block."""
        block = (until <= rank[:, None]).sum(axis=1)
        found = np.empty(len(rank))
        for number in np.unique(block).tolist():
            rows = np.flatnonzero(block == number)
            inside = slice(number * self.block_size, (number + 1) * self.block_size)
            counts = np.cumsum(weights[rows][:, self.unit[inside]], axis=1)
            wanted = rank[rows] - before[rows, number]
            found[rows] = self.values[inside][(counts <= wanted[:, None]).sum(axis=1)]
        return found
