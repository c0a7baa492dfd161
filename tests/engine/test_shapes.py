"""Shapes of passes against a count by hand, sequence by sequence and position by position."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.engine.shapes import (
    contexts,
    draft_passes,
    draft_positions,
    prefill_passes,
    verification_shape,
)
from specsim.speculation.rounds import Rounds

widths = st.integers(1, 3).flatmap(
    lambda num_sequences: st.lists(
        st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=num_sequences, max_size=num_sequences
        ),
        min_size=1,
        max_size=4,
    )
)


def rounds_of(table: list[list[tuple[int, int]]]) -> Rounds:
    """Make rounds from (drafted, accepted at most drafted), a row a round."""
    drafted = np.array([[cell[0] for cell in row] for row in table], dtype=np.int64)
    accepted = np.minimum(np.array([[cell[1] for cell in row] for row in table], dtype=np.int64), drafted)
    return Rounds(
        num_drafted=drafted,
        num_draft_steps=drafted,
        num_positions=drafted + 1,
        num_accepted=accepted,
        num_emitted=accepted + 1,
        is_last=np.zeros(drafted.shape, dtype=bool),
    )


@given(table=widths, start=st.integers(0, 50))
def test_verification_attends_to_the_context_and_to_the_drafts_before(
    table: list[list[tuple[int, int]]], start: int
) -> None:
    rounds = rounds_of(table)
    cached = np.arange(start, start + rounds.num_drafted.shape[1], dtype=np.int64)
    shape = verification_shape(contexts(cached, rounds), rounds)
    for number, row in enumerate(table):
        pairs = positions = read = 0
        for sequence, _ in enumerate(row):
            context = int(cached[sequence]) + int(rounds.num_emitted[:number, sequence].sum())
            read += context
            for position in range(int(rounds.num_drafted[number, sequence]) + 1):
                pairs += context + position + 1
                positions += 1
        assert shape.position_context[number] == pairs
        assert shape.num_positions[number] == shape.num_logit_positions[number] == positions
        assert shape.context_tokens[number] == read


@given(table=widths, start=st.integers(3, 50), data=st.data())
def test_draft_passes_are_the_longest_chain_each_at_those_still_drafting(
    table: list[list[tuple[int, int]]], start: int, data: st.DataObject
) -> None:
    rounds = rounds_of(table)
    size = rounds.num_drafted.size
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    unseen = np.array(drawn).reshape(rounds.num_drafted.shape)
    cached = np.arange(start, start + rounds.num_drafted.shape[1], dtype=np.int64)
    passes = draft_passes(contexts(cached, rounds), rounds, unseen)
    expected = []
    for number, row in enumerate(table):
        for depth in range(max(cell[0] for cell in row)):
            drafting = [sequence for sequence, cell in enumerate(row) if cell[0] > depth]
            positions = read = pairs = 0
            for sequence in drafting:
                context = int(cached[sequence]) + int(rounds.num_emitted[:number, sequence].sum()) + depth
                behind = int(unseen[number, sequence]) if depth == 0 else 0
                read += context - behind
                for before in range(context - behind, context + 1):
                    pairs += before + 1
                    positions += 1
            expected.append((number, positions, len(drafting), read, pairs))
    shape = passes.shape
    columns = shape.num_positions, shape.num_logit_positions, shape.context_tokens, shape.position_context
    assert [tuple(map(int, row)) for row in zip(passes.round, *columns, strict=True)] == expected
    counted = np.bincount(passes.round, weights=shape.num_positions, minlength=len(table))
    assert draft_positions(rounds, unseen).tolist() == counted.tolist()


@given(prompts=st.lists(st.integers(1, 40), min_size=1, max_size=6), budget=st.integers(1, 30))
def test_prefill_packs_every_token_once_within_the_budget(prompts: list[int], budget: int) -> None:
    passes = prefill_passes(np.array(prompts, dtype=np.int64), max_num_batched_tokens=budget)
    pairs = [0] * passes.shape.num_positions.size
    read = [0] * len(pairs)
    last = []
    token = 0
    for length in prompts:
        seen: set[int] = set()
        for index in range(length):
            number = token // budget
            pairs[number] += index + 1
            if number not in seen:
                seen.add(number)
                read[number] += index
            token += 1
        last.append((token - 1) // budget)
    assert passes.shape.position_context.tolist() == pairs
    assert passes.shape.context_tokens.tolist() == read
    assert passes.last_pass.tolist() == last
    assert passes.shape.num_positions.max() <= budget
    assert passes.shape.num_positions.sum() == sum(prompts)
    assert passes.shape.num_logit_positions.sum() == len(prompts)


def test_a_round_without_drafts_has_no_draft_pass() -> None:
    unseen = np.array([[1], [0]])
    passes = draft_passes(np.array([[5], [6]]), rounds_of([[(0, 0)], [(2, 0)]]), unseen)
    assert passes.round.tolist() == [1, 1]


@pytest.mark.parametrize("budget", [1, 7, 512])
def test_one_prompt_attends_to_the_same_pairs_however_it_is_split(budget: int) -> None:
    passes = prefill_passes(np.array([100]), max_num_batched_tokens=budget)
    assert passes.shape.position_context.sum() == 100 * 101 // 2


def test_many_passes_over_many_prompts_take_memory_of_their_sum_not_product() -> None:
    prompts = np.full(1000, 100, dtype=np.int64)
    tracemalloc.start()
    passes = prefill_passes(prompts, max_num_batched_tokens=1)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(passes.shape.num_positions) == 100_000
    assert peak_bytes < 100_000 * 8 * 50
