"""Acceptance given as rates: no tokens, only how likely each draft is kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.speculation.distributions import Path, Signals
from specsim.speculation.kinds import DISTRIBUTIONS, BuildContext

Rate = Annotated[float, Field(ge=0, le=1)]
_FORMS = ("synthetic_acceptance_rates", "synthetic_acceptance_length", "acceptance_rate")


@DISTRIBUTIONS.register
class RatesSpec(Spec):
    """Acceptance by rates, in one of three forms; the first two are vLLM's ``synthetic`` keys."""

    kind: Literal["rates"] = "rates"
    """Acceptance by rates."""
    synthetic_acceptance_rates: tuple[Rate, ...] | None = Field(default=None, min_length=1)
    """Unconditional probability that the draft at each position is kept; never increasing."""
    synthetic_acceptance_length: float | None = Field(default=None, ge=1)
    """Mean tokens a round, in [1, K + 1]: kept for certain up to its whole part, then by its fraction."""
    acceptance_rate: Rate | None = None
    """One acceptance rate: each draft is kept with this probability if all before it were."""

    @model_validator(mode="after")
    def _is_one_form(self) -> Self:
        forms = [name for name in _FORMS if getattr(self, name) is not None]
        if len(forms) != 1:
            given = f"given: {', '.join(forms)}" if forms else "none is given"
            raise ValueError(
                "rates need exactly one of synthetic_acceptance_rates, synthetic_acceptance_length and"
                f" acceptance_rate; {given}"
            )
        rates = self.synthetic_acceptance_rates or ()
        for depth, (before, rate) in enumerate(itertools.pairwise(rates), start=1):
            if rate > before:
                raise ValueError(
                    f"synthetic_acceptance_rates: {rate:g} at position {depth} is above {before:g} before it;"
                    " they are unconditional, so they cannot increase"
                )
        return self

    def build(self, context: BuildContext) -> RatesDistributions:
        """Return the distributions for the scenario's K; what the rates do not cover is a ConfigError."""
        return RatesDistributions(self.unconditional(context.num_speculative_tokens))

    def unconditional(self, num_speculative_tokens: int) -> tuple[float, ...]:
        """Probability that the draft at each of K positions is kept, [K]."""
        if self.acceptance_rate is not None:
            rate = self.acceptance_rate
            return tuple(rate ** (depth + 1) for depth in range(num_speculative_tokens))
        if self.synthetic_acceptance_length is not None:
            return _of_length(self.synthetic_acceptance_length, num_speculative_tokens)
        rates = self.synthetic_acceptance_rates or ()
        if len(rates) < num_speculative_tokens:
            raise ConfigError(
                f"synthetic_acceptance_rates: {len(rates)} rates for num_speculative_tokens:"
                f" {num_speculative_tokens}; give one for each position"
            )
        return rates[:num_speculative_tokens]


def _of_length(length: float, num_speculative_tokens: int) -> tuple[float, ...]:
    if length > num_speculative_tokens + 1:
        raise ConfigError(
            f"synthetic_acceptance_length: {length:g} is more than num_speculative_tokens + 1,"
            f" {num_speculative_tokens + 1}"
        )
    fraction, whole = math.modf(length - 1)
    rates = [1.0] * int(whole) + [fraction] + [0.0] * num_speculative_tokens
    return tuple(rates[:num_speculative_tokens])


class RatesDistributions:
    """Endless paths on which the draft at each depth of a round is kept with a given probability.

    Parameters
    ----------
    unconditional
        Probability that the draft at each depth is kept, never increasing, [K].
    """

    offers: Literal["acceptance"] = "acceptance"
    records_tails = True
    """There are no signals, on the path or off it."""
    drafts_in_one_pass = False

    def __init__(self, unconditional: Sequence[float]) -> None:
        kept = np.array([1.0, *unconditional])
        # Where a depth is never reached its rate is arbitrary; 0 keeps it a probability.
        is_reached = kept[:-1] > 0
        self._conditional: Floats = np.where(is_reached, kept[1:] / np.where(is_reached, kept[:-1], 1.0), 0.0)

    def path(self, request: int) -> Path | None:
        """Return None: paths are endless."""
        return None

    def acceptance(self, request: Ints, position: Ints, depth: int) -> Floats:
        """Probability that the draft at each depth is kept given that all before it were, [B, depth]."""
        return np.broadcast_to(self._conditional[:depth], (position.size, depth))

    def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
        """Return unknown signals: rates say nothing of the draft's confidence."""
        unknown = np.broadcast_to(np.nan, (position.size, depth))
        return Signals(top_probability=unknown, entropy_nats=unknown)
