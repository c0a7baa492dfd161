"""The heuristic lookahead of transformers: two more after a full acceptance, else one less."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.distributions import Signals
from specsim.speculation.kinds import LOOKAHEAD_POLICIES, BuildContext


@LOOKAHEAD_POLICIES.register
class HeuristicSpec(Spec):
    """Hugging Face transformers' ``num_assistant_tokens_schedule: heuristic_transient``."""

    kind: Literal["heuristic"] = "heuristic"
    """Heuristic lookahead."""
    initial_tokens: int = Field(default=20, ge=1, le=256)
    """Drafts of each request's first round, as far as ``num_speculative_tokens`` allows."""

    def build(self, context: BuildContext) -> Heuristic:
        """Return the policy."""
        return Heuristic(initial_tokens=self.initial_tokens, most_tokens=context.num_speculative_tokens)


class Heuristic:
    """Length + 2 after a round whose drafts were all kept, else length - 1, at least 1; anew per request.

    Parameters
    ----------
    initial_tokens
        Length of the first round.
    most_tokens
        The length does not grow past it: K is the most a round drafts, and a length that ran far ahead
        of it would take many rejections to come back.

    Examples
    --------
    >>> policy = Heuristic(initial_tokens=20, most_tokens=32)
    >>> state = policy.start(1)
    >>> policy.observe(state, np.array([20]), np.array([20])).tolist()
    [[22.0]]
    """

    reads: Literal["history"] = "history"
    passes_ahead: Literal[0] = 0

    def __init__(self, *, initial_tokens: int, most_tokens: int) -> None:
        self._initial_tokens = min(initial_tokens, most_tokens)
        self._most_tokens = most_tokens

    def start(self, num_sequences: int) -> Floats:
        """Return the state of fresh requests: the initial length, [B, 1]."""
        return np.full((num_sequences, 1), float(self._initial_tokens))

    def lengths(self, signals: Signals, state: Floats, limit: Ints) -> Ints:
        """Tokens to draft: the length, cut at the limit, [B]."""
        return np.minimum(state[:, 0].astype(np.int64), limit)

    def observe(self, state: Floats, num_drafted: Ints, num_accepted: Ints) -> Floats:
        """State after a round, [B, 1]; a round that drafted nothing changes nothing."""
        length = state[:, 0]
        longer = np.minimum(length + 2, self._most_tokens)
        after = np.where(num_accepted == num_drafted, longer, np.maximum(length - 1, 1))
        return np.where(num_drafted > 0, after, length)[:, np.newaxis]
