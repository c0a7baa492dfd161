"""Percentiles under resampled prompts: every request counts as often as its prompt is drawn.

Exact, without sorting or adding up all requests for every resample: the sorted requests are cut into
blocks, how many of each block are drawn is a product of matrices, and only the block in which the
percentile lies is counted request by request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.results.statistics import Resampling

_REQUESTS_PER_BLOCK = 1024


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
    unit = resampling.unit[prompt[known]]
    parts = [weighted_percentiles(values[known], unit, probabilities, w) for w in resampling.weights()]
    return np.concatenate(parts, axis=1)


def weighted_percentiles(
    values: Floats, unit: Ints, probabilities: Sequence[float], weights: Floats
) -> Floats:
    """Return percentiles under whole weights of the units, [probabilities, sets]; NaN where nothing counts.

    Parameters
    ----------
    values
        Of each request, [requests].
    unit
        Of each request, [requests].
    probabilities
        Such as 0.99.
    weights
        [sets, units].

    Examples
    --------
    >>> values, unit = np.array([3.0, 1.0, 2.0]), np.array([0, 1, 1])
    >>> weighted_percentiles(values, unit, [0.5], np.array([[1.0, 1.0], [2.0, 0.0]])).tolist()
    [[2.0, 3.0]]
    """
    found = np.full((len(probabilities), len(weights)), np.nan)
    order = np.argsort(values, kind="stable")
    counts = _BlockCounts(unit[order], weights)
    some = np.flatnonzero(counts.total > 0)
    values, total = values[order], counts.total[some]
    for row, probability in zip(found, probabilities, strict=True):
        place = (total - 1.0) * probability
        below = np.floor(place)
        low = values[counts.at(below, some)]
        high = values[counts.at(np.minimum(below + 1.0, total - 1.0), some)]
        row[some] = low + (place - below) * (high - low)
    return found


class _BlockCounts:
    """How many requests count, by block of the sorted requests and set of weights."""

    def __init__(self, unit: Ints, weights: Floats) -> None:
        self._unit, self._weights = unit, weights
        num_blocks = max(1, -(-len(unit) // _REQUESTS_PER_BLOCK))
        block = np.arange(len(unit)) // _REQUESTS_PER_BLOCK
        flat = np.bincount(unit * num_blocks + block, minlength=weights.shape[1] * num_blocks)
        # Whole numbers below 2^53 in every order of addition, so the product is exact.
        counts = weights @ flat.reshape(weights.shape[1], num_blocks).astype(np.float64)
        self._until = np.cumsum(counts, axis=1)
        self._before = self._until - counts
        self.total: Floats = self._until[:, -1]

    def at(self, rank: Floats, sets: Ints) -> Ints:
        """Return which sorted request has a rank, counted from 0, in some of the sets, [sets]."""
        block = (self._until[sets] <= rank[:, None]).sum(axis=1)
        found = np.empty(len(sets), np.int64)
        for number, rows in _by_value(block):
            start = number * _REQUESTS_PER_BLOCK
            inside = self._weights[np.ix_(sets[rows], self._unit[start : start + _REQUESTS_PER_BLOCK])]
            wanted = rank[rows] - self._before[sets[rows], number]
            found[rows] = start + (np.cumsum(inside, axis=1) <= wanted[:, None]).sum(axis=1)
        return found


def _by_value(values: Ints) -> Iterator[tuple[int, Ints]]:
    for value in np.unique(values).tolist():
        yield value, np.flatnonzero(values == value)
