"""Lookahead policies that only tests need."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.distributions import Signals
from specsim.speculation.lookahead.fixed import Fixed


class RestsAfterThree(Fixed):
    """Drafts nothing after a round that drafted 3 or more."""

    def start(self, num_sequences: int) -> Floats:
        return np.zeros((num_sequences, 1))

    def lengths(self, signals: Signals, state: Floats, limit: Ints) -> Ints:
        return np.where(state[:, 0] >= 3, 0, limit)

    def observe(self, state: Floats, num_drafted: Ints, num_accepted: Ints) -> Floats:
        return num_drafted[:, np.newaxis].astype(np.float64)
