"""Axis labels: what a metric or a column is called in a figure, with its unit, and its values as shown."""

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
    "energy": "energy per token, baseline ÷ speculation",
    "cost": "cost per token, baseline ÷ speculation",
}
_AXES = {
    "workload.max_concurrency": "users at once",
    "workload.request_rate": "requests/s offered",
    "speculative_config.num_speculative_tokens": "draft tokens a round, K",
    "K": "draft tokens a round, K",
    "hardware.target": "device",
    "distributions.acceptance_rate": "acceptance rate",
}


def label(key: str) -> str:
    """Return the axis label of a summary metric, a table's column or a scenario key, by its dotted name.

    Examples
    --------
    >>> label("speedup.tpot"), label("speculation.mean_tpot_ms"), label("num_sequences")
    ('speed-up per token, ×', 'speculation: mean time per output token, ms', 'sequences in the batch')
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
    return _METRICS.get(key, key.rpartition(".")[2].replace("_", " "))


def shown_value(value: object) -> str:
    """Return a value of an axis as it is shown: four digits of a number that is not whole.

    Examples
    --------
    >>> shown_value(0.123456), shown_value(16), shown_value("l4")
    ('0.1235', '16', 'l4')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)
