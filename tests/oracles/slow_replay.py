"""Rounds along a path in plain Python, straight from the definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.speculation.distributions import PathDistributions
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.streams import Purpose, RandomStreams


@dataclass(frozen=True)
class SlowRound:
    """One round of one request."""

    start: int
    num_drafted: int
    num_draft_steps: int
    num_accepted: int
    num_emitted: int
    is_last: bool


def replay(
    distributions: PathDistributions,
    policy: LookaheadPolicy,
    *,
    seed: int,
    request: int,
    num_output_tokens: int,
    num_speculative_tokens: int,
    shorten_last_draft: bool,
) -> list[SlowRound]:
    """All rounds of one request: a draft at i is kept iff the stop uniform of i is below a(s, i)."""
    luck = RandomStreams(seed).luck(Purpose.STOP)
    path = distributions.path(request)
    end = num_output_tokens if path is None else min(num_output_tokens, path.num_tokens)
    depth = num_speculative_tokens
    state = policy.start(1)
    rounds, start = [], 1
    while start < end:
        where = (np.array([request]), np.array([start]), depth)
        acceptance = distributions.acceptance(*where)[0]
        limit = min(depth, end - start - 1) if shorten_last_draft else depth
        length = int(policy.lengths(distributions.signals(*where), state, np.array([limit]))[0])
        drafted, kept, is_going = 0, 0, True
        for i in range(length):
            if np.isnan(acceptance[i]):
                break
            drafted += 1
            is_going = is_going and bool(luck.along(request, start + i, 1)[0] < acceptance[i])
            kept += is_going
        emitted = min(kept + 1, end - start)
        steps = min(length, 1) if distributions.drafts_in_one_pass else drafted
        rounds.append(SlowRound(start, drafted, steps, min(kept, emitted), emitted, start + emitted == end))
        state = policy.observe(state, np.array([drafted]), np.array([kept]))
        start += emitted
    return rounds
