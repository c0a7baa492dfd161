"""Rounds: the one seam between speculation and the engine.

A round drafts, verifies once and emits at least one token for each sequence of the batch. The engine
learns only how much was drafted, verified, accepted and emitted; where the tokens come from (replay of
a recorded path, acceptance rates, exact sampling from distributions) is the source's business.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from specsim.arrays import Bools, Ints


@dataclass(slots=True)
class Sequences:
    """Rows of the batch, arrays [B]."""

    request: Ints
    """Request number."""
    position: Ints
    """Output position of the next token: tokens emitted so far."""
    remaining: Ints
    """Tokens that may still be emitted, at least 1."""


@dataclass(slots=True)
class Rounds:
    """What happened in R rounds of B sequences, arrays [R, B].

    A token past a sequence's end counts as drafted, never as accepted or emitted.
    """

    num_drafted: Ints
    """Draft tokens proposed; 0 where K = 0 or the lookup missed."""
    num_draft_steps: Ints
    """Draft passes paid, a look-ahead pass included."""
    num_positions: Ints
    """Positions verified: draft nodes + 1."""
    num_accepted: Ints
    """Draft tokens accepted, of the emitted."""
    num_emitted: Ints
    """Tokens emitted, the final token of the round included."""
    is_last: Bools
    """The sequence ends in this round: by its cap, or by an end token."""
    pass_positions: Ints | None = None
    """Positions that each draft pass computes for one sequence, [R, passes]; None: one each, a chain."""

    @property
    def num_rounds(self) -> int:
        """R."""
        return int(self.num_drafted.shape[0])

    def first(self, count: int) -> Rounds:
        """Return the first rounds."""
        cut: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            cut[field.name] = None if value is None else value[:count]
        return Rounds(**cut)

    def positions_of_passes(self) -> Ints:
        """Positions that each draft pass computes for one sequence, [R, longest chain of passes]."""
        num_passes = int(self.num_draft_steps.max(initial=0))
        if self.pass_positions is None:
            return np.ones((self.num_rounds, num_passes), dtype=np.int64)
        # A pass that only looks ahead, past the draft's own, computes one position.
        short = max(num_passes - self.pass_positions.shape[1], 0)
        return np.pad(self.pass_positions, ((0, 0), (0, short)), constant_values=1)[:, :num_passes]


class RoundSource(Protocol):
    """Where rounds come from.

    The law of every source: ``peek(n)``, ``commit(n)``, ``peek(m)`` give the rounds of ``peek(n + m)``,
    whatever else is asked for in between, and two batches that hold the same request give it the same rounds.
    """

    is_approximate: bool
    """Replay outside the conditions under which it is exact; marked wherever the result appears."""

    def peek(self, sequences: Sequences, *, horizon: int) -> Rounds:
        """1 … ``horizon`` rounds ahead, without effect; stops after the first in which a sequence ends."""
        ...

    def commit(self, num_rounds: int) -> None:
        """Make the first ``num_rounds`` of the last peek happen."""
        ...
