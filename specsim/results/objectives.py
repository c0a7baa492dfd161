"""Service objectives: which of them a run misses."""

from __future__ import annotations

from collections.abc import Mapping

from specsim.errors import DomainError
from specsim.results.summary import Summary, number


def missed_objectives(summary: Summary, slo: Mapping[str, float]) -> list[str]:
    """Return one sentence for each objective that the run misses, judged with speculation where there is any.

    Parameters
    ----------
    summary
        Of the run.
    slo
        Largest allowed values by metric, such as ``{"p99_ttft_ms": 200}``.

    Raises
    ------
    DomainError
        If an objective names no metric of the summary.
    """
    name, metrics = (
        ("baseline", summary["baseline"])
        if summary["speculation"] is None
        else ("speculation", summary["speculation"])
    )
    missed = []
    for metric, limit in slo.items():
        if metric not in metrics:
            raise DomainError(f"no metric '{metric}' to set an objective on (such as p99_ttft_ms)")
        value = number(metrics, metric)
        if value is not None and value > limit:
            missed.append(f"{name}: {metric} is {value:.4g}, the objective is at most {limit:.4g}")
    return missed
