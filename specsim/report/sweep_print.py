"""A sweep in print: how often speculation pays, a row a point, what the analysis found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from specsim.report.columns import print_columns
from specsim.report.lines import page_width, wrapped
from specsim.report.numbers import figure
from specsim.report.plots.values import shown_value
from specsim.report.sweep_words import (
    caveat_lines,
    claim_of,
    estimate_cell,
    headline,
    intervals_line,
    rows_of_points,
    same_at_every_point,
)
from specsim.scenario import REFERENCES
from specsim.sweep.estimates import point_estimates
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
    names = dict(zip(table.axes, short_keys(table.axes), strict=True))

    def named(axis: str, value: object) -> str:
        return f"{names[axis]}={shown_value(value)}"

    stream.write(f"{headline(table, named)}\n\n")
    points = rows_of_points(table)
    columns = [
        (title, point_estimates(table, name))
        for name, title in _shown_figures(table)
        if name in table.columns
    ]
    varied = table.varied or list(table.axes)
    titles = ["point", *short_keys(varied), "verdict", *(title for title, _ in columns)]
    rows = [
        [
            str(table.columns["point"][replications[0]]),
            *(shown_value(table.columns[axis][replications[0]]) for axis in varied),
            claim_of(table, replications),
            *(estimate_cell(estimates[at]) for _, estimates in columns),
        ]
        for at, replications in enumerate(points[:_MAX_ROWS])
    ]
    print_columns(titles, rows, stream)
    if len(points) > _MAX_ROWS:
        where = "in --json, or written with -o" if folder is None else f"in {folder / 'sweep.parquet'}"
        stream.write(f"and {len(points) - _MAX_ROWS} more points {where}\n")
    fixed = same_at_every_point(table, named)
    stream.write(f"{fixed}\n" if fixed else "")
    for line in _analysis(table):
        stream.write(f"{line}\n")
    stream.write(f"\n{intervals_line(table)}\n")
    caveats = list(caveat_lines(table, named))
    stream.write("\nHow wide to read it\n" if caveats else "")
    width = page_width(stream)
    for line in caveats:
        stream.write(wrapped(f"  - {line}", width) + "\n")


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


def _shown_figures(table: SweepTable) -> Sequence[tuple[str, str]]:
    shown = [(name, title) for name, title in _FIGURES if _has_any(table, name)] or [_ONE_METRIC]
    metric = str(table.about.get("metric"))
    named = next((name for name in meanings(metric) if name in table.columns), None)
    if named is not None and named not in dict(shown):
        shown.append((named, metric))
    return shown


def _has_any(table: SweepTable, name: str) -> bool:
    return any(value is not None for value in table.columns.get(name, ()))


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
        yield f"\nWhat moves {metric} from {figure(analysis['at_scenario'])}, one key at a time:"
        yield from (f"  {_bar(bar)}" for bar in analysis["tornado"])


def _crossing(found: Mapping[str, Any]) -> str:
    others = ", ".join(f"{key}={shown_value(label)}" for key, label in found["others"].items())
    ends = [found["low"], found["high"]]
    interval = " to ".join("beyond the range" if end is None else shown_value(end) for end in ends)
    gains = f"above 1 on the {'lower' if found['gains'] == 'below' else 'upper'} side"
    return f"{others + ': ' if others else ''}{shown_value(found['place'])} [{interval}], {gains}"


def _effect(effect: Mapping[str, Any]) -> str:
    other = "" if effect["other_half_width"] is None else f" ± {figure(effect['other_half_width'], digits=2)}"
    main = f"{figure(effect['main'])} ± {figure(effect['main_half_width'], digits=2)}"
    return f"{effect['key']}: {main}, {figure(effect['other'])}{other}"


def _bar(bar: Mapping[str, Any]) -> str:
    ends = [f"{shown_value(bar[f'{end}_label'])}: {figure(bar[f'at_{end}'])}" for end in ("low", "high")]
    return f"{bar['key']}: {', '.join(ends)}{'  (turns the verdict)' if bar['crosses_one'] else ''}"
