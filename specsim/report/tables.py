"""A run's summary in print: the verdict, both arms side by side, where everything went, how to read it.

Takes the summary and computes nothing but shares and units. Plain text that reads the same on a
terminal and in a pipe; rich only lays out columns and wraps lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.table import Table

from specsim.report.acceptance import acceptance_lines
from specsim.report.lines import page_width, wrapped
from specsim.report.numbers import ABSENT, figure, signed_percent, with_interval
from specsim.report.plots.parts import PART_NAMES
from specsim.results.metrics import Metrics
from specsim.results.summary import Bounds, Estimate, Speedup, Summary, number


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the comparison."""

    metric: str
    title: str
    scale: float = 1.0


_ROWS = (
    _Row("mean_tpot_ms", "TPOT mean, ms"),
    _Row("p99_tpot_ms", "TPOT p99, ms"),
    _Row("mean_itl_ms", "ITL mean, ms"),
    _Row("p99_itl_ms", "ITL p99, ms"),
    _Row("mean_ttft_ms", "TTFT mean, ms"),
    _Row("p99_ttft_ms", "TTFT p99, ms"),
    _Row("mean_e2el_ms", "E2EL mean, ms"),
    _Row("p99_e2el_ms", "E2EL p99, ms"),
    _Row("output_throughput", "output tokens/s"),
    _Row("request_throughput", "requests/s"),
    _Row("request_goodput", "goodput, req/s"),
    _Row("energy_per_token_joules", "energy, J/token"),
    _Row("usd_per_mtok", "USD/Mtok"),
    _Row("tokens_per_round", "tokens/round"),
    _Row("spec_decode_acceptance_length", "acceptance length"),
    _Row("spec_decode_acceptance_rate", "acceptance, %"),
)

_GUESSES = {"energy_per_token_joules": "power_is_estimated", "usd_per_mtok": "price_is_estimated"}
"""What the provenance says where a metric rests on a guess."""

_LIMITS = (
    ("Physical limit of", "limit_ms_per_token", "ms"),
    ("Physical limit of", "limit_joules_per_token", "J"),
    ("Floor of the chips alone for", "device_limit_joules_per_token", "J"),
)
"""Metrics by what they bound, with their unit."""


def verdict_line(summary: Summary) -> str:
    """Return the verdict on one line."""
    return f"VERDICT  {summary['verdict']['text']}"


def print_summary(summary: Summary, stream: TextIO) -> None:
    """Print the verdict, then the tables; as wide as the terminal, 80 columns where there is none."""
    console = Console(
        file=stream,
        width=page_width(stream),
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    stream.write(verdict_line(summary) + "\n")
    for section in (_comparison, _breakdown, _efficiency, _reading):
        stream.write("\n")
        for part in section(summary):
            if isinstance(part, Table):
                console.print(part)
            else:
                stream.write(wrapped(part, console.width) + "\n")


def _comparison(summary: Summary) -> Iterator[Table | str]:
    """Baseline | speculation | change, with 95 % intervals below the values that have one."""
    # Two estimates and a change, each with its interval, just fit 80 columns.
    table = _plain_table("", *comparison_head(summary), gap=1)
    for row in comparison_rows(summary):
        table.add_row(*row)
    yield table
    yield reading_note(summary)
    if summary["speedup"] is not None:
        yield speedup_line(summary["speedup"])


def comparison_head(summary: Summary) -> tuple[str, ...]:
    """Return the titles of the columns of `comparison_rows` after the first."""
    return ("baseline",) if summary["speculation"] is None else ("baseline", "speculation", "change")


def comparison_rows(summary: Summary) -> Iterator[tuple[str, ...]]:
    """Yield title, baseline and, with speculation, its value and the change, of every known metric."""
    for row in _ROWS:
        cells = tuple(_cells(summary, row))
        if any(cell != ABSENT for cell in cells):
            guess = _GUESSES.get(row.metric)
            is_guess = guess is not None and summary["provenance"].get(guess) is True
            yield (f"est. {row.title.removeprefix('energy, ')}" if is_guess else row.title, *cells)


def reading_note(summary: Summary) -> str:
    """Return what the brackets and the metrics mean."""
    num_prompts = summary["intervals"]["num_prompts"]
    brackets = f"In brackets: 95% intervals over {num_prompts} prompts. " if num_prompts > 1 else ""
    return (
        f"{brackets}p99: by linear interpolation. TPOT: per token after the first. "
        "ITL: between chunks, one a verify step."
    )


def speedup_line(speedup: Speedup) -> str:
    """Return the speed-ups with their intervals on one line."""
    named: tuple[tuple[str, Estimate], ...] = (
        ("TPOT", speedup["tpot"]),
        ("E2EL", speedup["e2el"]),
        ("throughput", speedup["throughput"]),
        ("energy", speedup["energy"]),
        ("cost", speedup["cost"]),
    )
    shown = [f"{title} {_ratio(estimate)}" for title, estimate in named if estimate["mean"]]
    return f"Speed-up, ratios of sums: {', '.join(shown)}."


def _cells(summary: Summary, row: _Row) -> Iterator[str]:
    baseline, speculation = summary["baseline"], summary["speculation"]
    intervals = summary["intervals"]
    before = number(baseline, row.metric)
    yield with_interval(before, *_ends(intervals["baseline"].get(row.metric)))
    if speculation is None:
        return
    after = number(speculation, row.metric)
    yield with_interval(after, *_ends((intervals["speculation"] or {}).get(row.metric)))
    change = None if not before or after is None else after / before - 1.0
    ends = _ends((intervals["change"] or {}).get(row.metric))
    yield with_interval(change, *ends, show=signed_percent, unit="%")


def _breakdown(summary: Summary) -> Iterator[Table | str]:
    """Where time, energy and operations went, per output token of each arm."""
    head, rows = breakdown_rows(summary)
    table = _plain_table(*head)
    for row in rows:
        table.add_row(*row)
    yield table


def breakdown_rows(summary: Summary) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and rows of where time, energy and operations went, per output token of each arm."""
    speculation = summary["speculation"]
    arms = [summary["baseline"]] if speculation is None else [summary["baseline"], speculation]
    quantities = [
        (title, metric, scale)
        for title, metric, scale in (
            ("ms", "time_seconds", 1e3),
            ("J", "energy_joules", 1.0),
            ("GFLOP", "operations_flops", 1e-9),
        )
        if _total(arms[-1], metric) is not None
    ]
    names = ("base", "spec")[: len(arms)]
    head = ("per output token", *(f"{title} {name}" for title, _, _ in quantities for name in names))
    rows = []
    for part, name in [*PART_NAMES.items(), (None, "total")]:
        values = [_per_token(arm, metric, part, scale) for _, metric, scale in quantities for arm in arms]
        rows.append((name, *(figure(value) for value in values)))
    return head, rows


def _efficiency(summary: Summary) -> Iterator[Table | str]:
    """Fraction of the physical limit, operations factor, wasted positions."""
    speculation = summary["speculation"]
    arms = {"baseline": summary["baseline"]} | ({} if speculation is None else {"speculation": speculation})
    for title, metric in (("time", "limit_fraction"), ("energy", "energy_limit_fraction")):
        shares = {name: number(metrics, metric) for name, metrics in arms.items()}
        shown = [f"{name} {100 * share:.0f} %" for name, share in shares.items() if share is not None]
        if shown:
            yield f"Physical limit / simulated decode {title}: {', '.join(shown)}."
    for title, metric, unit in _LIMITS:
        bounds = {name: number(metrics, metric) for name, metrics in arms.items()}
        shown = [f"{name} {figure(bound)} {unit}" for name, bound in bounds.items() if bound is not None]
        if shown:
            is_guessed = unit == "J" and summary["provenance"]["power_is_estimated"]
            rests = " (on guessed watts)" if is_guessed else ""
            yield f"{title} a decoded token: {', '.join(shown)}{rests}."
    if speculation is None:
        return
    factor = number(speculation, "operations_factor")
    if factor is not None:
        yield f"Operations factor (decode operations per token, x baseline): {factor:.2f}."
    wasted = number(speculation, "wasted_positions_per_token")
    if wasted is not None:
        yield f"Positions verified in vain per token: {wasted:.2f}."
    yield from acceptance_lines(summary)


def _reading(summary: Summary) -> Iterator[Table | str]:
    """How wide to read it, and what is not covered."""
    yield "How wide to read it"
    yield f"  {summary['how_to_read']}"
    if summary["known_limitations"]:
        yield "Known limitations"
        for sentence in summary["known_limitations"]:
            yield f"  - {sentence}"


def _plain_table(first: str, *others: str, gap: int = 2) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), show_header=True, header_style="")
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", overflow="fold")
    return table


def _ratio(estimate: Estimate) -> str:
    return with_interval(estimate["mean"], estimate["ci_low"], estimate["ci_high"], unit="x")


def _ends(bounds: Bounds) -> tuple[float | None, float | None]:
    return (None, None) if bounds is None else (bounds[0], bounds[1])


def _per_token(metrics: Metrics, metric: str, part: str | None, scale: float) -> float | None:
    """Return a part of a quantity per output token, the whole of it for None."""
    tokens = number(metrics, "total_output_tokens")
    parts = metrics.get(metric)
    amount = _total(metrics, metric) if part is None or not isinstance(parts, dict) else parts[part]
    return None if not tokens or amount is None else amount * scale / tokens


def _total(metrics: Metrics, metric: str) -> float | None:
    parts = metrics.get(metric)
    amounts = list(parts.values()) if isinstance(parts, dict) else [None]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
