"""Changes between two runs with intervals: the prompts of both resampled, together where they can be.

The unit is the prompt (see `specsim.results.statistics`). Two runs of the same prompts are paired: a
prompt that is drawn counts in both, and what its difficulty does to both cancels. Runs of other prompts
are resampled each on its own, and their interval is wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specsim.arrays import Floats
from specsim.results.accounting import divide
from specsim.results.comparison import arm_means, speedups
from specsim.results.percentiles import resampled_percentiles
from specsim.results.schema import PROMPTS
from specsim.results.statistics import Drawing, Resampling, interval
from specsim.results.sums import RequestTimes, Sums
from specsim.streams import RandomStreams

if TYPE_CHECKING:
    import pandas as pd

_PERCENTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
_SUMS = tuple(column.name for column in PROMPTS if column.name not in ("arm", "prompt"))


@dataclass(frozen=True, slots=True)
class KeptTables:
    """Tables of a run from which its metrics can be computed anew for any choice of prompts."""

    requests: pd.DataFrame
    """One row a request and arm."""
    prompts: pd.DataFrame
    """One row a prompt and arm."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms, the baseline first."""
        return tuple(name for name in ("baseline", "speculation") if (self.prompts["arm"] == name).any())

    @property
    def num_prompts(self) -> int:
        """Prompts of each arm."""
        return int((self.prompts["arm"] == "baseline").sum())


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % limits of a relative change."""

    low: float
    high: float


def other_prompts(before: KeptTables, after: KeptTables) -> str | None:
    """Say in which way the requests of two runs are not the same, None where they are.

    That they are numbered alike is for the caller to know: from the seed, or from the trace.
    """
    tables = [
        frame[frame["arm"] == "baseline"].sort_values("request")
        for frame in (before.requests, after.requests)
    ]
    counts = [len(table) for table in tables]
    if counts[0] != counts[1]:
        return f"one has {counts[0]} requests, the other {counts[1]}"
    for column, what in (
        ("request", "the numbers of the requests"),
        ("prompt", "the prompts"),
        ("num_prompt_tokens", "the lengths of the prompts"),
        ("request_class", "the classes of the requests"),
    ):
        if tables[0][column].astype(str).tolist() != tables[1][column].astype(str).tolist():
            return f"{what} differ"
    return None


def change_intervals(
    before: KeptTables, after: KeptTables, streams: RandomStreams, *, is_paired: bool
) -> dict[str, Interval]:
    """Return the interval of the relative change of every metric that prompts decide, by dotted name.

    Parameters
    ----------
    before, after
        Tables of both runs.
    streams
        Draws come from `Purpose.BOOTSTRAP`.
    is_paired
        The prompts are the same in both.
    """
    arms = [name for name in before.arms if name in after.arms]
    resamplings = [
        Resampling(before.num_prompts, streams),
        Resampling(after.num_prompts, streams, key=() if is_paired else (Drawing.UNPAIRED,)),
    ]
    old, new = (
        _samples(tables, arms, resampling)
        for tables, resampling in zip((before, after), resamplings, strict=True)
    )
    num_prompts = min(resampling.num_prompts for resampling in resamplings)
    limits = {name: interval(divide(new[name], old[name]) - 1.0, num_prompts) for name in old}
    return {name: Interval(*ends) for name, ends in limits.items() if ends is not None}


def _samples(tables: KeptTables, arms: Sequence[str], resampling: Resampling) -> dict[str, Floats]:
    """Return every metric of the resampled prompts, [resamples], by dotted name."""
    totals = resampling.totals([_sums(tables.prompts, name) for name in arms])
    found = {
        f"{name}.{metric}": values
        for name, means in zip(arms, arm_means(totals), strict=True)
        for metric, values in means.items()
    }
    if len(arms) > 1:
        found |= {f"speedup.{name}": values for name, values in speedups(totals).items()}
    for name in arms:
        found |= _percentiles(tables.requests, name, resampling)
    return found


def _sums(prompts: pd.DataFrame, arm: str) -> Sums:
    rows = prompts[prompts["arm"] == arm].sort_values("prompt")
    return {name: rows[name].to_numpy(np.float64) for name in _SUMS}


def _percentiles(requests: pd.DataFrame, arm: str, resampling: Resampling) -> dict[str, Floats]:
    rows = requests[requests["arm"] == arm]
    _, prompt = np.unique(rows["prompt"].to_numpy(), return_inverse=True)
    times = RequestTimes.of(lambda column: rows[column].to_numpy(np.float64))
    found = {}
    for quantity, values in (("ttft", times.ttft_s), ("tpot", times.tpot_s), ("e2el", times.e2el_s)):
        percentiles = resampled_percentiles(values, prompt, list(_PERCENTILES.values()), resampling)
        for word, samples in zip(_PERCENTILES, percentiles, strict=True):
            found[f"{arm}.{word}_{quantity}_ms"] = samples
    return found
