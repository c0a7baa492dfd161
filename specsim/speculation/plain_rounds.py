"""Plain decoding as rounds: nothing drafted, one token a round; the baseline."""

from __future__ import annotations

import numpy as np

from specsim.speculation.rounds import Rounds, Sequences


class PlainRounds:
    """One token a round until each sequence's cap; needs no distributions and keeps no state."""

    is_approximate = False

    def peek(self, sequences: Sequences, *, horizon: int) -> Rounds:
        """1 … ``horizon`` rounds ahead, up to the first in which a sequence ends."""
        count = min(horizon, int(sequences.remaining.min()))
        shape = (count, sequences.remaining.size)
        none, one = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.int64)
        return Rounds(
            num_drafted=none,
            num_draft_steps=none,
            num_positions=one,
            num_accepted=none,
            num_emitted=one,
            is_last=sequences.remaining == np.arange(1, count + 1)[:, np.newaxis],
        )

    def commit(self, num_rounds: int) -> None:
        """Nothing to remember: the engine's positions say it all."""
