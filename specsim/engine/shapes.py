"""From rounds to the shapes of the passes that they pay for: pure array arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Ints
from specsim.hardware.step import StepShape
from specsim.speculation.rounds import Rounds


@dataclass(slots=True)
class DraftPasses:
    """Draft passes of R rounds: the passes that run, and the round that each belongs to."""

    shape: StepShape
    """One row a pass, [passes]."""
    round: Ints
    """Round of each pass, [passes]."""


def contexts(cached_tokens: Ints, rounds: Rounds) -> Ints:
    """Return the cached tokens of each sequence at the start of each round, [R, B].

    ``cached_tokens`` [B] is the context at the first round; a round adds what it emits.
    """
    grown = np.cumsum(rounds.num_emitted, axis=0)
    grown += cached_tokens - rounds.num_emitted
    return grown


def verification_shape(context: Ints, rounds: Rounds) -> StepShape:
    """Shape of the target pass of each round, [R]: the last emitted token and all draft tokens.

    The position that follows j others of its sequence attends to context + j + 1 tokens.
    """
    width = rounds.num_positions
    positions = width.sum(axis=1)
    return StepShape(
        num_sequences=np.full(positions.shape, width.shape[1], dtype=np.int64),
        num_positions=positions,
        num_prefill_positions=np.zeros_like(positions),
        num_logit_positions=positions,
        context_tokens=context.sum(axis=1),
        position_context=(width * context + width * (width + 1) // 2).sum(axis=1),
    )


def draft_passes(context: Ints, rounds: Rounds, unseen: Ints) -> DraftPasses:
    """Draft passes of each round: as many as the longest draft, each at the sequences still drafting.

    A pass computes one position of each sequence in a chain, a whole level of it in a tree; what earlier
    passes of the round computed is in the cache by then. The first computes the ``unseen`` tokens [R, B]
    before the newest as well, and drafts after the newest alone.
    """
    steps = rounds.num_draft_steps
    width = rounds.positions_of_passes()
    depth = np.arange(width.shape[1], dtype=np.int64)
    active = steps[:, None, :] > depth[None, :, None]
    sequences = active.sum(axis=2)
    context_of_active = (active * context[:, None, :]).sum(axis=2)
    drafted_before = np.cumsum(width, axis=1) - width
    runs = sequences > 0
    num_positions = sequences * width
    num_logit_positions = num_positions.copy()
    context_tokens = context_of_active + sequences * drafted_before
    # A position attends to its own ancestors and itself, not to the rest of its level.
    position_context = width * (context_of_active + sequences * (depth + 1))
    if unseen.any() and depth.size:
        first = unseen * active[:, 0]
        num_unseen = first.sum(axis=1)
        num_positions[:, 0] += num_unseen
        context_tokens[:, 0] -= num_unseen
        position_context[:, 0] += (first * (2 * context + 1 - first) // 2).sum(axis=1)
    return DraftPasses(
        shape=StepShape(
            num_sequences=sequences[runs],
            num_positions=num_positions[runs],
            num_prefill_positions=np.zeros_like(sequences[runs]),
            num_logit_positions=num_logit_positions[runs],
            context_tokens=context_tokens[runs],
            position_context=position_context[runs],
        ),
        round=np.nonzero(runs)[0],
    )


def draft_positions(rounds: Rounds, unseen: Ints) -> Ints:
    """Positions that the draft computes in each round over the whole batch, the ``unseen`` with them, [R]."""
    width = rounds.positions_of_passes()
    upto = np.concatenate([np.zeros((len(width), 1), dtype=np.int64), np.cumsum(width, axis=1)], axis=1)
    positions = np.take_along_axis(upto, rounds.num_draft_steps, axis=1)
    positions += unseen * (rounds.num_draft_steps > 0)
    total: Ints = positions.sum(axis=1)
    return total


@dataclass(slots=True)
class PrefillPasses:
    """Passes that prefill a group of prompts, and the pass in which each prompt ends."""

    shape: StepShape
    """One row a pass, [passes]."""
    last_pass: Ints
    """Pass at whose end each request emits its first token, [requests]."""


def prefill_passes(num_prompt_tokens: Ints, *, max_num_batched_tokens: int) -> PrefillPasses:
    """Pack prompts in order into passes of at most ``max_num_batched_tokens``, splitting where needed.

    A chunk reads the cached tokens of its prompt's earlier chunks; its positions attend to them and to
    each other causally.
    """
    ends = np.cumsum(num_prompt_tokens)
    starts = ends - num_prompt_tokens
    first = np.arange(0, ends[-1], max_num_batched_tokens, dtype=np.int64)
    # A chunk runs from the start of a pass or of a prompt to the next such start.
    chunk = np.union1d(first, starts)
    tokens = np.diff(chunk, append=ends[-1:])
    cached = chunk - starts[np.searchsorted(starts, chunk, side="right") - 1]
    first_chunk = np.searchsorted(chunk, first)
    positions = np.add.reduceat(tokens, first_chunk)
    last_pass = (ends - 1) // max_num_batched_tokens
    return PrefillPasses(
        shape=StepShape(
            num_sequences=np.diff(first_chunk, append=chunk.size),
            num_positions=positions,
            num_prefill_positions=positions,
            num_logit_positions=np.bincount(last_pass, minlength=first.size).astype(np.int64),
            context_tokens=np.add.reduceat(cached, first_chunk),
            position_context=np.add.reduceat(tokens * cached + tokens * (tokens + 1) // 2, first_chunk),
        ),
        last_pass=last_pass,
    )
