"""A comparison in print: what changed in the configuration, and every metric that it moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from specsim.config.nodes import shortened
from specsim.report.columns import print_columns
from specsim.report.numbers import ABSENT, figure, signed_percent
from specsim.sweep.changes import Change
from specsim.sweep.compare import Comparison, Delta

_SHOWN = (
    "speedup.tpot",
    "speedup.e2el",
    "speedup.throughput",
    "speedup.energy",
    "speedup.cost",
    *(
        f"{arm}.{metric}"
        for arm in ("speculation", "baseline")
        for metric in (
            "mean_tpot_ms",
            "p99_tpot_ms",
            "mean_ttft_ms",
            "p99_ttft_ms",
            "mean_e2el_ms",
            "p99_e2el_ms",
            "output_throughput",
            "request_goodput",
            "energy_per_token_joules",
            "usd_per_mtok",
            "tokens_per_round",
            "limit_fraction",
        )
    ),
    "speculation.spec_decode_acceptance_length",
    "speculation.spec_decode_acceptance_rate",
)
"""Metrics in print, in this order; ``--json`` has all."""
_ABSENT_KEY = "(absent)"
_MAX_CHANGES = 20
_LEAST_SHOWN = 1e-4
"""Smallest relative change that is shown."""
_DIGITS = 4
"""Of metrics and, for changes, one fewer: two runs that are compared often differ by little."""


def print_comparison(comparison: Comparison, stream: TextIO) -> None:
    """Print a comparison as plain text."""
    stream.write(f"{comparison.before} -> {comparison.after}\n")
    stream.write(f"Speculation: {' -> '.join(comparison.verdicts)}\n\nConfiguration\n")
    for change in comparison.changes[:_MAX_CHANGES]:
        stream.write(f"  {change.key}: {' -> '.join(_sides(change))}\n")
    stream.write("".join(f"  {line}\n" for line in _rest(comparison.changes)) + "\n")
    deltas = _shown(comparison)
    titles = _titles(deltas, comparison.is_paired)
    print_columns(titles, (_cells(delta, len(titles)) for delta in deltas), stream)
    stream.write(f"{_unchanged(comparison, deltas)}{comparison.basis}.\n")
    stream.write("".join(f"{sentence}.\n" for sentence in comparison.one_sided))
    stream.write("".join(f"FAILED  {failure}\n" for failure in comparison.failures))
    stream.write(f"{_passed(comparison)}\n" if comparison.num_gates else "")


def print_markdown(comparison: Comparison, stream: TextIO) -> None:
    """Print a comparison as Markdown, for a pull request."""
    stream.write(f"### {_code(comparison.before)} → {_code(comparison.after)}\n\n")
    stream.write(f"Speculation: {' → '.join(comparison.verdicts)}.\n\n")
    for failure in comparison.failures:
        stream.write(f"- ❌ {_escaped(failure)}\n")
    if comparison.num_gates:
        stream.write(f"- {'' if comparison.failures else '✅ '}{_passed(comparison)}\n\n")
    if comparison.changes:
        stream.write("| configuration | before | after |\n|---|---|---|\n")
        for change in comparison.changes[:_MAX_CHANGES]:
            sides = map(_code, _sides(change))
            stream.write(f"| {_code(change.key)} | {' | '.join(sides)} |\n")
        stream.write("\n")
    stream.write("".join(f"{line}\n\n" for line in _rest(comparison.changes)))
    deltas = _shown(comparison)
    titles = _titles(deltas, comparison.is_paired)
    if deltas:
        stream.write(f"| {' | '.join(titles)} |\n|---|{'--:|' * (len(titles) - 1)}\n")
        for delta in deltas:
            stream.write(f"| {' | '.join(_escaped(cell) for cell in _cells(delta, len(titles)))} |\n")
        stream.write("\n")
    sentences = [f"{_unchanged(comparison, deltas)}{comparison.basis}", *comparison.one_sided]
    stream.write("".join(f"{_escaped(sentence)}.\n" for sentence in sentences))


def _rest(changes: Sequence[Change]) -> Iterator[str]:
    if not changes:
        yield "Nothing in the configuration changed."
    if len(changes) > _MAX_CHANGES:
        yield f"and {len(changes) - _MAX_CHANGES} more keys"


def _shown(comparison: Comparison) -> list[Delta]:
    """Return the metrics in print that moved, in their order."""
    by_name = {delta.metric: delta for delta in comparison.deltas}
    return [by_name[name] for name in _SHOWN if name in by_name and not _is_still(by_name[name])]


def _is_still(delta: Delta) -> bool:
    """Tell whether a metric changed by so little that no digit of it would be shown."""
    moved = delta.change if delta.change is not None else delta.after - delta.before
    return all(abs(change) < _LEAST_SHOWN for change in (moved, delta.least or 0.0, delta.most or 0.0))


def _passed(comparison: Comparison) -> str:
    passed = comparison.num_gates - len(comparison.failures)
    return f"{passed} of {comparison.num_gates} gates passed"


def _unchanged(comparison: Comparison, shown: Sequence[Delta]) -> str:
    named = [delta for delta in comparison.deltas if delta.metric in _SHOWN]
    still = len(named) - len(shown)
    return (
        f"{still} of {len(named)} metrics moved by less than {_percent(_LEAST_SHOWN)[1:]}. " if still else ""
    )


def _titles(deltas: Sequence[Delta], is_paired: bool | None) -> list[str]:
    pairing = "" if is_paired is None else ", paired" if is_paired else ", not paired"
    points = ["least", "most"] if any(delta.least is not None for delta in deltas) else []
    return ["metric", "before", "after", "change", f"95% interval{pairing}", *points]


def _cells(delta: Delta, num_cells: int) -> list[str]:
    if delta.low is None or delta.high is None:
        interval = ABSENT
    else:
        interval = f"{_percent(delta.low)} to {_percent(delta.high)}"
    points = [_percent(delta.least), _percent(delta.most)]
    sides = [figure(side, digits=_DIGITS) for side in (delta.before, delta.after)]
    cells = [delta.metric, *sides, _percent(delta.change), interval]
    return [*cells, *points][:num_cells]


def _percent(change: float | None) -> str:
    return ABSENT if change is None else f"{signed_percent(change, decimals=_DIGITS - 2)}%"


def _sides(change: Change) -> list[str]:
    """Return both values of a key, short: numbers are rounded where that leaves them apart."""
    sides = [_ABSENT_KEY if side is None else side for side in (change.before, change.after)]
    rounded = [_rounded(side) for side in sides]
    return [shortened(side) for side in (sides if rounded[0] == rounded[1] else rounded)]


def _rounded(text: str) -> str:
    try:
        return text if len(text) <= _DIGITS + 2 else f"{float(text):.{_DIGITS + 2}g}"
    except ValueError:
        return text


def _code(text: str) -> str:
    """Return text as code in Markdown, whatever is in it."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{_escaped(text)}{fence}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
