"""Changes of latencies with intervals: the prompts of both runs resampled, together where they can be.

The unit is the prompt (see `specsim.results.statistics`). Two runs of the same prompts are paired: a
prompt that is drawn counts in both, and what its difficulty does to both cancels. Runs of other prompts
are resampled each on its own, and their interval is wider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.results.accounting import by_row, divide
from specsim.results.statistics import NUM_RESAMPLES, interval
from specsim.streams import Purpose, RandomStreams

if TYPE_CHECKING:
    import pandas as pd

_PERCENTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
_RESAMPLES_PER_CHUNK = 200
_SAME = ("request", "prompt", "num_prompt_tokens")


@dataclass(frozen=True, slots=True)
class Arm:
    """Latencies of the requests of one arm, [requests]."""

    prompt: Ints
    """Index of the prompt among the run's, [requests]."""
    latencies_s: Mapping[str, Floats]
    """``ttft``, ``tpot`` (NaN for a request of one token) and ``e2el``."""
    decode_tokens: Floats

    @classmethod
    def of(cls, requests: pd.DataFrame, name: str) -> Arm:
        """Latencies of one arm of a table of requests."""
        rows = requests[requests["arm"] == name]
        arrival, first, finish, tokens = (
            rows[column].to_numpy(np.float64)
            for column in ("arrival_s", "first_token_s", "finish_s", "num_output_tokens")
        )
        _, prompt = np.unique(rows["prompt"].to_numpy(), return_inverse=True)
        tpot = divide(finish - first, tokens - 1.0)
        latencies = {"ttft": first - arrival, "tpot": tpot, "e2el": finish - arrival}
        return cls(prompt.astype(np.int64), latencies, tokens - 1.0)

    @property
    def num_prompts(self) -> int:
        """Prompts of the arm."""
        return int(self.prompt.max()) + 1 if len(self.prompt) else 0

    def mean_s(self, quantity: str, weights: Floats) -> Floats:
        """Mean latency under weights of the prompts, [sets], s."""
        values = self.latencies_s[quantity]
        known = ~np.isnan(values)
        sums = self._by_prompt(np.where(known, values, 0.0))
        return divide(weights @ sums, weights @ self._by_prompt(known.astype(np.float64)))

    def percentile_s(self, quantity: str, probability: float, weights: Floats) -> Floats:
        """Percentile (Hyndman and Fan 1996, type 7) under whole weights of the prompts, [sets], s."""
        values = self.latencies_s[quantity]
        rows = np.flatnonzero(~np.isnan(values))
        rows = rows[np.argsort(values[rows], kind="stable")]
        if len(rows) == 0:
            return np.full(len(weights), np.nan)
        counts = np.cumsum(weights[:, self.prompt[rows]], axis=1)
        place = (counts[:, -1] - 1.0) * probability
        below = np.floor(place)
        low, high = (
            values[rows[np.minimum((counts <= rank[:, None]).sum(axis=1), len(rows) - 1)]]
            for rank in (below, np.minimum(below + 1.0, counts[:, -1] - 1.0))
        )
        return np.asarray(low + (place - below) * (high - low))

    def token_weighted_tpot_s(self, weights: Floats) -> Floats:
        """Time of all tokens after the first ÷ their number, [sets], s."""
        tokens = self._by_prompt(np.where(self.decode_tokens > 0, self.decode_tokens, 0.0))
        tpot = np.where(self.decode_tokens > 0, self.latencies_s["tpot"], 0.0)
        return divide(weights @ self._by_prompt(tpot * self.decode_tokens), weights @ tokens)

    def _by_prompt(self, values: Floats) -> Floats:
        return by_row(self.prompt, values, self.num_prompts)


Arms: TypeAlias = Mapping[str, Arm]
"""The arms of a run by name."""
Statistic: TypeAlias = Callable[[Arms, Floats], Floats]
"""Of a run and weights of its prompts, [sets, prompts]: the statistic, [sets]."""


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % limits of a relative change."""

    low: float
    high: float


def are_same_prompts(before: pd.DataFrame, after: pd.DataFrame) -> bool:
    """Tell whether two tables of requests hold the same requests of the same prompts.

    That they are numbered alike is for the caller to know: from the seed, or from the trace.
    """
    tables = [frame[frame["arm"] == "baseline"].sort_values("request") for frame in (before, after)]
    if len(tables[0]) != len(tables[1]):
        return False
    same = all(np.array_equal(tables[0][name].to_numpy(), tables[1][name].to_numpy()) for name in _SAME)
    classes = [table["request_class"].astype(str).tolist() for table in tables]
    return same and classes[0] == classes[1]


def change_intervals(
    before: pd.DataFrame, after: pd.DataFrame, streams: RandomStreams, *, is_paired: bool
) -> dict[str, Interval]:
    """Return the interval of the relative change of every latency metric, by dotted name.

    Parameters
    ----------
    before, after
        Requests of both runs, one row a request and arm.
    streams
        Draws come from `Purpose.BOOTSTRAP`.
    is_paired
        The prompts are the same in both.
    """
    names = [
        name for name in ("baseline", "speculation") if all((f["arm"] == name).any() for f in (before, after))
    ]
    arms = [{name: Arm.of(frame, name) for name in names} for frame in (before, after)]
    counts = [next(iter(run.values())).num_prompts for run in arms]
    generator = streams.generator(Purpose.BOOTSTRAP)
    statistics = _statistics(names)
    drawn: dict[str, list[Floats]] = {metric: [] for metric in statistics}
    for start in range(0, NUM_RESAMPLES, _RESAMPLES_PER_CHUNK):
        size = min(_RESAMPLES_PER_CHUNK, NUM_RESAMPLES - start)
        old = _weights(generator, size, counts[0])
        new = old if is_paired else _weights(generator, size, counts[1])
        for metric, statistic in statistics.items():
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn[metric].append(statistic(arms[1], new) / statistic(arms[0], old) - 1.0)
    limits = {metric: interval(np.concatenate(parts), min(counts)) for metric, parts in drawn.items()}
    return {metric: Interval(*ends) for metric, ends in limits.items() if ends is not None}


def _statistics(names: list[str]) -> dict[str, Statistic]:
    """Return how each metric follows from the arms of a run and weights of its prompts."""
    found: dict[str, Statistic] = {}
    for name in names:
        for quantity in ("ttft", "tpot", "e2el"):
            found[f"{name}.mean_{quantity}_ms"] = partial(_mean, name, quantity)
            for word, probability in _PERCENTILES.items():
                found[f"{name}.{word}_{quantity}_ms"] = partial(_percentile, name, quantity, probability)
        found[f"{name}.token_weighted_tpot_ms"] = partial(_token_weighted_tpot, name)
    if len(names) == 2:
        found["speedup.tpot"] = partial(_speedup, _token_weighted_tpot)
        found["speedup.e2el"] = partial(_speedup, _mean_e2el)
    return found


def _mean(name: str, quantity: str, run: Arms, weights: Floats) -> Floats:
    return run[name].mean_s(quantity, weights)


def _percentile(name: str, quantity: str, probability: float, run: Arms, weights: Floats) -> Floats:
    return run[name].percentile_s(quantity, probability, weights)


def _token_weighted_tpot(name: str, run: Arms, weights: Floats) -> Floats:
    return run[name].token_weighted_tpot_s(weights)


def _mean_e2el(name: str, run: Arms, weights: Floats) -> Floats:
    return run[name].mean_s("e2el", weights)


def _speedup(of: Callable[[str, Arms, Floats], Floats], run: Arms, weights: Floats) -> Floats:
    """Time of the baseline ÷ time of speculation."""
    return of("baseline", run, weights) / of("speculation", run, weights)


def _weights(generator: np.random.Generator, num_resamples: int, num_prompts: int) -> Floats:
    """How often each prompt is drawn in each resample, [resamples, prompts]."""
    shares = np.full(num_prompts, 1.0 / num_prompts)
    return generator.multinomial(num_prompts, shares, size=num_resamples).astype(np.float64)
