"""Signals past a rejection: what the draft really saw there, where a recording followed it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from specsim.arrays import Ints
from specsim.speculation.distributions import Signals


@runtime_checkable
class HasTails(Protocol):
    """Path distributions that may know what was drafted after a rejected token."""

    def drafted_signals(self, request: Ints, position: Ints, depth: int, kept: Ints) -> Signals:
        """Signals at each depth of a round of which the first ``kept`` drafts are kept, [B, depth].

        Up to the rejected draft they are those of the path, after it those of the recorded tail; NaN
        where neither is recorded.
        """
        ...
