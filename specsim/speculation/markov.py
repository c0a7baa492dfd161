"""Pairs of Markov chains over a few tokens: the smallest models whose distributions depend on context."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Floats
from specsim.speculation.distributions import Prefixes
from specsim.speculation.prefixes import last_tokens

_ZERO_SHARE = 0.15
"""Share of the entries of a random pair that are 0: rules differ where only one of p and q has mass."""


class MarkovPair:
    """Target and draft by the last L tokens.

    Parameters
    ----------
    target, draft
        Distributions, [(V + 1)^L, V]: the row of a context is its number in base V + 1, the last token
        lowest, where V stands for no token.
    order
        L.
    eos_token_id
        Token that ends a sequence.
    """

    offers: Literal["conditional"] = "conditional"

    def __init__(
        self, target: Floats, draft: Floats, *, order: int = 1, eos_token_id: int | None = None
    ) -> None:
        self._target = target
        self._draft = draft
        self.vocabulary_size = target.shape[1]
        self.num_context_tokens = order
        self.eos_token_id = eos_token_id

    def target(self, prefix: Prefixes) -> Floats:
        """Target distribution after each prefix, [rows, V]."""
        return self._of(self._target, prefix)

    def draft(self, prefix: Prefixes) -> Floats:
        """Draft distribution after each prefix, [rows, V]."""
        return self._of(self._draft, prefix)

    def _of(self, table: Floats, prefix: Prefixes) -> Floats:
        size = self.vocabulary_size
        tokens = last_tokens(prefix, self.num_context_tokens).tokens
        places = (size + 1) ** np.arange(tokens.shape[1])[::-1]
        law: Floats = table[(np.where(tokens < 0, size, tokens) * places).sum(axis=1)]
        return law


def random_markov_pair(
    generator: np.random.Generator,
    *,
    vocabulary_size: int,
    order: int = 2,
    is_certain: bool = False,
) -> MarkovPair:
    """Return a pair whose draft resembles its target, some entries of either being 0.

    Parameters
    ----------
    generator
        Where the pair comes from.
    vocabulary_size, order
        V and L.
    is_certain
        The target is certain of one token after each context: temperature 0.
    """
    shape = ((vocabulary_size + 1) ** order, vocabulary_size)
    target = _random_laws(generator, shape)
    draft = 0.5 * target + 0.5 * _random_laws(generator, shape)
    draft = _with_zeros(generator, draft)
    if is_certain:
        target = np.eye(vocabulary_size)[target.argmax(axis=1)]
    return MarkovPair(target, draft, order=order)


def _random_laws(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return _with_zeros(generator, generator.dirichlet(np.ones(shape[1]), shape[0]))


def _with_zeros(generator: np.random.Generator, laws: Floats) -> Floats:
    is_zero = generator.random(laws.shape) < _ZERO_SHARE
    is_zero[np.arange(len(laws)), laws.argmax(axis=1)] = False
    kept: Floats = np.where(is_zero, 0.0, laws)
    kept /= kept.sum(axis=1, keepdims=True)
    return kept
