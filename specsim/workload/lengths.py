"""Lengths of prompts and outputs: a constant, or a normal distribution truncated to its bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class LengthLaw:
    """A normal distribution of lengths in tokens, conditioned on [minimum, maximum]."""

    mean: int
    stdev: float
    minimum: int
    maximum: int


def draw_lengths(law: LengthLaw, uniforms: Floats) -> Ints:
    """Whole lengths in tokens, one per uniform in [0, 1).

    The normal distribution is conditioned on its bounds and inverted: nothing is clipped, so no mass
    gathers at the bounds. A standard deviation of 0 is the constant ``mean``.

    Examples
    --------
    >>> law = LengthLaw(mean=100, stdev=20.0, minimum=50, maximum=150)
    >>> draw_lengths(law, np.array([0.0, 0.5, 0.9999999])).tolist()
    [50, 100, 150]
    """
    if law.stdev == 0:
        return np.full(uniforms.shape, law.mean, dtype=np.int64)
    # Not at the top: it takes longer to import than a small run, and most lengths do not vary.
    from scipy.special import ndtr, ndtri

    # Each whole length n owns the interval [n - 1/2, n + 1/2).
    low = float(ndtr((law.minimum - 0.5 - law.mean) / law.stdev))
    high = float(ndtr((law.maximum + 0.5 - law.mean) / law.stdev))
    drawn = np.floor(law.mean + law.stdev * ndtri(low + uniforms * (high - low)) + 0.5)
    # The inverse at the very edge of an interval may round into the next one.
    return np.clip(drawn, law.minimum, law.maximum).astype(np.int64)
