"""The two arms side by side: speed-ups, relative changes and all intervals, from one set of resamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.results.accounting import divide
from specsim.results.statistics import Resampling, interval
from specsim.results.summary import Bounds, Estimate, Intervals, Speedup, finite
from specsim.results.sums import MEANS, Sums, totals_of
from specsim.streams import RandomStreams

_SPEEDUPS: Mapping[str, tuple[str, bool]] = {
    "e2el": ("mean_e2el_ms", True),
    "tpot": ("token_weighted_tpot_ms", True),
    "throughput": ("output_throughput", False),
    "energy": ("energy_per_token_joules", True),
    "cost": ("usd_per_mtok", True),
}
"""Metric of each speed-up, and whether less of it is better."""

_DRAFTING = frozenset(
    {"spec_decode_acceptance_rate", "spec_decode_acceptance_length", "wasted_positions_per_token"}
)
"""Metrics of an arm that drafts."""


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """Sums of both arms by prompt, as totals and as totals of resampled prompts.

    The first arm is the baseline; without a second one there are intervals but no speed-ups.
    """

    totals: list[Sums]
    """For each arm, [1]."""
    resampled: list[Sums]
    """For each arm, [resamples]."""
    num_prompts: int

    @classmethod
    def of(cls, sums: Sequence[Sums], streams: RandomStreams) -> ArmComparison:
        """Resample the prompts of all arms together; the arms hold the same prompts."""
        counts = [arm["num_requests"] for arm in sums]
        if any(not np.array_equal(count, counts[0]) for count in counts):
            raise DomainError("the two arms do not hold the same requests, so they cannot be paired")
        resampling = Resampling(len(counts[0]), streams)
        return cls([totals_of(arm) for arm in sums], resampling.totals(sums), resampling.num_prompts)

    def speedup(self) -> Speedup:
        """Ratios of the arms, above 1 where speculation gains; from sums, never a mean of ratios."""
        means, samples = speedups(self.totals), speedups(self.resampled)
        found = {name: self._estimate(float(means[name][0]), samples[name]) for name in means}
        return {
            "e2el": found["e2el"],
            "tpot": found["tpot"],
            "throughput": found["throughput"],
            "energy": found["energy"],
            "cost": found["cost"],
        }

    def operations_factor(self) -> float:
        """Operations per decoded token, speculation ÷ baseline (Leviathan et al. 2023, Theorem 3.11)."""
        return float(_quotient(self.totals, "flops_per_decode_token")[0])

    def wasted_positions_per_token(self) -> float:
        """Positions that the target verified in vain, per decoded token."""
        return float(MEANS["wasted_positions_per_token"].of(self.totals[1])[0])

    def intervals(self) -> Intervals:
        """Limits of every mean and rate of each arm, and of its change."""
        baseline, *others = [self._bounded(values) for values in arm_means(self.resampled)]
        if not others:
            return {
                "num_prompts": self.num_prompts,
                "baseline": baseline,
                "speculation": None,
                "change": None,
            }
        change = {name: _quotient(self.resampled, name) - 1.0 for name in baseline}
        return {
            "num_prompts": self.num_prompts,
            "baseline": baseline,
            "speculation": others[0],
            "change": self._bounded(change),
        }

    def _estimate(self, mean: float, samples: Floats) -> Estimate:
        low, high = self._bounds(samples) or (None, None)
        return {"mean": finite(mean), "ci_low": low, "ci_high": high, "num_prompts": self.num_prompts}

    def _bounded(self, values: Mapping[str, Floats]) -> dict[str, Bounds]:
        return {name: self._bounds(found) for name, found in values.items()}

    def _bounds(self, values: Floats) -> Bounds:
        limits = interval(values, self.num_prompts)
        return None if limits is None else list(limits)


def speedups(arms: Sequence[Sums]) -> dict[str, Floats]:
    """Return every ratio of baseline and speculation that is above 1 where speculation gains, [sets]."""
    return {
        name: _quotient(arms[::-1] if is_cost else arms, metric)
        for name, (metric, is_cost) in _SPEEDUPS.items()
    }


def arm_means(arms: Sequence[Sums]) -> list[dict[str, Floats]]:
    """Return for each arm every metric of it that is a ratio of sums, [sets], by its name in the summary."""
    means = [{name: ratio.of(arm) for name, ratio in MEANS.items()} for arm in arms]
    for arm in means:
        arm["spec_decode_acceptance_length"] = 1.0 + arm.pop("accepted_per_draft")
        del arm["flops_per_decode_token"]
    if len(means) > 1:
        means[1]["operations_factor"] = _quotient(arms, "flops_per_decode_token")
    means[0] = {name: values for name, values in means[0].items() if name not in _DRAFTING}
    return means


def _quotient(arms: Sequence[Sums], metric: str) -> Floats:
    """Second arm ÷ first of one metric, [sets]; NaN where the first is zero."""
    first, second = (MEANS[metric].of(arm) for arm in arms)
    return divide(second, first)
