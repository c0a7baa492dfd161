"""The law of the next tokens under plain sampling from the target: what every lossless rule must emit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.distributions import ConditionalDistributions, Prefixes

Ending = Callable[[int], Floats]
"""Law of the strings of a length that end there, [firsts, V^length]."""


def string_law(
    distributions: ConditionalDistributions,
    first: Ints,
    num_tokens: int,
    *,
    ending: Ending | None = None,
) -> Floats:
    """Law of the ``num_tokens`` tokens after each first token, [firsts, V^num_tokens].

    Strings are numbered in base V, the last token lowest.

    Parameters
    ----------
    distributions
        Where p comes from.
    first
        Tokens at output position 0, [firsts].
    num_tokens
        Length of the strings.
    ending
        Law of shorter strings that plain sampling goes on from; absent: it begins after the first token.
    """
    size, num_context = distributions.vocabulary_size, distributions.num_context_tokens
    law: Floats = np.full((first.size, 1), 1.0 if ending is None else 0.0)
    context: Ints = np.full((first.size, num_context), -1)
    context[:, -1:] = first[:, np.newaxis]
    for length in range(1, num_tokens + 1):
        prefix = Prefixes(np.repeat(np.arange(first.size), law.shape[1]), np.full(law.size, length), context)
        p = distributions.target(prefix).reshape(first.size, -1, size)
        law = (law[:, :, np.newaxis] * p).reshape(first.size, -1)
        if ending is not None:
            law += ending(length)
        token = np.tile(np.arange(size), len(context))[:, np.newaxis]
        context = np.repeat(context, size, axis=0)
        if num_context:
            context = np.concatenate([context[:, 1:], token], axis=1)
    return law


def string_numbers(tokens: Ints, vocabulary_size: int) -> Ints:
    """Return the number of each string, [rows], of tokens [rows, length] in base V, the last token lowest.

    Examples
    --------
    >>> string_numbers(np.array([[1, 0, 1]]), 2).tolist()
    [5]
    """
    number: Ints = np.zeros(len(tokens), dtype=np.int64)
    for place in range(tokens.shape[1]):
        number = number * vocabulary_size + tokens[:, place]
    return number
