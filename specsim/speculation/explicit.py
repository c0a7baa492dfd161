"""Distributions given as they are: one p and one q, whatever the prefix."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specsim.arrays import Floats
from specsim.config.base import Spec
from specsim.speculation.distributions import Prefixes
from specsim.speculation.kinds import DISTRIBUTIONS, BuildContext
from specsim.speculation.sampling import distribution, distribution_pair


@DISTRIBUTIONS.register
class ExplicitSpec(Spec):
    """One target and one draft distribution, the same after every prefix."""

    kind: Literal["explicit"] = "explicit"
    """Explicit p and q."""
    target: tuple[float, ...] = Field(min_length=1)
    """Probability of each token under the target; sums to 1."""
    draft: tuple[float, ...] = Field(min_length=1)
    """Probability of each token under the draft, over the same tokens; sums to 1."""
    eos_token_id: int | None = Field(default=None, ge=0)
    """Token that ends a sequence; absent: only the cap does."""

    @model_validator(mode="after")
    def _is_a_pair(self) -> Self:
        distribution_pair(self.target, self.draft)
        if self.eos_token_id is not None and self.eos_token_id >= len(self.target):
            raise ValueError(f"eos_token_id: {self.eos_token_id} is not among {len(self.target)} tokens")
        return self

    def build(self, context: BuildContext) -> ExplicitDistributions:
        """Return the distributions."""
        return ExplicitDistributions(
            distribution(self.target), distribution(self.draft), eos_token_id=self.eos_token_id
        )


class ExplicitDistributions:
    """One p and one q, [V] each, after every prefix."""

    offers: Literal["conditional"] = "conditional"
    num_context_tokens = 0

    def __init__(self, target: Floats, draft: Floats, *, eos_token_id: int | None = None) -> None:
        self._target, self._draft = distribution_pair(target, draft)
        self.vocabulary_size = self._target.size
        self.eos_token_id = eos_token_id

    def target(self, prefix: Prefixes) -> Floats:
        """Target distribution after each prefix, [rows, V]; rows share their memory."""
        return np.broadcast_to(self._target, (prefix.position.size, self.vocabulary_size))

    def draft(self, prefix: Prefixes) -> Floats:
        """Draft distribution after each prefix, [rows, V]; rows share their memory."""
        return np.broadcast_to(self._draft, (prefix.position.size, self.vocabulary_size))
