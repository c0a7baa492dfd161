"""Two runs side by side: what changed in the configuration, and what that did to every metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from specsim.results.summary import Summary
from specsim.streams import RandomStreams
from specsim.sweep.changes import Change, changes
from specsim.sweep.gates import Gate
from specsim.sweep.outcome import Figure, figures
from specsim.sweep.paired import are_same_prompts, change_intervals

if TYPE_CHECKING:
    import pandas as pd

METRIC_PREFIXES = ("speedup.", "baseline.", "speculation.")


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric of two results."""

    metric: str
    before: float
    after: float
    change: float | None
    """Relative; of a sweep the mean over its points. None where it was 0."""
    low: float | None
    """Ends of the 95 % interval of the relative change; None where there is none."""
    high: float | None
    least: float | None = None
    """Of a sweep: the smallest change of a point, and below the largest."""
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One result against the reference."""

    before: str
    """What the reference is called."""
    after: str
    changes: tuple[Change, ...]
    deltas: tuple[Delta, ...]
    basis: str
    """What the intervals rest on, in a sentence."""
    failures: tuple[str, ...]
    """Gates that fail, and why."""


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run and what it is called."""

    name: str
    summary: Summary
    requests: pd.DataFrame
    """One row a request and arm."""


def compare_runs(before: NamedRun, after: NamedRun, gates: Sequence[Gate] = ()) -> Comparison:
    """Compare a run with a reference.

    Parameters
    ----------
    before
        The reference.
    after
        The run.
    gates
        Conditions under which the comparison fails.

    Raises
    ------
    ConfigError
        If a gate names a metric that is not a number in both.
    """
    is_paired = _has_same_prompts(before, after)
    streams = RandomStreams(before.summary["seed"])
    limits = change_intervals(before.requests, after.requests, streams, is_paired=is_paired)
    old, new = dict(figures(before.summary)), dict(figures(after.summary))
    deltas = []
    for metric, (was, now) in _shared_numbers(old, new).items():
        ends = limits.get(metric)
        low, high = (ends.low, ends.high) if ends is not None else (None, None)
        deltas.append(Delta(metric, was, now, relative(was, now), low, high))
    num_prompts = min(before.summary["intervals"]["num_prompts"], after.summary["intervals"]["num_prompts"])
    basis = (
        f"95% intervals over the {num_prompts} prompts of both runs, paired; of latencies only"
        if is_paired
        else f"95% intervals over prompts, unpaired: they are not the same ({num_prompts} or more each)"
    )
    return Comparison(
        before.name,
        after.name,
        tuple(_run_changes(before.summary, after.summary)),
        tuple(deltas),
        basis if num_prompts > 1 else "No intervals: a run has one prompt only",
        failures(gates, [("", old, new)]),
    )


def failures(
    gates: Sequence[Gate], judged: Sequence[tuple[str, Mapping[str, Figure], Mapping[str, Figure]]]
) -> tuple[str, ...]:
    """Return which gates fail and why, given what each place is called and its figures in both results."""
    failed = []
    for gate in gates:
        reasons = [(where, gate.judge(old, new)) for where, old, new in judged]
        found = [
            f"{reason}{f' at {where}' if where else ''}" for where, reason in reasons if reason is not None
        ]
        more = f", and at {len(found) - 1} more points" if len(found) > 1 else ""
        failed += [f"{gate.text}: {found[0]}{more}"] if found else []
    return tuple(failed)


def _has_same_prompts(before: NamedRun, after: NamedRun) -> bool:
    """Tell whether the runs hold the same prompts: those of one recorded trace, or drawn from one seed."""
    traces = [run.summary["provenance"].get("trace") for run in (before, after)]
    if traces[0] != traces[1]:
        return False
    is_drawn_alike = before.summary["seed"] == after.summary["seed"]
    return (is_drawn_alike or traces[0] is not None) and are_same_prompts(before.requests, after.requests)


def _run_changes(before: Summary, after: Summary) -> list[Change]:
    found = changes(before["scenario"], after["scenario"])
    versions = [
        {
            "specsim_version": run["specsim_version"],
            **cast(dict[str, JsonValue], run["provenance"]["versions"]),
        }
        for run in (before, after)
    ]
    return found + changes(versions[0], versions[1])


def _shared_numbers(
    before: Mapping[str, Figure], after: Mapping[str, Figure]
) -> dict[str, tuple[float, float]]:
    found = {}
    for name, figure in before.items():
        old, new = number(figure), number(after.get(name))
        if is_metric(name) and old is not None and new is not None:
            found[name] = (old, new)
    return found


def is_metric(name: str) -> bool:
    """Tell whether a figure is a metric, rather than a count of prompts or the end of an interval."""
    return name.startswith(METRIC_PREFIXES) and not name.endswith((".ci_low", ".ci_high"))


def number(figure: Figure) -> float | None:
    """Return a figure that is a number, else None."""
    return float(figure) if isinstance(figure, (int, float)) and not isinstance(figure, bool) else None


def relative(before: float, after: float) -> float | None:
    """Return the relative change, None where it was 0."""
    return after / before - 1.0 if before else None
