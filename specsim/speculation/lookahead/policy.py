"""The seam of lookahead policies: how many tokens to draft in the next round."""

from __future__ import annotations

from typing import Literal, Protocol

from specsim.arrays import Floats, Ints
from specsim.speculation.distributions import Signals


class LookaheadPolicy(Protocol):
    """A causal length rule. What it remembers of a request is one row of ``state``."""

    @property
    def reads(self) -> Literal["nothing", "history", "signals", "batch"]:
        """The most that the rule looks at; ``signals`` makes replay approximate without recorded tails."""
        ...

    @property
    def passes_ahead(self) -> Literal[0, 1]:
        """1 where the rule pays a draft pass to see the distribution that it then may not draw from."""
        ...

    def start(self, num_sequences: int) -> Floats:
        """Return the state of fresh requests, [B, S]."""
        ...

    def lengths(self, signals: Signals, state: Floats, limit: Ints) -> Ints:
        """Tokens to draft, [B], at most ``limit``.

        Causal: whether a length exceeds d may depend on the signals at depths below d only, those of
        tokens already drawn; also on depth d itself where ``passes_ahead`` is 1.
        """
        ...

    def observe(self, state: Floats, num_drafted: Ints, num_accepted: Ints) -> Floats:
        """State after a round in which ``num_drafted`` were drafted and ``num_accepted`` kept, [B, S]."""
        ...
