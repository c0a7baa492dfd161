"""The joint law of kept drafts and emitted text of one round, as a replay along the text has it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.prove.strings import string_law, string_numbers
from specsim.speculation.prove.subject import Subject


def replayed_endings(
    subject: Subject,
    first: Ints,
    keep: Callable[[Floats, Floats], Floats],
    *,
    drafted: Ints,
    start: Ints,
    weight: Floats,
) -> list[Floats]:
    """Law of the strings that a round of a chain emits where it is replayed along every text.

    Parameters
    ----------
    subject
        Distributions and a chain draft of depth D.
    first
        Tokens at output position 0, [firsts].
    keep
        Probability that each draft is kept, of p and q along the text.
    drafted, start, weight
        Chains that are drafted, [rows, D], after which first token, [rows], and how likely each is, [rows].

    Returns
    -------
    list
        Of the strings of 1 … D + 1 tokens, [firsts, V^length] each, numbered in base V.
    """
    size, depth = subject.distributions.vocabulary_size, drafted.shape[1]
    texts = [string_law(subject.distributions, first, length) for length in range(depth + 2)]
    drafts = [
        _law_of_drafts(drafted[:, :length], start, weight, first.size, size) for length in range(depth + 1)
    ]
    p, q = (
        np.stack([_given_before(laws, level, depth, size) for level in range(1, depth + 1)], axis=-1)
        for laws in (texts, drafts)
    )
    # A token without mass is in no text; what is said of it there counts for nothing.
    kept = keep(np.where(p > 0, p, 1.0).reshape(-1, depth), q.reshape(-1, depth)).reshape(p.shape)
    at_least = np.concatenate([np.ones((*kept.shape[:2], 1)), np.cumprod(kept, axis=2)], axis=2)
    endings = [
        texts[length] * (at_least[:, :, length - 1] - at_least[:, :, length])[:, :: size ** (depth - length)]
        for length in range(1, depth + 1)
    ]
    return [*endings, texts[depth + 1] * np.repeat(at_least[:, :, depth], size, axis=1)]


def _law_of_drafts(drafted: Ints, start: Ints, weight: Floats, num_firsts: int, size: int) -> Floats:
    """Probability that the draft begins with each string, [firsts, V^length]; none begins with padding."""
    is_whole = (drafted >= 0).all(axis=1)
    law: Floats = np.zeros((num_firsts, size ** drafted.shape[1]))
    np.add.at(law, (start[is_whole], string_numbers(drafted[is_whole], size)), weight[is_whole])
    return law


def _given_before(laws: list[Floats], level: int, depth: int, size: int) -> Floats:
    """Probability of the last token of each string of ``level`` given those before, [firsts, V^depth]."""
    before = np.repeat(laws[level - 1], size, axis=1)
    given = np.where(before > 0, laws[level] / np.where(before > 0, before, 1.0), 0.0)
    return np.repeat(given, size ** (depth - level), axis=1)
