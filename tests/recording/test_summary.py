"""Acceptance of a trace: rounds against closed forms, means and intervals over prompts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError, DomainError
from specsim.recording import acceptance_by_domain
from specsim.recording.summary import expected_rounds
from specsim.speculation.theory import finite_length
from specsim.speculation.trace import Trace
from tests.strategies import random_trace


def with_constant_acceptance(lengths: list[int], acceptance: float) -> Trace:
    trace = random_trace(2, lengths)
    trace.p_token = np.full(trace.num_tokens, 0.5, dtype=np.float32)
    trace.q_token = trace.p_token * np.float32(acceptance)
    return trace


@pytest.mark.parametrize("num_speculative_tokens", [1, 4, 7])
@pytest.mark.parametrize("num_tokens", [2, 3, 11, 40])
def test_expected_rounds_of_constant_acceptance_are_the_closed_form(
    num_tokens: int, num_speculative_tokens: int
) -> None:
    trace = with_constant_acceptance([num_tokens], 0.8)
    rounds = expected_rounds(trace, 0, num_speculative_tokens=num_speculative_tokens)
    closed = finite_length(float(np.float32(0.8)), num_speculative_tokens, num_tokens - 1)
    assert rounds == pytest.approx(closed.expected_rounds, rel=1e-6)


@given(seed=st.integers(0, 50), num_tokens=st.integers(1, 20), depth=st.integers(1, 4))
def test_rounds_of_a_lookup_are_those_counted_one_by_one(seed: int, num_tokens: int, depth: int) -> None:
    trace = random_trace(seed, [num_tokens], with_scalars=False)
    assert trace.proposal_token is not None
    position, rounds = 1, 0
    while position < num_tokens:
        proposed = trace.proposal_token[position, :depth].tolist()
        ahead = trace.token[position : position + depth].tolist()
        agree = [one == other for one, other in zip(proposed, ahead, strict=False)] + [False]
        position += agree.index(False) + 1
        rounds += 1
    assert expected_rounds(trace, 0, num_speculative_tokens=depth) == pytest.approx(rounds)


def test_a_greedy_draft_is_counted_by_its_most_probable_token() -> None:
    trace = random_trace(3, [30])
    greedy = trace.header.model_copy(update={"draft_sample_method": "greedy"})
    assert trace.draft_argmax is not None
    assert trace.p_at_draft_argmax is not None
    trace.header = greedy
    agree = trace.draft_argmax == trace.token
    rounds = expected_rounds(trace, 0, num_speculative_tokens=1)
    # With K = 1 a round advances by two where the draft agrees.
    position, counted = 1, 0
    while position < 30:
        position += 2 if agree[position] else 1
        counted += 1
    assert rounds == pytest.approx(counted)
    (row, _) = acceptance_by_domain(trace)
    assert row.acceptance_rate.value == pytest.approx(trace.p_at_draft_argmax[1:].mean(), rel=1e-5)


def test_each_domain_is_averaged_over_its_own_positions() -> None:
    trace = random_trace(4, [10, 4, 6, 3])
    assert trace.overlap is not None
    chat, code, everything = acceptance_by_domain(trace)
    assert (chat.domain, code.domain, everything.domain) == ("chat", "code", "all")
    assert (chat.num_prompts, chat.num_tokens, everything.num_tokens) == (2, 16, 23)
    of_chat = np.concatenate([trace.overlap[1:10], trace.overlap[15:20]])
    assert chat.acceptance_rate.value == pytest.approx(of_chat.mean(), rel=1e-6)
    # The first token of each prompt is emitted by prefill: no draft of it is ever verified.
    drafted = np.delete(trace.overlap, trace.offsets[:-1])
    assert everything.acceptance_rate.value == pytest.approx(drafted.mean(), rel=1e-6)
    assert chat.proposal_rate == 1.0


def test_a_lookup_that_proposes_nothing_counts_as_no_acceptance() -> None:
    trace = random_trace(5, [40], with_scalars=False)
    assert trace.proposal_token is not None
    assert trace.p_at_proposal is not None
    row = acceptance_by_domain(trace, num_speculative_tokens=2)[0]
    share = float(np.mean(trace.proposal_token[1:, 0] >= 0))
    assert row.proposal_rate == pytest.approx(share)
    assert row.acceptance_rate.value == pytest.approx(0.5 * share)


def test_the_interval_is_over_prompts_not_over_positions() -> None:
    # Ten prompts, each all accepted or all rejected: long prompts make the interval no narrower.
    trace = random_trace(6, [200] * 10)
    trace.overlap = np.repeat(np.arange(10) % 2, 200).astype(np.float32)
    everything = acceptance_by_domain(trace)[-1].acceptance_rate
    assert everything.interval is not None
    width = everything.interval[1] - everything.interval[0]
    assert 0.4 < width < 1.0
    assert everything.value == 0.5


def test_one_prompt_has_no_interval_and_one_token_no_rounds() -> None:
    row = acceptance_by_domain(random_trace(7, [1]))[0]
    assert row.acceptance_rate.value is None
    assert row.acceptance_rate.interval is None
    assert row.proposal_rate is None
    assert row.tokens_per_round.value is None


def test_impossible_lookaheads_are_refused() -> None:
    with pytest.raises(DomainError, match="at least 1"):
        acceptance_by_domain(random_trace(8, [5]), num_speculative_tokens=0)
    with pytest.raises(ConfigError, match="more than the depth of 4"):
        acceptance_by_domain(random_trace(8, [5], with_scalars=False), num_speculative_tokens=5)
