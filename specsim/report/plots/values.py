"""Values of an axis as they are shown: in a table, on a tick, in a sentence."""

from __future__ import annotations

import json
import math
from numbers import Real

from specsim.report.plots.labels import unit_of, words

_PREFIXES = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
)
_SCALED = ("B/s", "FLOP/s", "B", "W", "J", "s")
"""Units that take a prefix."""


def shown_value(value: object) -> str:
    """Return a value of an axis as it is shown: four digits of a number that is not whole, a block in short.

    Examples
    --------
    >>> shown_value(0.123456), shown_value(16), shown_value("l4")
    ('0.1235', '16', 'l4')
    >>> shown_value('{"kind": "confidence", "threshold": 0.4}')
    'confidence, threshold=0.4'
    >>> shown_value("{word}")
    '{word}'
    """
    block = _block(value)
    if block is not None:
        return ", ".join(f"{item}" if key == "kind" else f"{key}={item}" for key, item in block.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def short_value(value: object) -> str:
    """Return a value for a tick or a cell: three digits and a prefix where it is far from 1.

    Examples
    --------
    >>> short_value(3.35e12), short_value(1.5e-6), short_value(0.7), short_value(1024), short_value("l4")
    ('3.35T', '1.5µ', '0.7', '1024', 'l4')
    """
    number = _number(value)
    if number is None or not math.isfinite(number):
        return shown_value(value)
    if number == 0 or 1e-3 <= abs(number) < 1e5:
        return shown_value(value)
    size, prefix = _prefix(number)
    return f"{number / size:.3g}{prefix}"


def named_value(key: str, value: object) -> str:
    """Return a key's value in words, with its unit.

    Examples
    --------
    >>> named_value("hardware.target.memory.bandwidth_bytes_per_s", 3.35e12)
    'memory bandwidth 3.35 TB/s'
    >>> named_value("workload.max_concurrency", 8)
    'users at once 8'
    """
    unit, number = unit_of(key), _number(value)
    if number is None or not unit:
        return f"{words(key)} {short_value(value)}"
    size, prefix = _prefix(number) if unit in _SCALED else (1.0, "")
    return f"{words(key)} {number / size:.3g} {prefix}{unit}"


def _block(value: object) -> dict[str, object] | None:
    """Return a mapping that is written as JSON, None for anything else."""
    if not isinstance(value, str) or not value.startswith("{"):
        return None
    try:
        block = json.loads(value)
    except ValueError:
        return None
    return block if isinstance(block, dict) else None


def _number(value: object) -> float | None:
    """Return a number of Python or NumPy as a float, None for anything else."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else None


def _prefix(value: float) -> tuple[float, str]:
    return next(((size, prefix) for size, prefix in _PREFIXES if abs(value) >= size), (1.0, ""))
