"""Rounds that a serving engine logged, and what they say of positions that it never drafted.

A log knows of each round how much was drafted and how much of it was kept. Along the path, a position is
then known to be kept, known to be refused, or censored: the token after a round whose drafts were all kept
was never drafted. At the logged lengths a replay needs none of the censored positions and is exact. Other
lengths ask for them, so they need an imputation, which must be named and marks the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from specsim.arrays import Bools, Floats, Ints
from specsim.errors import DomainError
from specsim.speculation.lookahead.policy import LookaheadPolicy

Imputation: TypeAlias = Literal["none", "momentum"]
"""What stands at censored positions: nothing, or the momentum model."""


@runtime_checkable
class HasOwnLengths(Protocol):
    """Path distributions that answer for some draft lengths only, such as a log of accepted lengths."""

    def is_exact_for(self, policy: LookaheadPolicy, *, num_speculative_tokens: int) -> bool:
        """Tell whether rounds under a policy ask only for what was recorded.

        Raises
        ------
        ConfigError
            They do not, and nothing was named to stand there.
        """
        ...


_MEMORY = 0.05
"""Weight of the newest outcome in the recent rate: a memory of 20 drafts."""
_INITIAL_RATE = 0.6
"""Recent rate before anything was seen; its weight is gone after a few rounds."""
_HIGHEST_RATE = 0.999
"""The recent rate counts as no higher: a thousand kept drafts in a row say no more than this."""
_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class LoggedRounds:
    """Rounds of all prompts in order, arrays [R]."""

    prompt: Ints
    """Number of the prompt."""
    start: Ints
    """Output position at which the round began, counted over all prompts."""
    drafted: Ints
    """Drafts proposed."""
    accepted: Ints
    """Drafts kept and emitted."""

    def masked(self, depth: int) -> LoggedRounds:
        """Return the rounds as if nothing past ``depth`` drafts had been seen."""
        return LoggedRounds(
            self.prompt, self.start, np.minimum(self.drafted, depth), np.minimum(self.accepted, depth)
        )

    def of_prompts(self, is_chosen: Bools) -> LoggedRounds:
        """Return the rounds of some prompts; ``is_chosen`` is indexed by prompt."""
        rows = is_chosen[self.prompt]
        return LoggedRounds(self.prompt[rows], self.start[rows], self.drafted[rows], self.accepted[rows])


@dataclass(frozen=True, slots=True)
class Momentum:
    """Logistic law of a draft being kept: drafts that were kept lately promise more of them.

    logit P(kept) = w0 + w1 ln(1 + run) + w2 logit(rate), where run counts the drafts kept since the last
    that was not, over all rounds, and rate is the mean of the outcomes before it in the same text, the
    newest 5 % by weight, at most 0.999. Only drafts that were really verified are fitted. Fitted on
    Spec-Bench's log of Vicuna-7B with a 68M draft, without what lay deeper than 4, it predicts the accepted
    length at up to 42 drafts of the other half of the turns within its interval. It knows no tokens.
    """

    weights: Floats
    """w0, w1, w2."""

    @classmethod
    def fit(cls, rounds: LoggedRounds) -> Momentum:
        """Fit by maximum likelihood, Newton's method.

        Raises
        ------
        DomainError
            The log holds no draft that was refused, or none that was kept: nothing can be told.
        """
        run, rate = _states(rounds)
        seen = np.minimum(rounds.accepted + 1, rounds.drafted)
        row = np.repeat(np.arange(seen.size), seen)
        ahead = np.arange(row.size) - np.repeat(np.cumsum(seen) - seen, seen)
        is_kept = (ahead < rounds.accepted[row]).astype(np.float64)
        if is_kept.size == 0 or is_kept.min() == is_kept.max():
            raise DomainError("imputation: the log holds no refused draft, or no kept one, to learn from")
        features = _features(run[row], rate[row], ahead)
        weights = np.zeros(features.shape[1])
        for _ in range(50):
            p = _logistic(features @ weights)
            gradient = features.T @ (is_kept - p) - _RIDGE * weights
            curvature = (features * (p * (1 - p))[:, np.newaxis]).T @ features + _RIDGE * np.eye(weights.size)
            step = np.linalg.solve(curvature, gradient)
            weights = weights + step
            if np.abs(step).max() < 1e-9:
                break
        return cls(weights)

    def after_full_rounds(self, rounds: LoggedRounds) -> Floats:
        """Probability that one more draft would have been kept after all drafts of each round, [R]."""
        run, rate = _states(rounds)
        return self._kept(run, rate, rounds.drafted)

    def expected_accepted(self, rounds: LoggedRounds, drafted: Ints) -> Floats:
        """Mean number of drafts kept in each round if it drafts ``drafted`` tokens, [R].

        Every round is predicted from the rounds before it.
        """
        run, rate = _states(rounds)
        expected = np.zeros(drafted.size)
        alive = np.ones(drafted.size)
        for ahead in range(int(drafted.max(initial=0))):
            alive *= np.where(ahead < drafted, self._kept(run, rate, np.full(drafted.size, ahead)), 0.0)
            expected += alive
        return expected

    def _kept(self, run: Floats, rate: Floats, ahead: Ints) -> Floats:
        return _logistic(_features(run, rate, ahead) @ self.weights)


def _states(rounds: LoggedRounds) -> tuple[Floats, Floats]:
    """Run and recent rate before each round, [R] each."""
    states = list(_walk(rounds))
    table = np.array(states, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _walk(rounds: LoggedRounds) -> Iterator[tuple[float, float]]:
    before, run, rate = -1, 0.0, _INITIAL_RATE
    columns = (rounds.prompt.tolist(), rounds.drafted.tolist(), rounds.accepted.tolist())
    for prompt, drafted, accepted in zip(*columns, strict=True):
        if prompt != before:
            before, run, rate = prompt, 0.0, _INITIAL_RATE
        yield run, rate
        rate = 1 - (1 - rate) * (1 - _MEMORY) ** accepted
        if accepted < drafted:
            run, rate = 0.0, rate * (1 - _MEMORY)
        else:
            run += drafted


def _features(run: Floats, rate: Floats, ahead: Ints) -> Floats:
    """Features of the draft that comes after ``ahead`` kept ones in its round, [rows, 3]."""
    missing = np.maximum((1 - rate) * (1 - _MEMORY) ** ahead, 1 - _HIGHEST_RATE)
    logit = np.log1p(-missing) - np.log(missing)
    return np.stack([np.ones_like(logit), np.log1p(run + ahead), logit], axis=-1)


def _logistic(score: Floats) -> Floats:
    probability: Floats = 1 / (1 + np.exp(-score))
    return probability
