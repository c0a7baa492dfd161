"""Intervals: paired cluster bootstrap over prompts.

The unit of resampling is the prompt: all requests of one prompt go together, in both arms, with the
same weight. Metrics are ratios of sums over the resampled prompts. Limits are percentiles whose
levels are widened for few prompts (Hesterberg 2015, "What Teachers Should Know About the Bootstrap",
section 4.3, expanded percentile interval), which for a mean equals the width of Student's interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from statistics import NormalDist

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import DomainError
from specsim.results.accounting import by_row
from specsim.results.sums import Sums
from specsim.streams import Purpose, RandomStreams

NUM_RESAMPLES = 2000
LEVEL = 0.95
MAX_UNITS = 8192
"""Most units that are drawn in a resample."""
_DRAWS_PER_CHUNK = 1 << 20


class Drawing(IntEnum):
    """What `Purpose.BOOTSTRAP` is for beside the resamples of one result. Numbers are for good."""

    UNITS = 1
    """Deals prompts into units."""
    UNPAIRED = 2
    """Resamples of a second result whose prompts are not those of the first."""


@dataclass(frozen=True)
class Resampling:
    """How often each prompt counts in each resample: drawn with replacement, as many as there are.

    More prompts than `MAX_UNITS` are dealt at random into that many units of equal size, give or take one,
    which are drawn instead. The variance stays the same on average; its own spread, 1/√(2 x 8192) = 0.8 %,
    is less than what 2000 resamples leave open. So the work stops growing, and memory with it.
    """

    num_prompts: int
    streams: RandomStreams
    """Draws come from `Purpose.BOOTSTRAP`."""
    key: tuple[Drawing, ...] = ()
    """Tells resamplings of one seed apart that must not share their luck."""
    num_resamples: int = NUM_RESAMPLES

    @property
    def num_units(self) -> int:
        """Units that are drawn from."""
        return min(self.num_prompts, MAX_UNITS)

    @cached_property
    def unit(self) -> Ints:
        """Unit of each prompt, [prompts]."""
        numbers = np.arange(self.num_prompts) % self.num_units
        if self.num_units == self.num_prompts:
            return numbers
        return self.streams.generator(Purpose.BOOTSTRAP, *self.key, Drawing.UNITS).permutation(numbers)

    def weights(self) -> Iterator[Floats]:
        """Yield how often each unit is drawn, multinomial, [resamples, units] a chunk."""
        generator = self.streams.generator(Purpose.BOOTSTRAP, *self.key)
        size = max(1, _DRAWS_PER_CHUNK // self.num_units)
        for start in range(0, self.num_resamples, size):
            yield _weights(generator, min(size, self.num_resamples - start), self.num_units)

    def totals(self, sums: Sequence[Sums]) -> list[Sums]:
        """Return totals of the resampled prompts, [resamples], the same resamples for every arm.

        Parameters
        ----------
        sums
            For each arm its sums by prompt, [prompts], prompts in the same order in all.
        """
        columns = np.column_stack(
            [by_row(self.unit, values, self.num_units) for arm in sums for values in arm.values()]
        )
        # Not a product of matrices, whose order of addition depends on how many rows there are.
        parts = iter(np.concatenate([np.einsum("rp,pc->rc", w, columns) for w in self.weights()]).T)
        return [{name: next(parts) for name in arm} for arm in sums]


def _weights(generator: np.random.Generator, num_resamples: int, num_units: int) -> Floats:
    drawn = generator.integers(num_units, size=(num_resamples, num_units))
    drawn += np.arange(num_resamples)[:, None] * num_units
    counts = np.bincount(drawn.ravel(), minlength=num_resamples * num_units)
    return counts.reshape(num_resamples, num_units).astype(np.float64)


def interval(values: Floats, num_prompts: int, *, level: float = LEVEL) -> tuple[float, float] | None:
    """Confidence limits from resampled values, [resamples].

    None where there is no interval: from one prompt, or where a resample leaves the metric undefined.

    Examples
    --------
    >>> interval(np.linspace(0.0, 1.0, 2000), 1) is None
    True
    """
    if not 0.0 < level < 1.0:
        raise DomainError(f"confidence level {level} is not between 0 and 1")
    if num_prompts < 2 or not np.isfinite(values).all():
        return None
    low, high = np.quantile(values, _expanded_levels(num_prompts, level))
    return float(low), float(high)


def _expanded_levels(num_prompts: int, level: float) -> tuple[float, float]:
    quantile = student_quantile(0.5 + level / 2, num_prompts - 1)
    tail = NormalDist().cdf(-math.sqrt(num_prompts / (num_prompts - 1)) * quantile)
    return tail, 1.0 - tail


def student_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t: exact for 1 and 2 degrees of freedom, else within 0.5 %.

    Expansion in the normal quantile: Abramowitz and Stegun 1964, equation 26.7.5, for levels up to 0.975.
    Written out since importing ``scipy.stats`` costs more than a small run.

    Examples
    --------
    >>> round(student_quantile(0.975, 10), 3)
    2.228
    """
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(degrees) ** power for power, term in enumerate(terms, start=1))
