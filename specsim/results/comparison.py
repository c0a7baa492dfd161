"""The two arms side by side: speed-ups, relative changes and all intervals, from one set of resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.results.accounting import divide
from specsim.results.statistics import interval, resample
from specsim.results.summary import Bounds, Estimate, Intervals, Speedup, finite
from specsim.results.sums import MEANS, Sums, totals_of
from specsim.streams import RandomStreams


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sums of both arms by prompt, as totals and as totals of resampled prompts.

    The first arm is the baseline; without a second one there are intervals but no speed-ups.
    """

    totals: list[Sums]
    """For each arm, [1]."""
    resampled: list[Sums]
    """For each arm, [resamples]."""
    num_prompts: int

    @classmethod
    def of(cls, sums: Sequence[Sums], streams: RandomStreams) -> Comparison:
        """Resample the prompts of all arms together; the arms hold the same prompts."""
        sizes = {len(arm["requests"]) for arm in sums}
        if len(sizes) != 1 or any(not np.array_equal(arm["requests"], sums[0]["requests"]) for arm in sums):
            raise DomainError("the two arms do not hold the same requests, so they cannot be paired")
        return cls([totals_of(arm) for arm in sums], resample(list(sums), streams), sizes.pop())

    def speedup(self) -> Speedup:
        """Ratios of the arms, above 1 where speculation gains; from sums, never a mean of ratios."""
        return {
            "e2el": self._estimate("mean_e2el_ms", is_cost=True),
            "tpot": self._estimate("token_weighted_tpot_ms", is_cost=True),
            "throughput": self._estimate("output_throughput", is_cost=False),
            "energy": self._estimate("energy_per_token_joules", is_cost=True),
        }

    def operations_factor(self) -> float:
        """Operations per decoded token, speculation ÷ baseline (Leviathan et al. 2023, Theorem 3.11)."""
        return float(_quotient(self.totals, "flops_per_decode_token")[0])

    def wasted_positions_per_token(self) -> float:
        """Positions that the target verified in vain, per decoded token."""
        return float(MEANS["wasted_positions_per_token"].of(self.totals[1])[0])

    def intervals(self) -> Intervals:
        """Limits of every mean and rate of each arm, and of its change."""
        baseline, *others = [self._arm_intervals(arm) for arm in self.resampled]
        if not others:
            return {
                "num_prompts": self.num_prompts,
                "baseline": _without_drafting(baseline),
                "speculation": None,
                "change": None,
            }
        factor = self._bounds(_quotient(self.resampled, "flops_per_decode_token"))
        length = others[0].pop("accepted_per_draft")
        speculation = others[0] | {
            "spec_decode_acceptance_length": [1.0 + limit for limit in length] if length else None,
            "operations_factor": factor,
        }
        undrafted = _without_drafting(baseline)
        change = {name: self._bounds(_quotient(self.resampled, name) - 1.0) for name in undrafted}
        return {
            "num_prompts": self.num_prompts,
            "baseline": undrafted,
            "speculation": speculation,
            "change": change,
        }

    def _arm_intervals(self, arm: Sums) -> dict[str, Bounds]:
        reported = (name for name in MEANS if name != "flops_per_decode_token")
        return {name: self._bounds(MEANS[name].of(arm)) for name in reported}

    def _estimate(self, metric: str, *, is_cost: bool) -> Estimate:
        mean = float(_gain(self.totals, metric, is_cost=is_cost)[0])
        low, high = self._bounds(_gain(self.resampled, metric, is_cost=is_cost)) or (None, None)
        return {"mean": finite(mean), "ci_low": low, "ci_high": high, "num_prompts": self.num_prompts}

    def _bounds(self, values: Floats) -> Bounds:
        limits = interval(values, self.num_prompts)
        return None if limits is None else list(limits)


def _without_drafting(intervals: dict[str, Bounds]) -> dict[str, Bounds]:
    """Return the intervals of an arm that never drafts."""
    drafting = {"accepted_per_draft", "spec_decode_acceptance_rate", "wasted_positions_per_token"}
    return {name: bounds for name, bounds in intervals.items() if name not in drafting}


def _quotient(arms: Sequence[Sums], metric: str) -> Floats:
    """Speculation ÷ baseline of one metric, [sets]; NaN where the baseline is zero."""
    baseline, speculation = (MEANS[metric].of(arm) for arm in arms)
    return divide(speculation, baseline)


def _gain(arms: Sequence[Sums], metric: str, *, is_cost: bool) -> Floats:
    """Ratio of the arms that is above 1 where speculation gains, [sets]."""
    return _quotient(arms[::-1] if is_cost else arms, metric)
