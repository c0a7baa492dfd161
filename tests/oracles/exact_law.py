"""The exact law of the next tokens under a verifier, by enumeration of every draft and every outcome."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import numpy as np

from specsim.speculation.chain import ChainDraft
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.prefixes import extended
from specsim.speculation.verify.rule import Verifier

Law: TypeAlias = dict[tuple[int, ...], float]
"""Probability of each string of tokens."""


def target_law(pair: ConditionalDistributions, prefix: Prefixes, num_tokens: int) -> Law:
    """Law of the next tokens under plain sampling from the target."""
    law = {}
    for tokens in product(range(pair.vocabulary_size), repeat=num_tokens):
        chance, at = 1.0, prefix
        for token in tokens:
            chance *= float(pair.target(at)[0, token])
            at = extended(at, np.array([token]))
        law[tokens] = chance
    return law


def speculative_law(
    pair: ConditionalDistributions, verifier: Verifier, prefix: Prefixes, lookahead: int
) -> tuple[Law, float]:
    """Law of the next ``lookahead + 1`` tokens where one round is followed by plain sampling; E[tokens]."""
    law = dict.fromkeys(product(range(pair.vocabulary_size), repeat=lookahead + 1), 0.0)
    expected = 0.0
    for chance, draft in ChainDraft(pair, num_tokens=lookahead).enumerate(prefix):
        places = [prefix]
        for token in draft.token[0]:
            places.append(extended(places[-1], np.array([token])))
        target = np.stack([pair.target(place)[0] for place in places])[np.newaxis]
        keep = verifier.descend(draft, target)[0]
        for kept in range(lookahead + 1):
            stops = 1.0 if kept == lookahead else 1 - keep[kept]
            outcome = chance * float(np.prod(keep[:kept])) * float(stops)
            if outcome == 0:
                continue
            expected += outcome * (kept + 1)
            final = verifier.next_token(draft, target, np.array([kept - 1]))[0]
            head = tuple(draft.token[0, :kept].tolist())
            for token in range(pair.vocabulary_size):
                at = extended(places[kept], np.array([token]))
                rest = target_law(pair, at, lookahead - kept)
                for tail, tail_chance in rest.items():
                    law[(*head, token, *tail)] += outcome * float(final[token]) * tail_chance
    return law, expected
