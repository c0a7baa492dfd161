"""A target and a draft of lower order from the counts of one text: real distributions without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.errors import ConfigError, DomainError
from specsim.speculation.array_file import read_arrays, write_arrays
from specsim.speculation.distributions import Prefixes
from specsim.speculation.kinds import DISTRIBUTIONS, BuildContext
from specsim.speculation.ngram.counts import NgramCounts
from specsim.speculation.prefixes import last_tokens
from specsim.speculation.warpers import temperature

_MAX_CACHED = 4096


@DISTRIBUTIONS.register
class NgramSpec(Spec):
    """Interpolated Kneser-Ney models of one text, written by ``specsim record TEXT --ngram``."""

    kind: Literal["ngram"] = "ngram"
    """N-gram models."""
    path: str
    """File of the counts: beside the scenario, or from the working folder."""
    draft_order: int = Field(default=2, ge=1)
    """Order of the draft; the target has that of the file."""
    temperature: float = Field(default=1.0, ge=0)
    """Temperature of the target, and of the draft; 0 is greedy."""

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        if not self.path:
            raise ValueError("path: names no file")
        return self

    def build(self, context: BuildContext) -> NgramPair:
        """Load the counts and return the pair."""
        given = Path(self.path)
        found = next((file for file in (context.folder / given, given) if file.exists()), None)
        if found is None:
            raise ConfigError.at("distributions.path", f"no n-gram counts '{self.path}'")
        return NgramPair(load_counts(found), draft_order=self.draft_order, temperature=self.temperature)


class NgramPair:
    """Target of order n and draft of a lower order.

    Interpolated Kneser-Ney (Kneser and Ney 1995; Chen and Goodman 1999, equation for one discount):
    p(w | h) = max(c(h w) - D, 0) / c(h) + D N(h) / c(h) p(w | h'), where N(h) counts the kinds of words
    after h and h' is h without its first word; the lowest order is mixed with the uniform law, so that
    every token has mass.

    Parameters
    ----------
    counts
        Of a text.
    draft_order
        Order of the draft, below the target's.
    temperature
        Of both; 1 is the model itself, 0 is greedy.

    Raises
    ------
    DomainError
        Where the draft's order is not below the target's.
    """

    offers: Literal["conditional"] = "conditional"
    eos_token_id = None

    def __init__(self, counts: NgramCounts, *, draft_order: int, temperature: float = 1.0) -> None:
        if not 1 <= draft_order < counts.order:
            raise DomainError(
                f"draft_order: {draft_order} is not from 1 to {counts.order - 1}, below the target's"
            )
        self._counts = counts
        self._draft_order = draft_order
        self._temperature = temperature
        self.vocabulary_size = counts.vocabulary_size
        self.num_context_tokens = counts.order - 1
        self._known: dict[tuple[int, ...], Floats] = {}

    def target(self, prefix: Prefixes) -> Floats:
        """Target distribution after each prefix, [rows, V]."""
        return self._laws(prefix, self._counts.order)

    def draft(self, prefix: Prefixes) -> Floats:
        """Draft distribution after each prefix, [rows, V]."""
        return self._laws(prefix, self._draft_order)

    def _laws(self, prefix: Prefixes, order: int) -> Floats:
        contexts = last_tokens(prefix, self.num_context_tokens).tokens[
            :, self.num_context_tokens - order + 1 :
        ]
        kinds, row = np.unique(contexts, axis=0, return_inverse=True)
        laws = np.stack([self._law(tuple(int(token) for token in kind)) for kind in kinds])
        found: Floats = laws[row.ravel()]
        return found

    def _law(self, context: tuple[int, ...]) -> Floats:
        # What is before the text's beginning tells nothing.
        context = context[max((place + 1 for place, token in enumerate(context) if token < 0), default=0) :]
        law = self._known.get(context)
        if law is None:
            law = self._interpolated(context)
            if self._temperature != 1:
                law = temperature(np.log(law), self._temperature)
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            self._known[context] = law
        return law

    def _interpolated(self, context: tuple[int, ...]) -> Floats:
        counts = self._counts
        law: Floats = np.full(counts.vocabulary_size, 1 / counts.vocabulary_size)
        for length in range(len(context) + 1):
            history = context[len(context) - length :]
            grams, discount = counts.grams[length], counts.discounts[length]
            first, end = _rows_after(grams, history)
            if first == end:
                break
            seen = counts.counts[length][first:end]
            total = seen.sum()
            law = law * (discount * seen.size / total)
            law[grams[first:end, -1]] += (seen - discount) / total
        return law


def save_counts(counts: NgramCounts, path: Path, *, vocabulary: tuple[str, ...], source: str) -> None:
    """Write counts with the words that they count and where the text comes from."""
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {
        "vocabulary": np.array(vocabulary),
        "source": np.array([source]),
        "discounts": np.array(counts.discounts),
    }
    for number in range(counts.order):
        arrays[f"grams_{number + 1}"] = counts.grams[number].astype(np.int32)
        arrays[f"counts_{number + 1}"] = counts.counts[number].astype(np.int32)
    write_arrays(path, arrays)


def load_counts(path: Path) -> NgramCounts:
    """Read counts; a file without them is a ConfigError."""
    arrays = read_arrays(path)
    order = sum(name.startswith("grams_") for name in arrays)
    needed = {"vocabulary", "discounts"} | {
        f"{part}_{number}" for part in ("grams", "counts") for number in range(1, order + 1)
    }
    lacking = sorted(needed - arrays.keys())
    if order == 0 or lacking:
        raise ConfigError(f"{path}: holds no n-gram counts (specsim record TEXT --ngram writes them)")
    return NgramCounts(
        tuple(arrays[f"grams_{number}"].astype(np.int64) for number in range(1, order + 1)),
        tuple(arrays[f"counts_{number}"].astype(np.float64) for number in range(1, order + 1)),
        tuple(float(value) for value in arrays["discounts"].tolist()),
        int(arrays["vocabulary"].size),
    )


def _rows_after(grams: Ints, history: tuple[int, ...]) -> tuple[int, int]:
    """Rows [first, end) of sorted n-grams that begin with a history."""
    first, end = 0, len(grams)
    for place, token in enumerate(history):
        column = grams[first:end, place]
        first, end = (
            first + int(np.searchsorted(column, token, side="left")),
            first + int(np.searchsorted(column, token, side="right")),
        )
    return first, end
