"""The joint law of kept drafts and emitted text of one round, as a replay along the text has it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.draft import node_depths
from specsim.speculation.prove.strings import string_law
from specsim.speculation.prove.subject import Subject


def replayed_endings(
    subject: Subject,
    first: Ints,
    keep: Callable[[Floats, Floats], Floats],
    *,
    token: Ints,
    parent: Ints,
    start: Ints,
    weight: Floats,
) -> list[Floats]:
    """Law of the strings that a round emits where it is replayed along every text.

    Parameters
    ----------
    subject
        Distributions and a draft of depth D: a chain, or a tree that is a function of the prefix.
    first
        Tokens at output position 0, [firsts].
    keep
        Probability that each draft is kept, of p and q along the text.
    token, parent
        Drafts, [rows, N] each; -1 pads.
    start, weight
        After which first token each is drafted, and how likely it is, [rows].

    Returns
    -------
    list
        Of the strings of 1 … D + 1 tokens, [firsts, V^length] each, numbered in base V.
    """
    size, depth = subject.distributions.vocabulary_size, subject.draft_source.depth
    texts = [string_law(subject.distributions, first, length) for length in range(depth + 2)]
    drafts = _laws_of_drafts(token, parent, start, weight, num_firsts=first.size, size=size, depth=depth)
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


def _laws_of_drafts(
    token: Ints, parent: Ints, start: Ints, weight: Floats, *, num_firsts: int, size: int, depth: int
) -> list[Floats]:
    """Probability that a draft holds each string from its root, of 0 … D tokens, [firsts, V^length] each."""
    rows = np.arange(len(token))
    laws: list[Floats] = [np.zeros((num_firsts, size**length)) for length in range(depth + 1)]
    np.add.at(laws[0][:, 0], start, weight)
    number, level = np.zeros_like(token), node_depths(parent)
    for node in range(token.shape[1]):
        above = np.where(parent[:, node] < 0, 0, number[rows, parent[:, node]])
        number[:, node] = above * size + token[:, node]
        for length in range(1, depth + 1):
            is_here = (level[:, node] == length - 1) & (token[:, node] >= 0)
            np.add.at(laws[length], (start[is_here], number[is_here, node]), weight[is_here])
    return laws


def _given_before(laws: list[Floats], level: int, depth: int, size: int) -> Floats:
    """Probability of the last token of each string of ``level`` given those before, [firsts, V^depth]."""
    before = np.repeat(laws[level - 1], size, axis=1)
    given = np.where(before > 0, laws[level] / np.where(before > 0, before, 1.0), 0.0)
    return np.repeat(given, size ** (depth - level), axis=1)
