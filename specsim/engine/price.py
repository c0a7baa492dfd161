"""What rounds cost outside a run: the same arithmetic as inside one, for tables and sliders."""

from __future__ import annotations

import simpy

from specsim.arrays import Ints
from specsim.engine.arm import pair_of
from specsim.engine.deploy import Deployed
from specsim.engine.draft_cache import draft_cached
from specsim.engine.pair import Block
from specsim.engine.shapes import contexts
from specsim.speculation.rounds import Rounds


def price_rounds(target: Deployed, draft: Deployed | None, cached_tokens: Ints, rounds: Rounds) -> Block:
    """Time, energy, operations and bytes of R rounds of a batch, draft and target apart.

    Parameters
    ----------
    target, draft
        The models on their devices; without a draft the rounds verify only.
    cached_tokens
        Tokens in both caches of each sequence at the first round, [B]; a round adds what it emits.
    rounds
        What is drafted, verified and emitted, [R, B].

    Raises
    ------
    DomainError
        Where a pass is outside what a profile covers.
    """
    pair, context = pair_of(simpy.Environment(), target, draft), contexts(cached_tokens, rounds)
    held = draft_cached(pair.first_pass, context, rounds, cached_tokens)
    return pair.rounds(context, rounds, held[:-1])
