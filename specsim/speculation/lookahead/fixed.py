"""The fixed lookahead: as many drafts as allowed, every round."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.distributions import Signals
from specsim.speculation.kinds import LOOKAHEAD_POLICIES, BuildContext


@LOOKAHEAD_POLICIES.register
class FixedSpec(Spec):
    """Draft ``num_speculative_tokens`` every round (Leviathan et al. 2023)."""

    kind: Literal["fixed"] = "fixed"
    """Fixed lookahead."""

    def build(self, context: BuildContext) -> Fixed:
        """Return the policy."""
        return Fixed()


class Fixed:
    """Drafts the limit; reads nothing and remembers nothing."""

    reads: Literal["nothing"] = "nothing"
    passes_ahead: Literal[0] = 0

    def start(self, num_sequences: int) -> Floats:
        """Return the state of fresh requests: nothing, [B, 0]."""
        return np.zeros((num_sequences, 0))

    def lengths(self, signals: Signals, state: Floats, limit: Ints) -> Ints:
        """Tokens to draft: the limit, [B]."""
        return limit

    def observe(self, state: Floats, num_drafted: Ints, num_accepted: Ints) -> Floats:
        """Return the state as it is."""
        return state
