"""Counts of n-grams, as interpolated Kneser-Ney smoothing needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError

MAX_VOCABULARY = 8192
"""Largest vocabulary: distributions are kept whole."""


@dataclass(frozen=True, slots=True)
class NgramCounts:
    """For each order 1 … n the n-grams that occur, sorted, and how often each counts.

    The highest order counts occurrences, lower ones distinct words to the left (Kneser and Ney 1995).
    """

    grams: tuple[Ints, ...]
    """N-grams of each order, [grams, order], in lexical order."""
    counts: tuple[Floats, ...]
    """Their counts, [grams]."""
    discounts: tuple[float, ...]
    """What is taken off each count of an order."""
    vocabulary_size: int

    @property
    def order(self) -> int:
        """Longest n-grams, n: n - 1 last tokens matter."""
        return len(self.grams)


def count_ngrams(texts: Sequence[Ints], *, order: int, vocabulary_size: int) -> NgramCounts:
    """Count the n-grams of texts.

    Parameters
    ----------
    texts
        Tokens of each text, [tokens]; no n-gram spans two.
    order
        Length of the longest n-grams.
    vocabulary_size
        V; every token is below it.

    Raises
    ------
    ConfigError
        Where no text is long enough, or the vocabulary is too large.
    """
    if vocabulary_size > MAX_VOCABULARY:
        raise ConfigError(f"a vocabulary of {vocabulary_size} words is more than {MAX_VOCABULARY}")
    if not any(text.size > order for text in texts):
        raise ConfigError(f"no text has more than {order} words: too short for n-grams of order {order}")
    highest = np.concatenate([_windows(text, order) for text in texts])
    grams, occurrences = np.unique(highest, axis=0, return_counts=True)
    kept, counts = [grams], [occurrences.astype(np.float64)]
    for length in range(order - 1, 0, -1):
        # Distinct left neighbours: of a (length + 1)-gram's kinds, not of its occurrences.
        longer = np.unique(np.concatenate([_windows(text, length + 1) for text in texts]), axis=0)
        grams, neighbours = np.unique(longer[:, 1:], axis=0, return_counts=True)
        kept.append(grams)
        counts.append(neighbours.astype(np.float64))
    kept.reverse()
    counts.reverse()
    return NgramCounts(tuple(kept), tuple(counts), tuple(_discount(one) for one in counts), vocabulary_size)


def _windows(text: Ints, length: int) -> Ints:
    if text.size < length:
        return np.empty((0, length), dtype=np.int64)
    return np.lib.stride_tricks.sliding_window_view(text, length)


def _discount(counts: Floats) -> float:
    """n1 / (n1 + 2 n2), Ney, Essen and Kneser 1994; a half where nothing occurs once or twice."""
    once, twice = float((counts == 1).sum()), float((counts == 2).sum())
    return once / (once + 2 * twice) if once > 0 and twice > 0 else 0.5
