"""Lookahead policies: worked examples, and the law that every length rule obeys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from specsim.speculation import (
    LOOKAHEAD_POLICIES,
    BuildContext,
    Confidence,
    ConfidenceSpec,
    Fixed,
    Heuristic,
    HeuristicSpec,
    LookaheadPolicy,
    Signals,
)

POLICIES: list[LookaheadPolicy] = [
    Fixed(),
    Heuristic(initial_tokens=3, most_tokens=6),
    Confidence(threshold=0.6),
]


def _signals(*top: float) -> Signals:
    return Signals(top_probability=np.array([top]), entropy_nats=np.full((1, len(top)), np.nan))


def _confident_length(threshold: float, *top: float, limit: int) -> int:
    policy = Confidence(threshold=threshold)
    return int(policy.lengths(_signals(*top), policy.start(1), np.array([limit]))[0])


def test_heuristic_follows_transformers_schedule() -> None:
    policy = Heuristic(initial_tokens=20, most_tokens=64)
    state, lengths = policy.start(1), []
    for is_full in (True, True, False, False, False, True):
        drafted = policy.lengths(_signals(), state, np.array([64]))
        state = policy.observe(state, drafted, drafted if is_full else drafted - 1)
        lengths.append(int(state[0, 0]))
    assert lengths == [22, 24, 23, 22, 21, 23]


def test_heuristic_starts_anew_for_each_request() -> None:
    policy = Heuristic(initial_tokens=20, most_tokens=64)
    policy.observe(policy.start(1), np.array([20]), np.array([20]))
    assert policy.start(2).tolist() == [[20], [20]]


def test_heuristic_never_falls_below_one_nor_rises_above_the_most() -> None:
    policy = Heuristic(initial_tokens=1, most_tokens=4)
    assert policy.observe(np.array([[1.0]]), np.array([1]), np.array([0])).tolist() == [[1]]
    assert policy.observe(np.array([[3.0]]), np.array([3]), np.array([3])).tolist() == [[4]]


def test_heuristic_ignores_a_round_that_drafted_nothing() -> None:
    policy = Heuristic(initial_tokens=5, most_tokens=9)
    assert policy.observe(np.array([[5.0]]), np.array([0]), np.array([0])).tolist() == [[5]]


def test_heuristic_begins_at_twenty_unless_told() -> None:
    context = BuildContext(num_speculative_tokens=30)
    assert HeuristicSpec().build(context).start(1).tolist() == [[20]]
    assert HeuristicSpec(initial_tokens=5).build(context).start(1).tolist() == [[5]]


def test_confidence_drafts_all_that_it_is_sure_of() -> None:
    assert _confident_length(0.6, 0.9, 0.8, 0.7, limit=3) == 3


def test_confidence_keeps_the_token_that_makes_it_stop() -> None:
    assert _confident_length(0.6, 0.9, 0.8, 0.5, 0.9, limit=4) == 3
    assert _confident_length(0.6, 0.1, 0.9, limit=2) == 1


def test_confidence_goes_on_where_the_signal_is_unknown_and_stops_at_the_limit() -> None:
    assert _confident_length(0.6, np.nan, 0.9, np.nan, limit=3) == 3
    assert _confident_length(0.6, 0.9, 0.9, 0.9, limit=2) == 2
    assert _confident_length(0.6, 0.9, 0.9, limit=0) == 0


def test_confidence_stops_strictly_below_its_threshold() -> None:
    assert _confident_length(0.5, 0.5, 0.5, limit=2) == 2


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_a_threshold_outside_the_unit_interval_is_refused(threshold: float) -> None:
    with pytest.raises(ValidationError, match="threshold"):
        ConfidenceSpec(threshold=threshold)


def test_the_default_threshold_is_that_of_transformers() -> None:
    assert ConfidenceSpec().threshold == 0.4


PROBABILITIES = st.lists(st.floats(0, 1), min_size=6, max_size=6)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@given(before=PROBABILITIES, after=PROBABILITIES, depth=st.integers(0, 5), limit=st.integers(0, 6))
def test_later_signals_never_change_whether_an_earlier_length_is_exceeded(
    policy: LookaheadPolicy, before: list[float], after: list[float], depth: int, limit: int
) -> None:
    seen = depth + policy.passes_ahead
    mixed = before[:seen] + after[seen:]
    state = policy.start(1)
    lengths = [
        int(policy.lengths(Signals(np.array([top]), np.array([top])), state, np.array([limit]))[0])
        for top in (before, mixed)
    ]
    assert all(0 <= length <= limit for length in lengths)
    assert (lengths[0] > depth) == (lengths[1] > depth)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@given(tops=st.lists(PROBABILITIES, min_size=1, max_size=4), limits=st.data())
def test_rows_of_a_batch_do_not_touch_each_other(
    policy: LookaheadPolicy, tops: list[list[float]], limits: st.DataObject
) -> None:
    count = len(tops)
    limit = np.array(limits.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count)))
    top = np.array(tops)
    together = policy.lengths(Signals(top, top), policy.start(count), limit)
    alone = [
        int(policy.lengths(Signals(top[[row]], top[[row]]), policy.start(1), limit[[row]])[0])
        for row in range(count)
    ]
    assert together.tolist() == alone


def test_every_registered_policy_builds() -> None:
    assert LOOKAHEAD_POLICIES.kinds() == ("confidence", "fixed", "heuristic")
    for kind, spec in LOOKAHEAD_POLICIES:
        policy = spec.model_validate({"kind": kind}).build(BuildContext(num_speculative_tokens=4))
        assert policy.start(2).shape[0] == 2
