"""What is doubtful about a trace as a whole: times in another unit, and rows that had to be dropped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrate.measurements import Measurements
from specsim.errors import ConfigError, Fault
from specsim.hardware.formats import BYTES_PER_VALUE

_FASTEST_BYTES_PER_S = 40e12
"""No device reads its memory this fast (2026: 8 TB/s); a row that implies it has its time in another unit."""

_SLOWEST_BYTES_PER_S = 2e8
"""No device that runs language models reads this slowly."""

_US = 1e-6


def unit_faults(steps: Measurements, file: str) -> list[Fault]:
    """Refuse times that no memory could serve, and warn of times that only a wrong unit explains."""
    # A row of attention alone reads no weights.
    rows = steps.take(steps.is_step & (np.char.find(steps.excludes, "linear") < 0))
    if not len(rows):
        return []
    elements = np.array([float(one.common_elements) for one in rows.models])[rows.model]
    size = np.array([BYTES_PER_VALUE[str(one)] for one in rows.dtype])
    implied = elements * size / rows.tensor_parallel_size / rows.time_s
    if implied.max() > _FASTEST_BYTES_PER_S:
        worst = int(np.argmax(implied))
        where = int(rows.row[worst])
        message = (
            f"a time of {rows.time_s[worst] / _US:.4g} µs would mean reading weights at "
            f"{implied[worst] / 1e12:.3g} TB/s; is the time in µs, and of the whole step?"
        )
        raise ConfigError([Fault(file, where, None, "t_gpu_us", message)])
    if implied.max() < _SLOWEST_BYTES_PER_S:
        fastest = f"the fastest row reads weights at {implied.max() / 1e9:.3g} GB/s"
        message = f"{fastest}; are the times in µs, not in ns?"
        return [Fault(file, None, None, "t_gpu_us", message)]
    return []


def dropped_warnings(dropped: Sequence[tuple[int, str]], file: str) -> list[Fault]:
    """Return one warning a reason for the rows that were dropped, given as (row number, reason)."""
    by_reason: dict[str, list[int]] = {}
    for number, reason in dropped:
        by_reason.setdefault(reason, []).append(number)
    return [
        Fault(
            file,
            numbers[0],
            None,
            reason.partition(": ")[0],
            f"{reason.partition(': ')[2]}; dropped {describe_rows(numbers)}",
        )
        for reason, numbers in by_reason.items()
    ]


def describe_rows(numbers: Sequence[int]) -> str:
    """Rows in words, runs joined and long lists cut.

    Examples
    --------
    >>> describe_rows([3, 4, 5, 9])
    '4 rows (3–5, 9)'
    """
    ordered = sorted(numbers)
    runs: list[tuple[int, int]] = []
    for number in ordered:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    shown = [str(low) if low == high else f"{low}–{high}" for low, high in runs[:8]]
    more = ", …" if len(runs) > 8 else ""
    noun = "row" if len(ordered) == 1 else "rows"
    return f"{len(ordered)} {noun} ({', '.join(shown)}{more})"
