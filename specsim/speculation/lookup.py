"""Prompt lookup: what followed the last tokens when they occurred before is proposed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specsim.arrays import Bools, Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.chain import certain
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import DRAFT_SOURCES, BuildContext


@DRAFT_SOURCES.register
class LookupSpec(Spec):
    """Prompt lookup (Saxena 2023; vLLM's method ngram) in the tokens emitted so far."""

    kind: Literal["lookup"] = "lookup"
    """Prompt lookup."""
    prompt_lookup_max: int = Field(default=3, ge=1)
    """Longest run of last tokens that is looked for."""
    prompt_lookup_min: int = Field(default=1, ge=1)
    """Shortest one."""
    window_tokens: int = Field(default=256, ge=2)
    """Last tokens that are searched."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.prompt_lookup_min > self.prompt_lookup_max:
            raise ValueError("prompt_lookup_min: is more than prompt_lookup_max")
        if self.window_tokens <= self.prompt_lookup_max:
            raise ValueError("window_tokens: is no more than prompt_lookup_max, nothing could be found")
        return self

    def build(self, context: BuildContext, distributions: ConditionalDistributions) -> LookupDraft:
        """Return the source."""
        return LookupDraft(
            num_tokens=context.num_speculative_tokens,
            longest=self.prompt_lookup_max,
            shortest=self.prompt_lookup_min,
            window_tokens=max(self.window_tokens, distributions.num_context_tokens),
            vocabulary_size=distributions.vocabulary_size,
        )


class LookupDraft:
    """Proposes what followed the latest earlier occurrence of the longest run of last tokens.

    A miss proposes nothing, which is no draft: only the pass is paid.

    Parameters
    ----------
    num_tokens
        The most that is proposed.
    longest, shortest
        Lengths of runs that are looked for, tokens.
    window_tokens
        Last tokens that are searched.
    vocabulary_size
        V.
    """

    siblings: Siblings = "one"
    pass_positions = (1,)

    def __init__(
        self, *, num_tokens: int, longest: int, shortest: int, window_tokens: int, vocabulary_size: int
    ) -> None:
        self._longest = longest
        self._shortest = shortest
        self._vocabulary_size = vocabulary_size
        self.num_nodes = self.depth = num_tokens
        self.num_context_tokens = window_tokens

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """One chain a row, cut where the searched text ends; uniforms are not read."""
        text = prefix.tokens
        num_rows, width = text.shape
        start: Ints = np.full(num_rows, -1)
        for length in range(self._longest, self._shortest - 1, -1):
            if length >= width:
                continue
            is_open = start < 0
            found = _latest(text, length)
            start = np.where(is_open & (found >= 0), found + length, start)
        place = start[:, np.newaxis] + np.arange(self.num_nodes)
        is_inside = (start >= 0)[:, np.newaxis] & (place < width)
        token = np.where(
            is_inside, text[np.arange(num_rows)[:, np.newaxis], np.minimum(place, width - 1)], -1
        )
        parent = np.broadcast_to(np.arange(-1, self.num_nodes - 1), token.shape)
        return Draft(token, parent, certain(token, self._vocabulary_size))

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """Yield the one proposal of a one-row prefix."""
        yield 1.0, self.propose(prefix, np.zeros((1, self.num_nodes)))


def _latest(text: Ints, length: int) -> Ints:
    """Place of the latest run equal to the last ``length`` tokens and before them, [rows]; -1: none."""
    num_places = text.shape[1] - length
    is_same: Bools = np.ones((len(text), num_places), dtype=bool)
    for offset in range(length):
        last = text[:, num_places + offset]
        is_same &= (text[:, offset : offset + num_places] == last[:, np.newaxis]) & (last >= 0)[:, np.newaxis]
    latest = num_places - 1 - is_same[:, ::-1].argmax(axis=1)
    return np.where(is_same.any(axis=1), latest, -1)
