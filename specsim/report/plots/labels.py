"""Labels: what a metric or a key is called in a figure, with its unit."""

from __future__ import annotations

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


def label(key: str) -> str:
    """Return the axis label of a summary metric, a table's column or a scenario key, by its dotted name.

    Examples
    --------
    >>> label("speedup.tpot"), label("speculation.mean_tpot_ms"), label("num_sequences")
    ('speed-up per token, ×', 'speculation: mean time per output token, ms', 'sequences in the batch')
    >>> label("hardware.target.memory.bandwidth_bytes_per_s"), label("cost.usd_per_hour")
    ('memory bandwidth, B/s', 'cost, $/h')
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


def unit_of(key: str) -> str:
    """Return the unit that a key carries in its name, empty where it carries none.

    Examples
    --------
    >>> unit_of("hardware.target.power.cap_w"), unit_of("hardware.target")
    ('W', '')
    """
    unit = label(key).rpartition(", ")[2]
    return unit if unit in _UNITS.values() else ""


def sentence(text: str) -> str:
    """Return words with a capital at their beginning, units within as they are.

    Examples
    --------
    >>> sentence("energy per output token, J")
    'Energy per output token, J'
    """
    return text[:1].upper() + text[1:]


def _key_label(key: str) -> str:
    """Return the words of a key and the unit of its suffix; inside a profile, the block's name too."""
    steps = key.split(".")
    is_inside = steps[0] == "hardware" and len(steps) > 2
    says_little = steps[-1] in _VAGUE or steps[-1] in _UNITS
    named = steps[2:] if is_inside else steps[-2:] if says_little else steps[-1:]
    units = []
    found = []
    for step in named:
        suffix = next((one for one in _UNITS if step == one or step.endswith(f"_{one}")), None)
        units += [] if suffix is None else [_UNITS[suffix]]
        found.append(step if suffix is None else step.removesuffix(suffix).rstrip("_"))
    text = " ".join(word.replace("_", " ") for word in found if word)
    owner = "draft's " if steps[:2] == ["hardware", "draft"] else ""
    return f"{owner}{text}{''.join(f', {unit}' for unit in units[-1:])}"
