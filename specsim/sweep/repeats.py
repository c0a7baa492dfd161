"""Replications: how often each point is simulated, and when its interval is narrow enough to stop.

Replications of a point have new requests and new luck, except that a recorded trace brings the same
prompts each time: then the half-width covers luck and arrivals only, and no number of replications
says how other prompts would fare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specsim.errors import ConfigError
from specsim.results.statistics import LEVEL, student_quantile
from specsim.sweep.outcome import Figure
from specsim.sweep.plan import Case
from specsim.sweep.table import Rows

MIN_TO_STOP = 5
"""Fewest replications before a half-width is judged: from fewer, it is too often small by chance."""
MAX_REPLICATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of replications with its half-width at 95 %, None from one alone."""

    value: float
    half_width: float | None
    num_replications: int

    @property
    def relative_half_width(self) -> float:
        """Half-width ÷ mean; infinite where there is none."""
        if self.half_width is None:
            return math.inf
        return self.half_width / abs(self.value) if self.value else math.inf if self.half_width else 0.0


def mean_of(values: Sequence[float]) -> Mean:
    """Mean of independent replications, and the half-width of Student's interval.

    Examples
    --------
    >>> mean = mean_of([1.0, 2.0, 3.0])
    >>> mean.value, round(mean.half_width, 2)
    (2.0, 2.48)
    """
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return Mean(mean, None, count)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Mean(mean, student_quantile(0.5 + LEVEL / 2, count - 1) * math.sqrt(variance / count), count)


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often each point is simulated.

    Without a metric, ``first`` times. With one, until the half-width of its mean is within
    ``half_width`` of the mean, at most ``most`` times.
    """

    first: int = 1
    metric: str | None = None
    half_width: float = 0.0
    most: int = 100

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        if not 1 <= self.first <= MAX_REPLICATIONS or not 1 <= self.most <= MAX_REPLICATIONS:
            raise ConfigError(f"replications: give 1 to {MAX_REPLICATIONS}")
        if self.metric is not None and not 0.0 < self.half_width < 1.0:
            raise ConfigError(f"until: the relative half-width is between 0 and 1, not {self.half_width:g}")
        if self.metric is not None and self.most < self.num_first:
            raise ConfigError(f"until: needs at least {self.num_first} replications, not {self.most}")

    @classmethod
    def until(cls, text: str, *, first: int = 1, most: int = 100) -> Repeats:
        """Read ``METRIC=HALF_WIDTH``, such as ``speedup.tpot=0.02``.

        Raises
        ------
        ConfigError
            If it is not of that form.

        Examples
        --------
        >>> Repeats.until("speedup.tpot=0.02").num_first
        5
        """
        metric, equals, number = text.partition("=")
        try:
            half_width = float(number)
        except ValueError:
            half_width = math.nan
        if not equals or not metric.strip() or math.isnan(half_width):
            raise ConfigError(f"until {text}: is not of the form metric=half-width, as in speedup.tpot=0.02")
        return cls(first=first, metric=metric.strip(), half_width=half_width, most=most)

    @property
    def num_first(self) -> int:
        """Replications that every point has."""
        return self.first if self.metric is None else max(self.first, MIN_TO_STOP)

    def first_cases(self, points: Sequence[int]) -> list[Case]:
        """Return the replications that every point has: the first of all points, then the second ones."""
        return [Case(point, replication) for replication in range(self.num_first) for point in points]

    def more_cases(self, points: Sequence[int], rows: Rows) -> list[Case]:
        """Return the replications that are still to be made, given those that there are; none: it is enough.

        As many as the half-width so far calls for, at most twice what there is. A point with a
        replication that failed is left as it is.
        """
        if self.metric is None:
            return []
        more = []
        for point in points:
            values = rows.figures(point, self.metric)
            wanted = min(self._wanted(values), self.most)
            more += [Case(point, replication) for replication in range(len(values), wanted)]
        return more

    def _wanted(self, values: Sequence[Figure]) -> int:
        numbers = [float(value) for value in values if isinstance(value, (int, float))]
        count = len(values)
        if len(numbers) < count:
            return count
        width = mean_of(numbers).relative_half_width
        if width <= self.half_width:
            return count
        needed = count * (width / self.half_width) ** 2 if math.isfinite(width) else math.inf
        return count + max(1, min(count, math.ceil(min(needed, 2.0 * count)) - count))
