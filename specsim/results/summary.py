"""The summary of a run: verdict, metrics of both arms, speed-ups and intervals, ready for JSON.

A number that is undefined (no draft, one prompt) or unknown (joules from guessed watts) is null.
"""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from pydantic import Field, JsonValue

# Of the standard library's, pydantic validates only those of Python 3.12 and later.
from typing_extensions import TypedDict

from specsim.results.metrics import Metrics

Bounds: TypeAlias = list[float] | None


class Estimate(TypedDict):
    """A ratio of the two arms with its 95 % interval."""

    mean: float | None
    ci_low: float | None
    ci_high: float | None
    num_prompts: int


class Speedup(TypedDict):
    """Baseline ÷ speculation for times, joules and dollars, the inverse for throughput: above 1 gains."""

    e2el: Estimate
    tpot: Estimate
    throughput: Estimate
    energy: Estimate
    cost: Estimate


class Verdict(TypedDict):
    """Whether speculation pays per user, in one sentence and as a claim; null is undecided."""

    pays: bool | None
    text: str
    break_even_batch: list[float] | None


class Intervals(TypedDict):
    """95 % limits of each metric that is a mean or rate, and of its relative change between the arms."""

    num_prompts: int
    baseline: dict[str, Bounds]
    speculation: dict[str, Bounds] | None
    change: dict[str, Bounds] | None


class Summary(TypedDict):
    """``summary.json``, keys in this order."""

    schema_version: int
    specsim_version: str
    seed: Annotated[int, Field(ge=0)]
    key: str
    scenario: dict[str, JsonValue]
    provenance: dict[str, JsonValue]
    verdict: Verdict
    baseline: Metrics
    speculation: Metrics | None
    speedup: Speedup | None
    intervals: Intervals
    how_to_read: str
    known_limitations: list[str]
    definitions: dict[str, str]


def number(metrics: Metrics, name: str) -> float | None:
    """Return a metric that is a number, or None where it is undefined, unknown or absent."""
    value = metrics.get(name)
    return value if isinstance(value, (int, float)) else None


def finite(value: float) -> float | None:
    """Return the value, or None for NaN and infinities, which JSON does not have.

    Examples
    --------
    >>> finite(float("nan")) is None
    True
    """
    return value if math.isfinite(value) else None


def json_ready(value: JsonValue) -> JsonValue:
    """Return the same tree with null for every number that is not finite."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_ready(item) for item in value]
    return value
