"""Chi-square tests of counts, with rare cells pooled."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from specsim.arrays import Floats, Ints

LEAST_EXPECTED = 8.0
"""Cells expected less often are pooled into one."""


def goodness_of_fit(counts: Ints, probabilities: Floats) -> float:
    """Return the p-value of counts under given cell probabilities."""
    expected = counts.sum() * probabilities
    seen, expected = _pooled(np.stack([counts.astype(float), expected]), expected)
    assert not np.any((expected == 0) & (seen > 0)), "a cell of probability 0 was seen"
    is_cell = expected > 0
    statistic = ((seen - expected)[is_cell] ** 2 / expected[is_cell]).sum()
    return float(chi2.sf(statistic, is_cell.sum() - 1))


def homogeneity(first: Ints, second: Ints) -> float:
    """Return the p-value that two samples, as counts over the same cells, have one law."""
    both = np.stack([first, second]).astype(float)
    share = both.sum(axis=1, keepdims=True) / both.sum()
    both = _pooled(both, both.sum(axis=0) * share.min())
    both = both[:, both.sum(axis=0) > 0]
    expected = both.sum(axis=0) * share
    statistic = ((both - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, both.shape[1] - 1))


def _pooled(table: Floats, expected: Floats) -> Floats:
    is_rare = expected < LEAST_EXPECTED
    return np.column_stack([table[:, ~is_rare], table[:, is_rare].sum(axis=1)])
