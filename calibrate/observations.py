"""From rows to what a fit sees: one time an observation, repeats of a cell taken together."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from calibrate.measurements import Measurements
from specsim.arrays import Floats, Ints

_CELL = (
    "model",
    "dtype",
    "tensor_parallel_size",
    "phase",
    "excludes",
    "num_positions",
    "num_sequences",
    "context_tokens",
    "power_cap_w",
    "sm_lock_hz",
    "memory_clock_hz",
)
"""What makes two rows the same cell."""


@dataclass(frozen=True, slots=True)
class Observations:
    """Cells with the median of their times."""

    rows: Measurements
    """One row a cell, its time in ``gpu_s``; idle phases are left out."""
    num_repeats: Ints
    """Rows that the cell was measured in."""
    repeat_spread: float | None
    """Median over cells of the relative spread of repeats; None where nothing was repeated."""


def observe(measurements: Measurements) -> Observations:
    """Return the timed cells of a trace.

    A row with both times counts twice: by the device's timers without the launch, by the host's clock
    as a whole. Repeats of a cell are taken together by their median, so that a cell counts once however
    often it was measured.
    """
    steps = measurements.take(measurements.is_step)
    both = np.isfinite(steps.gpu_s) & np.isfinite(steps.wall_s)
    device = replace(steps, gpu_s=steps.time_s, wall_s=np.full(len(steps), np.nan))
    device = replace(device, excludes=np.where(both, _with_launch(steps), steps.excludes))
    host = steps.take(both)
    host = replace(host, gpu_s=host.wall_s, wall_s=np.full(len(host), np.nan))
    return _medians(_joined(device, host))


def _with_launch(rows: Measurements) -> np.ndarray:
    return np.array(
        ["+".join(sorted({*filter(None, one.split("+")), "launch"})) for one in rows.excludes.tolist()],
        dtype=np.str_,
    )


def _joined(first: Measurements, second: Measurements) -> Measurements:
    columns = [one.name for one in fields(first) if one.name != "models"]
    return first.with_columns(
        {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in columns}
    )


def _medians(rows: Measurements) -> Observations:
    cell = _cells(rows)
    order = np.argsort(cell, kind="stable")
    _, starts, counts = np.unique(cell[order], return_index=True, return_counts=True)
    first = order[starts]
    kept = rows.take(first)
    if len(first) == len(rows):
        return Observations(kept, counts, None)
    parts = np.split(order, starts[1:])
    median_of = {
        name: np.array([_median(getattr(rows, name)[part]) for part in parts])
        for name in ("gpu_s", "energy_j", "window_s", "sm_clock_hz")
    }
    spreads = [float(np.std(np.log(rows.gpu_s[part]))) for part in parts if len(part) > 1]
    return Observations(kept.with_columns(median_of), counts, float(np.median(spreads)))


def _cells(rows: Measurements) -> Ints:
    """Return the number of each row's cell."""
    cell = np.zeros(len(rows), dtype=np.int64)
    for name in _CELL:
        values = getattr(rows, name)
        if values.dtype.kind == "f":
            values = np.nan_to_num(values, nan=-1.0)
        _, index = np.unique(values, return_inverse=True)
        _, cell = np.unique(cell * (index.max(initial=0) + 1) + index, return_inverse=True)
    return cell


def _median(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")
