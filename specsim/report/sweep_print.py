"""A sweep in print: how often speculation pays, a row a point, what the analysis found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from specsim.report.columns import print_columns
from specsim.report.plots.labels import shown_value
from specsim.scenario import REFERENCES
from specsim.sweep.estimates import PointEstimate, point_estimates
from specsim.sweep.outcome import claim
from specsim.sweep.schedule import Rung, tensorrt_schedule, vllm_schedule
from specsim.sweep.table import SweepTable, meanings

_MAX_ROWS = 60
_FIGURES = (
    ("speedup.tpot", "TPOT speed-up"),
    ("speedup.throughput", "throughput"),
    ("speedup.energy", "energy"),
)
_ONE_METRIC = ("baseline.mean_tpot_ms", "TPOT, ms")
"""Shown where there is no speculation anywhere."""


def print_sweep(table: SweepTable, stream: TextIO, *, folder: Path | None = None) -> None:
    """Print the headline, one row a point, and the analysis.

    Parameters
    ----------
    table
        The sweep.
    stream
        Where to print.
    folder
        Where the whole table is, if anywhere.
    """
    stream.write(f"{_headline(table)}\n\n")
    points = _points(table)
    columns = [
        (title, point_estimates(table, name))
        for name, title in _shown_figures(table)
        if name in table.columns
    ]
    varied, fixed = _varied(table)
    titles = ["point", *short_keys(varied), "verdict", *(title for title, _ in columns)]
    rows = [
        [
            str(number),
            *(shown_value(table.columns[axis][row]) for axis in varied),
            _verdict(table, row),
            *(_estimate(estimates[at]) for _, estimates in columns),
        ]
        for at, (number, row) in enumerate(islice(points.items(), _MAX_ROWS))
    ]
    print_columns(titles, rows, stream)
    if len(points) > _MAX_ROWS:
        where = "in --json, or written with -o" if folder is None else f"in {folder / 'sweep.parquet'}"
        stream.write(f"and {len(points) - _MAX_ROWS} more points {where}\n")
    if fixed:
        named = (f"{axis}={shown_value(table.columns[axis][0])}" for axis in fixed)
        stream.write(f"At every point: {', '.join(named)}.\n")
    for line in _analysis(table):
        stream.write(f"{line}\n")
    stream.write(f"\n{_reading(table)}\n")


def short_keys(keys: Sequence[str]) -> list[str]:
    """Return the last word of each key where that tells it from the others, else the whole key.

    Examples
    --------
    >>> short_keys(["workload.max_concurrency", "hardware.target", "hardware.target.power.cap_w"])
    ['max_concurrency', 'hardware.target', 'cap_w']
    """
    last = [key.rpartition(".")[2] for key in keys]
    return [
        word if last.count(word) == 1 and key not in REFERENCES else key
        for key, word in zip(keys, last, strict=True)
    ]


def _varied(table: SweepTable) -> tuple[list[str], list[str]]:
    """Return the axes that have several values, and those that have one at all of several points."""
    varied = table.varied
    return (varied, [axis for axis in table.axes if axis not in varied]) if varied else (list(table.axes), [])


def _headline(table: SweepTable) -> str:
    done = len(table) - table.num_failed
    if done == 0:
        return f"No run of {len(table)} came out."
    if "speedup.tpot" not in table.columns:
        return f"{done} runs without speculation."
    estimates = point_estimates(table, "speedup.tpot")
    known = [(at, estimate.mean) for at, estimate in enumerate(estimates) if estimate is not None]
    pays = table.columns["verdict.pays"].count(True)
    text = f"Speculation pays in {pays} of {done} runs."
    if known and len(table.axes) and max(mean for _, mean in known) > 1.0:
        at, best = max(known, key=lambda pair: pair[1])
        row = list(_points(table).values())[at]
        names = short_keys(table.axes)
        labels = [shown_value(table.columns[axis][row]) for axis in table.axes]
        where = ", ".join(f"{name}={shown}" for name, shown in zip(names, labels, strict=True))
        text += f" Largest speed-up per user {best:.2f}x at {where}"
        text += f" (the largest of {len(known)}: an upper end)." if len(known) > 1 else "."
    return text


def _points(table: SweepTable) -> dict[int, int]:
    """Return the first row of every point."""
    first: dict[int, int] = {}
    for row, point in enumerate(table.columns["point"]):
        first.setdefault(cast(int, point), row)
    return dict(sorted(first.items()))


def _shown_figures(table: SweepTable) -> Sequence[tuple[str, str]]:
    shown = [(name, title) for name, title in _FIGURES if _has_any(table, name)] or [_ONE_METRIC]
    metric = str(table.about.get("metric"))
    named = next((name for name in meanings(metric) if name in table.columns), None)
    if named is not None and named not in dict(shown):
        shown.append((named, metric))
    return shown


def _has_any(table: SweepTable, name: str) -> bool:
    return any(value is not None for value in table.columns.get(name, ()))


def _verdict(table: SweepTable, row: int) -> str:
    point = table.columns["point"][row]
    rows = [at for at, number in enumerate(table.columns["point"]) if number == point]
    if any(table.columns["status"][at] == "failed" for at in rows):
        return "failed"
    if "speedup.tpot" not in table.columns or table.columns["speedup.tpot"][row] is None:
        return "-"
    claims = {claim(table.columns["verdict.pays"][at]) for at in rows}
    return claims.pop() if len(claims) == 1 else "mixed"


def _analysis(table: SweepTable) -> Iterator[str]:
    analysis = cast(Mapping[str, Any], table.about.get("analysis") or {})
    metric = table.about.get("metric")
    if "break_even" in analysis:
        yield f"\nWhere {metric} crosses 1 along {table.axes[0]} (95% interval):"
        yield from (f"  {_crossing(found)}" for found in analysis["break_even"])
        if not analysis["break_even"]:
            yield "  nowhere in the range"
    if analysis.get("schedule"):
        rungs = [Rung(**rung) for rung in analysis["schedule"]]
        yield f"\nSmallest lookahead whose interval reaches the best {metric}, by users at once:"
        yield f"  vLLM          num_speculative_tokens_per_batch_size: {vllm_schedule(rungs)}"
        yield f"  TensorRT-LLM  draft_len_schedule: {tensorrt_schedule(rungs)}"
    for name, titles in (("sobol", ("alone", "in all")), ("morris", ("mu*", "sigma"))):
        if name in analysis:
            yield f"\nWhat moves {metric} ({name}, {titles[0]} and {titles[1]}):"
            yield from (f"  {_effect(effect)}" for effect in analysis[name])
    if "tornado" in analysis:
        yield f"\nWhat moves {metric} from {analysis['at_scenario']:.3g}, one key at a time:"
        yield from (f"  {_bar(bar)}" for bar in analysis["tornado"])


def _crossing(found: Mapping[str, Any]) -> str:
    others = ", ".join(f"{key}={shown_value(label)}" for key, label in found["others"].items())
    ends = [found["low"], found["high"]]
    interval = " to ".join("beyond the range" if end is None else shown_value(end) for end in ends)
    gains = f"above 1 on the {'lower' if found['gains'] == 'below' else 'upper'} side"
    return f"{others + ': ' if others else ''}{shown_value(found['place'])} [{interval}], {gains}"


def _effect(effect: Mapping[str, Any]) -> str:
    other = "" if effect["other_half_width"] is None else f" ± {effect['other_half_width']:.2g}"
    main = f"{effect['main']:.3g} ± {effect['main_half_width']:.2g}"
    return f"{effect['key']}: {main}, {effect['other']:.3g}{other}"


def _bar(bar: Mapping[str, Any]) -> str:
    ends = [f"{shown_value(bar[f'{end}_label'])}: {_value(bar[f'at_{end}'])}" for end in ("low", "high")]
    return f"{bar['key']}: {', '.join(ends)}{'  (turns the verdict)' if bar['crosses_one'] else ''}"


def _reading(table: SweepTable) -> str:
    replications = cast(list[int], table.columns["replication"])
    if max(replications, default=0) == 0:
        return "In brackets: 95% intervals over the prompts of a run. Every point has the same luck."
    covers = (
        "luck and arrivals; the recorded prompts are the same in each"
        if table.about.get("prompts_repeat")
        else "new requests and new luck"
    )
    return f"In brackets: 95% intervals over replications ({covers}). Every point has the same luck."


def _estimate(estimate: PointEstimate | None) -> str:
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return _value(estimate.mean)
    return f"{_value(estimate.mean)} [{_value(estimate.low)}, {_value(estimate.high)}]"


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"
