"""What is known of the target's p and the draft's q: along one path, or for any prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from specsim.arrays import Floats, Ints

Ending = Literal["eos", "stop", "cap", "recorder"]
"""Why a sequence ended; ``recorder``: cut by the recording, so its last round is censored."""


@dataclass(slots=True)
class Signals:
    """What a causal length rule may see of the draft at each depth, arrays [B, D]; NaN where unknown."""

    top_probability: Floats
    """Largest draft probability."""
    entropy_nats: Floats
    """Entropy of the draft distribution, nats."""


@dataclass(slots=True)
class Prefixes:
    """Token prefixes, one a row."""

    request: Ints
    """Request of each row, [rows]."""
    position: Ints
    """Output position of the next token, [rows]."""
    tokens: Ints
    """The last tokens of each row, right-aligned, [rows, L]; -1 pads."""


@dataclass(slots=True)
class Path:
    """One recorded continuation, as far as the workload needs it."""

    prompt: int
    """Number of the prompt: the unit of resampling."""
    domain: str
    """Domain of the prompt, such as ``chat``."""
    num_prompt_tokens: int
    """Length of the prompt, tokens."""
    num_tokens: int
    """Length of the continuation, tokens."""
    ended_by: Ending
    """Why it ended."""


class PathDistributions(Protocol):
    """What is known along a path that the target has sampled: replay, rates, heads, lookup."""

    @property
    def offers(self) -> Literal["acceptance", "path"]:
        """How much: which drafts are kept and no more (rates, logs), or p and q of the path's tokens."""
        ...

    records_tails: bool
    """Signals past a rejection are those of the tail that was really drafted, not of the path."""
    drafts_in_one_pass: bool
    """All drafts of a round come from one lookup, which is paid even where it proposes nothing."""

    def path(self, request: int) -> Path | None:
        """Return the path of a request (prompts in order, repeating), or None where paths are endless."""
        ...

    def acceptance(self, request: Ints, position: Ints, depth: int) -> Floats:
        """Probability that token verification keeps the draft at each depth of a round.

        The round starts at ``position``. Shape [B, depth], conditional on all earlier drafts of the round
        being kept. NaN where the draft makes no proposal (a lookup that missed, or ran out); once NaN, NaN
        to the end.
        """
        ...

    def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
        """Signals at each depth of a round started at ``position``, along the path."""
        ...


@dataclass(slots=True)
class PathProbabilities:
    """p and q of the path's tokens at each depth of a round, arrays [B, D]."""

    target: Floats
    """p of the path's token, above 0."""
    draft: Floats
    """Probability that the draft proposes it; NaN where it makes no proposal, 0 past the path's end."""


@runtime_checkable
class HasProbabilities(Protocol):
    """Path distributions that offer p and q of the path's tokens."""

    def probabilities(self, request: Ints, position: Ints, depth: int) -> PathProbabilities:
        """Return p and q at each depth of a round started at ``position``, [B, depth]."""
        ...


class ConditionalDistributions(Protocol):
    """p and q for any prefix: explicit, n-gram, live models, recorded blocks."""

    offers: Literal["conditional"]
    num_context_tokens: int
    """How many last tokens of a prefix matter: 0 for context-free, 1 for Markov, …"""
    vocabulary_size: int
    eos_token_id: int | None

    def target(self, prefix: Prefixes) -> Floats:
        """Target distribution after each prefix, [rows, V]."""
        ...

    def draft(self, prefix: Prefixes) -> Floats:
        """Draft distribution after each prefix, [rows, V]."""
        ...


Distributions = PathDistributions | ConditionalDistributions
