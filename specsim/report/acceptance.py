"""Acceptance in print: by position, and why it is not the rate that the scenario gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from specsim.results.summary import Summary, number

_NOTICED = 0.015
"""Difference of two rates that a reader sees, of figures with two decimals."""


def acceptance_lines(summary: Summary) -> Iterator[str]:
    """Yield the rates by position, and what sets them apart from the one rate given, where that is seen."""
    metrics = summary["speculation"] or {}
    rates = metrics.get("spec_decode_per_position_acceptance_rates")
    if not isinstance(rates, list) or not rates:
        return
    yield f"Acceptance by position: {_listed(rates)}."
    given = _given_rate(summary)
    if given is None:
        return
    num_drafts = number(metrics, "spec_decode_num_drafts") or 1.0
    expected = [given ** (position + 1) for position in range(len(rates))]
    if any(rate < law - _by_chance(law, num_drafts) for rate, law in zip(rates, expected, strict=True)):
        yield f"Drafts past the end of a text count as rejected; without ends it were {_listed(expected)}."
    elif abs(expected[-1] - given) > _NOTICED:
        yield (
            f"The rate of {given:g} is that of each token if those before it were kept; the table's is of all"
            " drafted."
        )


def _listed(rates: list[float]) -> str:
    return " ".join(f"{rate:.2f}" for rate in rates)


def _by_chance(rate: float, num_drafts: float) -> float:
    """Return by how much so many drafts fall short of a rate by luck, three standard errors, or unseen."""
    return max(3.0 * math.sqrt(rate * (1.0 - rate) / num_drafts), _NOTICED)


def _given_rate(summary: Summary) -> float | None:
    """Return the one acceptance rate of a scenario, or None where it gives none or several."""
    workload, given = summary["scenario"].get("workload"), summary["scenario"].get("distributions")
    is_mixture = isinstance(workload, Mapping) and bool(workload.get("classes"))
    rate = given.get("acceptance_rate") if isinstance(given, Mapping) and not is_mixture else None
    return rate if isinstance(rate, float) else None
