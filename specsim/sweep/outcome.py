"""What comes of one run of a sweep: its figures, or its error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from specsim.results.metrics import Metrics
from specsim.results.reading import Caveat
from specsim.results.summary import Bounds, Summary

Figure: TypeAlias = bool | int | float | str | list[float] | None
"""One figure of a run; None is undefined or unknown."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one run, or its error."""

    key: str
    """The run's key: hash of all that its result depends on; empty where there was no scenario to run."""
    error: str
    """Why it failed, on one line; empty if it did not."""
    is_lasting: bool
    """It would come out the same again: figures, and errors that the input causes."""
    time_s: float
    """How long it took, s; 0 where nothing was simulated."""
    figures: Mapping[str, Figure]
    caveats: tuple[Caveat, ...]
    """How wide to read the figures, and what they do not cover."""

    @property
    def has_failed(self) -> bool:
        """There are no figures."""
        return bool(self.error)

    @classmethod
    def failed(cls, key: str, error: str, *, is_lasting: bool, time_s: float = 0.0) -> Outcome:
        """Outcome of a run that failed."""
        return cls(key, " ".join(error.split()) or "failed", is_lasting, time_s, {}, ())


def figures(summary: Summary) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a run by dotted name: verdict, speed-ups, then all metrics of both arms.

    The ends of an interval go by the name of their metric with ``.ci_low`` and ``.ci_high``.
    """
    yield "verdict.pays", summary["verdict"]["pays"]
    yield "num_prompts", summary["intervals"]["num_prompts"]
    if summary["speedup"] is not None:
        for name in ("tpot", "e2el", "throughput", "energy", "cost"):
            estimate = summary["speedup"][name]
            yield f"speedup.{name}", estimate["mean"]
            yield f"speedup.{name}.ci_low", estimate["ci_low"]
            yield f"speedup.{name}.ci_high", estimate["ci_high"]
    intervals = summary["intervals"]
    yield from _flat("baseline", summary["baseline"], intervals["baseline"])
    if summary["speculation"] is not None:
        yield from _flat("speculation", summary["speculation"], intervals["speculation"] or {})


METRIC_PREFIXES = ("speedup.", "baseline.", "speculation.")


def is_metric(name: str) -> bool:
    """Tell whether a figure is a metric, rather than a count of prompts or the end of an interval."""
    return name.startswith(METRIC_PREFIXES) and not name.endswith((".ci_low", ".ci_high"))


def claim(pays: Figure) -> str:
    """Return in words whether speculation pays; None is undecided."""
    return "undecided" if pays is None else "pays" if pays else "does not pay"


def number_of(figure: Figure) -> float | None:
    """Return a figure that is a finite number, else None.

    Examples
    --------
    >>> number_of(2), number_of(True), number_of(float("nan")), number_of([0.5])
    (2.0, None, None, None)
    """
    if isinstance(figure, bool) or not isinstance(figure, (int, float)) or not math.isfinite(figure):
        return None
    return float(figure)


def _flat(prefix: str, metrics: Metrics, intervals: Mapping[str, Bounds]) -> Iterator[tuple[str, Figure]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from ((f"{prefix}.{name}.{part}", amount) for part, amount in value.items())
        else:
            yield f"{prefix}.{name}", value
        if name in intervals:
            low, high = intervals[name] or (None, None)
            yield f"{prefix}.{name}.ci_low", low
            yield f"{prefix}.{name}.ci_high", high
