"""A figure of each point with its interval: over prompts from one run, over replications from several."""

from __future__ import annotations

from dataclasses import dataclass

from specsim.sweep.repeats import mean_of
from specsim.sweep.table import SweepTable, meanings


@dataclass(frozen=True, slots=True)
class PointEstimate:
    """A figure of one point."""

    mean: float
    """Over its replications."""
    low: float | None
    """Ends of its 95 % interval; None where there is none."""
    high: float | None
    num_replications: int


def point_estimates(table: SweepTable, metric: str) -> list[PointEstimate | None]:
    """Return a figure of every point, [points]; None where a replication of it failed or has no such figure.

    Raises
    ------
    DomainError
        If there is no such figure in the table.
    """
    values = table.numbers(metric)
    rows: dict[int, list[int]] = {}
    for row, point in enumerate(table.columns["point"]):
        assert isinstance(point, int)
        rows.setdefault(point, []).append(row)
    return [_estimate(table, metric, [values[row] for row in at], at[0]) for _, at in sorted(rows.items())]


def _estimate(table: SweepTable, metric: str, values: list[float | None], row: int) -> PointEstimate | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    mean = mean_of(numbers)
    if mean.half_width is not None:
        low, high = mean.value - mean.half_width, mean.value + mean.half_width
        return PointEstimate(mean.value, low, high, len(numbers))
    ends = [
        _limit(table, f"{name}.{end}", row)
        for end in ("ci_low", "ci_high")
        for name in [_column(table, metric)]
    ]
    return PointEstimate(mean.value, ends[0], ends[1], 1)


def _column(table: SweepTable, metric: str) -> str:
    return next(name for name in meanings(metric) if name in table.columns)


def _limit(table: SweepTable, name: str, row: int) -> float | None:
    value = table.columns[name][row] if name in table.columns else None
    return float(value) if isinstance(value, (int, float)) else None
