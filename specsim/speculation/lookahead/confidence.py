"""The confidence lookahead: stop after the first token that the draft was not sure of."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.distributions import Signals
from specsim.speculation.kinds import LOOKAHEAD_POLICIES, BuildContext


@LOOKAHEAD_POLICIES.register
class ConfidenceSpec(Spec):
    """Stop after a token drawn where the draft's largest probability is below a threshold.

    Hugging Face transformers' ``assistant_confidence_threshold``, on the largest probability.
    """

    kind: Literal["confidence"] = "confidence"
    """Confidence lookahead."""
    threshold: float = Field(default=0.4, ge=0, le=1)
    """Largest draft probability below which drafting stops; the token drawn there is kept."""

    def build(self, context: BuildContext) -> Confidence:
        """Return the policy."""
        return Confidence(threshold=self.threshold)


class Confidence:
    """Drafts up to and including the first token below the threshold.

    The token is kept: dropping a drawn token for its own probability would change the output's law.
    An unknown probability does not stop the draft.

    Examples
    --------
    >>> seen = np.array([[0.9, 0.8, 0.5, 0.9]])
    >>> signals = Signals(top_probability=seen, entropy_nats=np.full_like(seen, np.nan))
    >>> Confidence(threshold=0.6).lengths(signals, np.zeros((1, 0)), np.array([4])).tolist()
    [3]
    """

    reads: Literal["signals"] = "signals"
    passes_ahead: Literal[0] = 0

    def __init__(self, *, threshold: float) -> None:
        self._threshold = threshold

    def start(self, num_sequences: int) -> Floats:
        """Return the state of fresh requests: nothing, [B, 0]."""
        return np.zeros((num_sequences, 0))

    def lengths(self, signals: Signals, state: Floats, limit: Ints) -> Ints:
        """Tokens to draft, [B]: through the first whose largest draft probability is below the threshold."""
        is_sure = ~(signals.top_probability < self._threshold)
        num_sure: Ints = np.logical_and.accumulate(is_sure, axis=1).sum(axis=1)
        length: Ints = np.minimum(num_sure + 1, limit)
        return length

    def observe(self, state: Floats, num_drafted: Ints, num_accepted: Ints) -> Floats:
        """Return the state as it is."""
        return state
