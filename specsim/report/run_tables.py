"""Tables that the plots of one run draw: everything that is computed for a figure is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from specsim.arrays import Floats
from specsim.report.run_files import Run
from specsim.results.metrics import Metrics
from specsim.results.summary import number

if TYPE_CHECKING:
    import pandas as pd

_NUM_INTERVALS = 240
"""Equal intervals that a run's time is cut into for a figure."""

_MAX_ROUNDS = 24
"""Rounds of one request that are drawn; more would not be told apart."""


def parts_per_token(run: Run, metric: str, *, scale: float = 1.0) -> pd.DataFrame | None:
    """Return time, energy or operations per output token by part (index) and arm; None where unknown.

    Parameters
    ----------
    run
        The run.
    metric
        ``time_seconds``, ``energy_joules`` or ``operations_flops``.
    scale
        What the amounts are multiplied by, such as 1e3 for milliseconds.
    """
    import pandas as pd

    columns = {}
    for arm in run.arms:
        metrics = _metrics(run, arm)
        parts, tokens = metrics.get(metric), number(metrics, "total_output_tokens")
        known = [value for value in parts.values() if value is not None] if isinstance(parts, dict) else []
        if not isinstance(parts, dict) or not tokens or len(known) < len(parts):
            return None
        columns[arm] = {part: value * scale / tokens for part, value in zip(parts, known, strict=True)}
    return pd.DataFrame(columns)


def acceptance_by_position(run: Run) -> pd.DataFrame | None:
    """Return ``position`` and ``acceptance_rate``, unconditional; None where nothing was drafted."""
    import pandas as pd

    metrics = run.summary["speculation"]
    rates = None if metrics is None else metrics.get("spec_decode_per_position_acceptance_rates")
    if not isinstance(rates, list) or not rates:
        return None
    return pd.DataFrame({"position": range(1, len(rates) + 1), "acceptance_rate": rates})


def operating_points(run: Run) -> pd.DataFrame | None:
    """Return the points of the target's device on its roofline; None without FLOPs and bytes.

    Columns ``name``, ``flops_per_byte`` and ``flops_per_s``: sums over all steps, divided. A draft on a
    device of its own has another roof and is left out.
    """
    import pandas as pd

    names = {
        ("baseline", "decode", "target"): "decode, baseline",
        ("speculation", "decode", "target"): "verify",
        ("speculation", "decode", "draft"): "draft",
        ("baseline", "prefill", "target"): "prefill",
        ("speculation", "prefill", "draft"): "prefill, draft",
    }
    hardware = run.summary["scenario"]["hardware"]
    shares_device = isinstance(hardware, dict) and hardware["draft"] == "target"
    rows = []
    for (arm, phase, model), name in names.items():
        if model == "draft" and not shares_device:
            continue
        steps = run.steps[(run.steps["arm"] == arm) & (run.steps["phase"] == phase)]
        time_s, num_bytes, flops = (steps[f"{model}_{of}"].sum() for of in ("s", "bytes", "flops"))
        if time_s > 0 and num_bytes > 0 and flops > 0:
            rows.append((name, flops / num_bytes, flops / time_s))
    return pd.DataFrame(rows, columns=["name", "flops_per_byte", "flops_per_s"]) if rows else None


def power_over_time(run: Run) -> pd.DataFrame | None:
    """Return mean power in equal intervals, ``arm``, ``time_s``, ``value`` in W; None without joules."""
    import pandas as pd

    tables = []
    for arm in run.arms:
        steps = run.steps[run.steps["arm"] == arm]
        energy_j = (steps["draft_energy_j"] + steps["target_energy_j"]).to_numpy(dtype=np.float64)
        if not np.all(np.isfinite(energy_j)) or not energy_j.any():
            return None
        start_s, end_s = _span(steps)
        idle_w = number(_metrics(run, arm), "static_power_baseline_watts") or 0.0
        edges = np.linspace(start_s[0], end_s[-1], _NUM_INTERVALS + 1)
        busy_j = _cumulative(edges, start_s, end_s, energy_j)
        busy_s = _cumulative(edges, start_s, end_s, end_s - start_s)
        width_s = np.diff(edges)
        value = (np.diff(busy_j) + idle_w * (width_s - np.diff(busy_s))) / width_s
        tables.append(pd.DataFrame({"arm": arm, "time_s": edges[:-1], "value": value}))
    return pd.concat(tables)


def cache_over_time(run: Run) -> pd.DataFrame:
    """Return cached tokens read by a decode step, the most in equal intervals: ``arm, time_s, value``."""
    import pandas as pd

    tables = []
    for arm in run.arms:
        steps = run.steps[(run.steps["arm"] == arm) & (run.steps["phase"] == "decode")]
        start_s, end_s = _span(steps)
        if not len(start_s):
            continue
        edges = np.linspace(start_s[0], end_s[-1], _NUM_INTERVALS + 1)
        interval = np.minimum(np.searchsorted(edges, start_s, side="right") - 1, _NUM_INTERVALS - 1)
        most = steps.groupby(interval)["context_tokens"].max()
        tables.append(
            pd.DataFrame({"arm": arm, "time_s": edges[most.index.to_numpy()], "value": most.to_numpy()})
        )
    return pd.concat(tables)


def request_gantt(run: Run, request: int = 0) -> pd.DataFrame:
    """Return what the devices did for one request: ``lane, activity, start_s, duration_s``.

    Times count from the request's arrival. The first rounds of the speculative arm are kept, and what
    the baseline does in the same time.
    """
    import pandas as pd

    bars: list[tuple[str, str, float, float]] = []
    until_s = np.inf
    for arm in reversed(run.arms):
        bars = _lanes(run, arm, request, until_s) + bars
        until_s = max(start_s + duration_s for _, _, start_s, duration_s in bars)
    return pd.DataFrame(bars, columns=["lane", "activity", "start_s", "duration_s"])


def _lanes(run: Run, arm: str, request: int, until_s: float) -> list[tuple[str, str, float, float]]:
    """Bars of one request in one arm up to a time since its arrival."""
    rows = run.requests[(run.requests["arm"] == arm) & (run.requests["request"] == request)]
    arrival_s, first_token_s, finish_s = rows[["arrival_s", "first_token_s", "finish_s"]].to_numpy()[0]
    steps = run.steps[run.steps["arm"] == arm].sort_values("start_s")
    start_s, end_s = _span(steps)
    tolerance_s = 1e-9 * max(finish_s, 1e-9)
    during = steps[(start_s >= arrival_s - tolerance_s) & (end_s <= finish_s + tolerance_s)]
    decodes = during[(during["phase"] == "decode") & (during["start_s"] >= first_token_s - tolerance_s)]
    kept = decodes.head(_MAX_ROUNDS) if until_s == np.inf else decodes
    last_s = float(kept["start_s"].max()) if len(kept) else float(finish_s)
    has_draft = bool((during["draft_s"] > 0).any())
    target_lane, draft_lane = f"{arm}: target", f"{arm}: draft"
    bars: list[tuple[str, str, float, float]] = []
    columns = ["start_s", "draft_s", "target_s", "num_emitted"]
    for phase, values in zip(during["phase"], during[columns].to_numpy(dtype=np.float64), strict=True):
        start, draft_s, target_s, _ = (float(value) for value in values)
        since_s = start - float(arrival_s)
        if start > last_s or since_s >= until_s:
            break
        is_own = phase == "prefill" and start < first_token_s
        activities = ("prefill", "prefill") if is_own else ("draft", "verify" if has_draft else "decode")
        if phase == "prefill" and not is_own:
            activities = ("others", "others")
        if phase == "decode" and start < first_token_s - tolerance_s:
            activities = ("others", "others")
        # A prefill pass runs the target first, a round the draft.
        draft_start, target_start = (
            (since_s + target_s, since_s) if phase == "prefill" else (since_s, since_s + draft_s)
        )
        if draft_s > 0:
            bars.append((draft_lane, activities[0], draft_start, draft_s))
        if target_s > 0:
            bars.append((target_lane, activities[1], target_start, target_s))
    first_s = min((bar[2] for bar in bars), default=0.0)
    if first_s > 0:
        bars.insert(0, (target_lane, "waits", 0.0, first_s))
    return bars


def _span(steps: pd.DataFrame) -> tuple[Floats, Floats]:
    start_s = steps["start_s"].to_numpy(dtype=np.float64)
    return start_s, start_s + (steps["draft_s"] + steps["target_s"]).to_numpy(dtype=np.float64)


def _cumulative(edges: Floats, start_s: Floats, end_s: Floats, amount: Floats) -> Floats:
    """Amount spent before each edge, where each step spends its own evenly between start and end."""
    order = np.argsort(start_s, kind="stable")
    total = np.cumsum(amount[order])
    times = np.column_stack([start_s[order], end_s[order]]).ravel()
    sums = np.column_stack([total - amount[order], total]).ravel()
    # Rounding of seconds may put an end a hair behind the next start.
    return np.asarray(np.interp(edges, np.maximum.accumulate(times), sums), dtype=np.float64)


def _metrics(run: Run, arm: str) -> Metrics:
    return run.summary["baseline"] if arm == "baseline" else cast(Metrics, run.summary["speculation"])
