"""Text as numbers: words and marks, the frequent ones each a token, all others one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specsim.arrays import Ints

_WORD = re.compile(r"\w+|[^\w\s]")
UNKNOWN = "<unknown>"
"""Stands for every word that is not in the vocabulary."""


def words(text: str) -> list[str]:
    """Words and marks of a text in lower case.

    Examples
    --------
    >>> words("It's late, again.")
    ['it', "'", 's', 'late', ',', 'again', '.']
    """
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by number; 0 is the unknown word."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[list[str]], *, most: int) -> Vocabulary:
        """Return the most frequent words, at most ``most`` with the unknown one, in order of frequency.

        Examples
        --------
        >>> Vocabulary.of([["a", "b", "a"]], most=2).words
        ('<unknown>', 'a')
        """
        counts = Counter(word for text in texts for word in text)
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        return cls((UNKNOWN, *ordered[: most - 1]))

    def encode(self, text: Sequence[str]) -> Ints:
        """Tokens of words, [words]."""
        number = {word: place for place, word in enumerate(self.words)}
        return np.array([number.get(word, 0) for word in text], dtype=np.int64)
