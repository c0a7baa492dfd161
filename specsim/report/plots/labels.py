"""Axis labels: what a metric or a key is called in a figure, with its unit, and its values as shown."""

from __future__ import annotations

import json
import math
from numbers import Real

from specsim.results.schema import REQUESTS, ROUNDS, STEPS

_METRICS = {
    "mean_ttft_ms": "mean time to first token, ms",
    "p99_ttft_ms": "p99 time to first token, ms",
    "mean_tpot_ms": "mean time per output token, ms",
    "p99_tpot_ms": "p99 time per output token, ms",
    "mean_itl_ms": "mean time between chunks, ms",
    "mean_e2el_ms": "mean end-to-end latency, ms",
    "output_throughput": "output tokens/s",
    "request_throughput": "requests/s",
    "energy_per_token_joules": "energy per token, J",
    "usd_per_mtok": "cost per million tokens, USD",
    "spec_decode_acceptance_length": "tokens a round that drafts",
    "spec_decode_acceptance_rate": "accepted / drafted, %",
    "operations_factor": "operations per token, × baseline",
    "limit_fraction": "physical limit / simulated time",
}
_SPEEDUPS = {
    "e2el": "end-to-end speed-up, ×",
    "tpot": "speed-up per token, ×",
    "throughput": "throughput gain, ×",
    "energy": "energy gain per token, ×",
    "cost": "cost gain per token, ×",
}
_AXES = {
    "workload.max_concurrency": "users at once",
    "workload.request_rate": "requests/s offered",
    "speculative_config.num_speculative_tokens": "draft tokens a round, K",
    "K": "draft tokens a round, K",
    "hardware.target": "device",
    "hardware.draft": "device of the draft",
    "target.model": "target",
    "speculative_config.model": "draft",
}
_UNITS = {
    "bytes_per_s": "B/s",
    "flops_per_s": "FLOP/s",
    "usd_per_hour": "$/h",
    "bytes": "B",
    "ms": "ms",
    "s": "s",
    "w": "W",
    "j": "J",
}
"""Unit by the suffix of a key; the longer first."""
_VAGUE = ("kind", "path", "model", "name")
"""Last steps of keys that say little alone."""
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


def label(key: str) -> str:
    """Return the axis label of a summary metric, a table's column or a scenario key, by its dotted name.

    Examples
    --------
    >>> label("speedup.tpot"), label("speculation.mean_tpot_ms"), label("num_sequences")
    ('speed-up per token, ×', 'speculation: mean time per output token, ms', 'sequences in the batch')
    >>> label("hardware.target.memory.bandwidth_bytes_per_s")
    'memory bandwidth, B/s'
    """
    if key in _AXES:
        return _AXES[key]
    first, _, rest = key.partition(".")
    if first == "speedup" and rest.partition(".")[0] in _SPEEDUPS:
        return _SPEEDUPS[rest.partition(".")[0]]
    if first in ("baseline", "speculation") and rest:
        return f"{first}: {_METRICS.get(rest, rest.replace('_', ' '))}"
    for column in (*REQUESTS, *STEPS, *ROUNDS):
        if column.name == key:
            return f"{column.meaning}, {column.unit}" if column.unit else column.meaning
    return _METRICS.get(key) or _key_label(key)


def words(key: str) -> str:
    """Return a label without its unit, for sentences.

    Examples
    --------
    >>> words("speedup.energy"), words("hardware.target.power.cap_w")
    ('energy gain per token', 'power cap')
    """
    return label(key).partition(",")[0]


def sentence(text: str) -> str:
    """Return words with a capital at their beginning, units within as they are.

    Examples
    --------
    >>> sentence("energy per output token, J")
    'Energy per output token, J'
    """
    return text[:1].upper() + text[1:]


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
    unit = label(key).rpartition(", ")[2]
    number = _number(value)
    if number is None or unit not in _UNITS.values():
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


def _key_label(key: str) -> str:
    """Return the words of a key and the unit of its suffix; inside a profile, the block's name too."""
    steps = key.split(".")
    is_inside = steps[0] == "hardware" and len(steps) > 2
    named = steps[2:] if is_inside else steps[-2:] if steps[-1] in _VAGUE else steps[-1:]
    units = []
    found = []
    for step in named:
        suffix = next((one for one in _UNITS if step == one or step.endswith(f"_{one}")), None)
        units += [] if suffix is None else [_UNITS[suffix]]
        found.append(step if suffix is None else step.removesuffix(suffix).rstrip("_"))
    text = " ".join(word.replace("_", " ") for word in found if word)
    owner = "draft's " if steps[:2] == ["hardware", "draft"] else ""
    return f"{owner}{text}{''.join(f', {unit}' for unit in units[-1:])}"
