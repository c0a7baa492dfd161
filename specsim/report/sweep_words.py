"""What a sweep says in sentences, on a terminal as on a page: its headline, its intervals, its caveats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from specsim.report.numbers import ABSENT, with_interval
from specsim.report.plots.values import short_value
from specsim.sweep.estimates import PointEstimate, point_estimates
from specsim.sweep.outcome import claim
from specsim.sweep.table import SweepTable

Named: TypeAlias = Callable[[str, object], str]
"""How an axis is written with a value of it: ``K=3``, ``draft tokens a round 3``."""
_MOST_VALUES = 4
"""Values of an axis that are written out."""


def headline(sweep: SweepTable, named: Named) -> str:
    """Return how often speculation pays, and where most.

    Parameters
    ----------
    sweep
        The sweep.
    named
        How axes and values are written.
    """
    done = len(sweep) - sweep.num_failed
    failed = f" {sweep.num_failed} failed." if sweep.num_failed and done else ""
    if done == 0:
        return f"No run of {len(sweep)} came out."
    if "speedup.tpot" not in sweep.columns:
        return f"{done} runs without speculation.{failed}"
    pays = sweep.columns["verdict.pays"].count(True)
    text = f"Speculation pays in {pays} of {done} runs.{failed}"
    best = best_point(sweep)
    if best is None:
        return text
    row, gain, num_known = best
    where = ", ".join(named(axis, sweep.columns[axis][row]) for axis in sweep.axes)
    text += f" Largest speed-up per user {gain:.2f}x at {where}"
    return f"{text} (the largest of {num_known}: an upper end)." if num_known > 1 else f"{text}."


def best_point(sweep: SweepTable) -> tuple[int, float, int] | None:
    """Return the first row of the point of the largest speed-up, that speed-up, and of how many points."""
    if "speedup.tpot" not in sweep.columns:
        return None
    pairs = zip(rows_of_points(sweep), point_estimates(sweep, "speedup.tpot"), strict=True)
    known = [(estimate.mean, rows[0]) for rows, estimate in pairs if estimate is not None]
    if not known:
        return None
    gain, row = max(known, key=lambda pair: pair[0])
    return row, gain, len(known)


def rows_of_points(sweep: SweepTable) -> list[list[int]]:
    """Return the rows of each point, its replications, in the order of the points."""
    rows: dict[int, list[int]] = {}
    for row, point in enumerate(sweep.columns["point"]):
        rows.setdefault(cast(int, point), []).append(row)
    return [at for _, at in sorted(rows.items())]


def claim_of(sweep: SweepTable, rows: Sequence[int]) -> str:
    """Return whether speculation pays at a point, in words; ``mixed`` where its replications disagree."""
    if any(sweep.columns["status"][row] == "failed" for row in rows):
        return "failed"
    if "speedup.tpot" not in sweep.columns or sweep.columns["speedup.tpot"][rows[0]] is None:
        return ABSENT
    claims = {claim(sweep.columns["verdict.pays"][row]) for row in rows}
    return claims.pop() if len(claims) == 1 else "mixed"


def same_at_every_point(sweep: SweepTable, named: Named) -> str:
    """Return the axes that have one value at all of several points, as a sentence; empty if there is none."""
    fixed = [axis for axis in sweep.axes if axis not in sweep.varied] if sweep.varied else []
    if not fixed:
        return ""
    return f"At every point: {', '.join(named(axis, sweep.columns[axis][0]) for axis in fixed)}."


def estimate_cell(estimate: PointEstimate | None) -> str:
    """Return a figure of a point with its interval."""
    return ABSENT if estimate is None else with_interval(estimate.mean, estimate.low, estimate.high)


def intervals_line(sweep: SweepTable) -> str:
    """Return what the intervals in brackets are over."""
    replications = cast(list[int], sweep.columns["replication"])
    if max(replications, default=0) == 0:
        over = "the prompts of a run"
    elif sweep.about.get("prompts_repeat"):
        over = "replications (luck and arrivals; the recorded prompts are the same in each)"
    else:
        over = "replications (new requests and new luck)"
    return f"In brackets: 95% intervals over {over}. Every point has the same luck."


def caveat_lines(sweep: SweepTable, named: Named) -> Iterator[str]:
    """Yield what limits the reading of the sweep, each with the points at which it holds if not at all.

    Parameters
    ----------
    sweep
        The sweep.
    named
        How axes and values are written.
    """
    for found in cast(Sequence[Mapping[str, Any]], sweep.about.get("caveats") or ()):
        where = _where(sweep, found, named)
        yield f"{where}: {found['text']}" if where else found["text"]


def _where(sweep: SweepTable, found: Mapping[str, Any], named: Named) -> str:
    count = f"{found['num_points']} of {found['num_known']} points"
    if found["axis"] is not None:
        values = _values(sweep.columns[found["axis"]], found["values"])
        return f"At {named(found['axis'], values)} ({count})"
    if not found["points"]:
        return ""
    more = "" if len(found["points"]) == found["num_points"] else ", …"
    return f"At {count} ({', '.join(map(str, found['points']))}{more})"


def _values(column: Sequence[object], values: Sequence[object]) -> str:
    """Return values of an axis: as a range where it has no others between, else the first few."""
    if len(values) <= _MOST_VALUES:
        return ", ".join(map(short_value, values))
    numbers = [value for value in values if isinstance(value, (int, float))]
    if len(numbers) == len(values):
        low, high = min(numbers), max(numbers)
        between = {value for value in column if isinstance(value, (int, float)) and low <= value <= high}
        if between == set(numbers):
            return f"{short_value(low)} to {short_value(high)}"
    rest = len(values) - _MOST_VALUES
    return f"{', '.join(map(short_value, values[:_MOST_VALUES]))} and {rest} more"
