"""A comparison in print: what changed in the configuration, and every metric that it moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from specsim.report.columns import print_columns
from specsim.sweep.changes import Change
from specsim.sweep.compare import Comparison, Delta

_SHOWN = (
    "speedup.tpot",
    "speedup.e2el",
    "speedup.throughput",
    "speedup.energy",
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
            "tokens_per_round",
            "limit_fraction",
        )
    ),
    "speculation.spec_decode_acceptance_length",
    "speculation.spec_decode_acceptance_rate",
)
"""Metrics in print, in this order; ``--json`` has all."""
_MAX_CHANGES = 20


def print_comparison(comparison: Comparison, stream: TextIO) -> None:
    """Print a comparison as plain text."""
    stream.write(f"{comparison.before} -> {comparison.after}\n\nConfiguration\n")
    for change in comparison.changes[:_MAX_CHANGES]:
        stream.write(f"  {change.key}: {_side(change.before)} -> {_side(change.after)}\n")
    stream.write("".join(f"  {line}\n" for line in _rest(comparison.changes)) + "\n")
    deltas = _shown(comparison)
    titles = _titles(deltas)
    print_columns(titles, (_cells(delta, len(titles)) for delta in deltas), stream)
    stream.write(f"{_unchanged(comparison, deltas)}{comparison.basis}.\n")
    stream.write("".join(f"FAILED  {failure}\n" for failure in comparison.failures))


def print_markdown(comparison: Comparison, stream: TextIO) -> None:
    """Print a comparison as Markdown, for a pull request."""
    stream.write(f"### `{comparison.before}` → `{comparison.after}`\n\n")
    for failure in comparison.failures:
        stream.write(f"- ❌ {_escaped(failure)}\n")
    stream.write("\n" if comparison.failures else "")
    if comparison.changes:
        stream.write("| configuration | before | after |\n|---|---|---|\n")
        for change in comparison.changes[:_MAX_CHANGES]:
            sides = (f"`{_escaped(_side(side))}`" for side in (change.before, change.after))
            stream.write(f"| `{_escaped(change.key)}` | {' | '.join(sides)} |\n")
        stream.write("\n")
    stream.write("".join(f"{line}\n\n" for line in _rest(comparison.changes)))
    deltas = _shown(comparison)
    titles = _titles(deltas)
    if deltas:
        stream.write(f"| {' | '.join(titles)} |\n|---|{'--:|' * (len(titles) - 1)}\n")
        for delta in deltas:
            stream.write(f"| {' | '.join(_escaped(cell) for cell in _cells(delta, len(titles)))} |\n")
        stream.write("\n")
    stream.write(f"{_unchanged(comparison, deltas)}{comparison.basis}.\n")


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
    moved = [delta.before - delta.after, delta.least or 0.0, delta.most or 0.0]
    return not any(moved)


def _unchanged(comparison: Comparison, shown: Sequence[Delta]) -> str:
    named = [delta for delta in comparison.deltas if delta.metric in _SHOWN]
    still = len(named) - len(shown)
    return f"{still} of {len(named)} metrics did not change. " if still else ""


def _titles(deltas: Sequence[Delta]) -> list[str]:
    points = ["least", "most"] if any(delta.least is not None for delta in deltas) else []
    return ["metric", "before", "after", "change", "95% interval", *points]


def _cells(delta: Delta, num_cells: int) -> list[str]:
    if delta.low is None or delta.high is None:
        interval = "-"
    else:
        interval = f"{_percent(delta.low)} to {_percent(delta.high)}"
    points = [_percent(delta.least), _percent(delta.most)]
    cells = [delta.metric, _figure(delta.before), _figure(delta.after), _percent(delta.change), interval]
    return [*cells, *points][:num_cells]


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:+.2f}%"


def _figure(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 9999.5 else f"{value:.0f}"


def _side(value: str | None) -> str:
    return "(absent)" if value is None else value


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
