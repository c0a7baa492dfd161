"""Where p and q come from: explicit pairs, rates, recorded traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from specsim.errors import ConfigError
from specsim.speculation import (
    DISTRIBUTIONS,
    BuildContext,
    ChainSpec,
    ExplicitSpec,
    Prefixes,
    RatesSpec,
    RecordedPaths,
    TraceSpec,
)
from tests.strategies import headers, random_trace

K4 = BuildContext(num_speculative_tokens=4)
PREFIX = Prefixes(np.array([0, 1]), np.array([1, 1]), np.empty((2, 0), dtype=np.int64))
ONE = (np.array([0]), np.array([1]))


def test_explicit_distributions_are_the_same_after_every_prefix() -> None:
    context = BuildContext(num_speculative_tokens=4, draft_sample_method="probabilistic")
    pair = ExplicitSpec(target=(0.7, 0.3), draft=(0.3, 0.7)).build(context)
    assert pair.target(PREFIX).tolist() == [[0.7, 0.3]] * 2
    assert pair.draft(PREFIX).tolist() == [[0.3, 0.7]] * 2


def test_a_greedy_draft_is_certain_of_its_lowest_most_probable_token() -> None:
    pair = ExplicitSpec(target=(0.5, 0.3, 0.2), draft=(0.2, 0.4, 0.4)).build(K4)
    draft = ChainSpec().build(K4, pair).propose(PREFIX, np.full((2, 4), 0.99))
    assert draft.token.tolist() == [[1, 1, 1, 1]] * 2
    assert draft.probabilities[0, 0].tolist() == [0, 1, 0]
    assert draft.model_law is not None
    assert draft.model_law[0, 0].tolist() == [0.2, 0.4, 0.4]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target": (0.7, 0.3), "draft": (0.2, 0.3, 0.5)}, "over 2 and 3 tokens"),
        ({"target": (0.7, 0.4), "draft": (0.3, 0.7)}, "target: sums to 1.1"),
        ({"target": (0.7, 0.3), "draft": (1.3, -0.3)}, "draft: 1.3 at 0"),
        ({"target": (), "draft": ()}, "at least 1"),
        ({"target": (0.7, 0.3), "draft": (0.3, 0.7), "eos_token_id": 2}, "eos_token_id: 2 is not among 2"),
    ],
)
def test_explicit_pairs_that_are_none_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ExplicitSpec.model_validate(fields)


def test_rates_become_conditional_acceptance() -> None:
    rates = RatesSpec(synthetic_acceptance_rates=(0.8, 0.64, 0.32, 0.0)).build(K4)
    np.testing.assert_allclose(rates.acceptance(*ONE, 4), [[0.8, 0.8, 0.5, 0.0]])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_the_product_of_conditional_acceptance_is_the_unconditional_rate(values: list[float]) -> None:
    rates = tuple(sorted(values, reverse=True))
    context = BuildContext(num_speculative_tokens=len(rates))
    conditional = RatesSpec(synthetic_acceptance_rates=rates).build(context).acceptance(*ONE, len(rates))
    np.testing.assert_allclose(np.cumprod(conditional[0]), rates, atol=1e-15)


def test_one_acceptance_rate_is_the_same_at_every_depth() -> None:
    rates = RatesSpec(acceptance_rate=0.7).build(K4)
    np.testing.assert_allclose(rates.acceptance(*ONE, 4), [[0.7] * 4])


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1.0, [0, 0, 0, 0]),
        (1.25, [0.25, 0, 0, 0]),
        (3.4, [1, 1, 0.4, 0]),
        (4.0, [1, 1, 1, 0]),
        (5.0, [1, 1, 1, 1]),
    ],
)
def test_a_length_is_certain_up_to_its_whole_part(length: float, expected: list[float]) -> None:
    rates = RatesSpec(synthetic_acceptance_length=length).unconditional(4)
    assert rates == pytest.approx(tuple(expected))
    assert 1 + sum(rates) == pytest.approx(length)


def test_a_length_above_k_plus_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"5\.1 is more than num_speculative_tokens \+ 1, 5"):
        RatesSpec(synthetic_acceptance_length=5.1).build(K4)


def test_rates_for_fewer_positions_than_k_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 rates for num_speculative_tokens: 4"):
        RatesSpec(synthetic_acceptance_rates=(0.8, 0.5)).build(K4)


def test_more_rates_than_k_serve_their_first_k() -> None:
    context = BuildContext(num_speculative_tokens=2)
    rates = RatesSpec(synthetic_acceptance_rates=(0.8, 0.4, 0.2)).build(context)
    np.testing.assert_allclose(rates.acceptance(*ONE, 2), [[0.8, 0.5]])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "none is given"),
        (
            {"acceptance_rate": 0.5, "synthetic_acceptance_length": 2},
            "given: synthetic_acceptance_length",
        ),
        ({"synthetic_acceptance_rates": (0.5, 0.6)}, "0.6 at position 1 is above 0.5"),
        ({"synthetic_acceptance_rates": (1.5,)}, "less than or equal to 1"),
        ({"synthetic_acceptance_rates": ()}, "at least 1"),
        ({"synthetic_acceptance_length": 0.5}, "greater than or equal to 1"),
        ({"acceptance_rate": -0.1}, "greater than or equal to 0"),
    ],
)
def test_rates_that_say_too_little_or_too_much_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RatesSpec.model_validate(fields)


def test_rates_know_no_path_and_no_signals() -> None:
    rates = RatesSpec(acceptance_rate=0.7).build(K4)
    assert rates.path(3) is None
    assert np.isnan(rates.signals(*ONE, 4).top_probability).all()


def test_requests_take_the_prompts_in_order_and_repeat() -> None:
    paths = RecordedPaths(random_trace(0, [5, 9, 2]))
    found = [paths.path(request) for request in range(7)]
    assert [path.prompt for path in found if path] == [0, 1, 2, 0, 1, 2, 0]
    assert [path.num_tokens for path in found if path] == [5, 9, 2, 5, 9, 2, 5]
    assert [path.domain for path in found[:2] if path] == ["chat", "code"]


def test_replay_accepts_with_probability_q_over_p() -> None:
    trace = random_trace(1, [6, 8])
    assert trace.q_token is not None
    expected = np.minimum(1, trace.q_token[8:12].astype(float) / trace.p_token[8:12].astype(float))
    found = RecordedPaths(trace).acceptance(np.array([1]), np.array([2]), 4)
    np.testing.assert_allclose(found, [expected])


def test_a_greedy_target_accepts_with_the_drafts_probability() -> None:
    trace = random_trace(1, [6])
    trace.p_token[:] = 1
    assert trace.q_token is not None
    found = RecordedPaths(trace).acceptance(np.array([0]), np.array([1]), 3)
    np.testing.assert_allclose(found, [trace.q_token[1:4].astype(float)])


def test_a_greedy_draft_is_kept_iff_its_argmax_is_on_the_path() -> None:
    trace = random_trace(1, [30])
    assert trace.draft_argmax is not None
    found = RecordedPaths(trace, draft_sample_method="greedy").acceptance(np.array([0]), np.array([1]), 20)
    assert found[0].tolist() == (trace.draft_argmax[1:21] == trace.token[1:21]).astype(float).tolist()
    assert 0 < found.mean() < 1


def test_nothing_is_kept_past_the_end_of_the_path() -> None:
    paths = RecordedPaths(random_trace(1, [6, 8]))
    found = paths.acceptance(np.array([0, 1]), np.array([4, 6]), 4)
    assert (found[:, 2:] == 0).all()
    assert (found[:, :2] > 0).all()
    assert np.isnan(paths.signals(np.array([0]), np.array([4]), 4).top_probability[0, 2:]).all()


def test_signals_are_those_along_the_path() -> None:
    trace = random_trace(2, [9])
    signals = RecordedPaths(trace).signals(np.array([0]), np.array([3]), 2)
    np.testing.assert_array_equal(signals.top_probability[0], trace.draft_top_probability[3:5])  # type: ignore[index]
    np.testing.assert_array_equal(signals.entropy_nats[0], trace.draft_entropy_nats[3:5])  # type: ignore[index]


def test_a_lookup_is_kept_iff_it_proposed_the_path_and_says_where_it_missed() -> None:
    trace = random_trace(3, [6], with_scalars=False)
    assert trace.proposal_token is not None
    trace.token[:] = [1, 2, 3, 4, 5, 6]
    trace.proposal_token[1] = [2, 3, 9, -1]
    trace.proposal_token[2] = [-1, -1, -1, -1]
    trace.proposal_token[4] = [5, 6, 7, 8]
    found = RecordedPaths(trace).acceptance(np.array([0, 0, 0]), np.array([1, 2, 4]), 4)
    np.testing.assert_array_equal(found[0], [1, 1, 0, np.nan])
    np.testing.assert_array_equal(found[1], [np.nan] * 4)
    np.testing.assert_array_equal(found[2], [1, 1, 0, 0])


def test_heads_go_on_from_the_rounds_start() -> None:
    trace = random_trace(4, [5], with_scalars=False)
    trace.proposal_token = trace.p_at_proposal = None
    trace.q_from_start = np.tile([0.5, 0.25], (5, 1)).astype(np.float32)
    trace.top_probability_from_start = np.tile([0.75, 0.5], (5, 1)).astype(np.float16)
    trace.entropy_from_start_nats = np.tile([1.0, 2.0], (5, 1)).astype(np.float16)
    trace.p_token[:] = 0.5
    trace.check()
    paths = RecordedPaths(trace, num_speculative_tokens=2)
    assert paths.acceptance(np.array([0]), np.array([2]), 2).tolist() == [[1.0, 0.5]]
    assert paths.signals(np.array([0]), np.array([2]), 2).top_probability.tolist() == [[0.75, 0.5]]
    with pytest.raises(ConfigError, match="draft_sample_method: greedy"):
        RecordedPaths(trace, draft_sample_method="greedy")


def test_a_k_beyond_the_recorded_depth_is_refused() -> None:
    trace = random_trace(3, [6], with_scalars=False)
    with pytest.raises(ConfigError, match="num_speculative_tokens: 5 is more than the depth of 4"):
        RecordedPaths(trace, num_speculative_tokens=5)


def test_a_trace_is_found_beside_the_scenario_then_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios" / "traces").mkdir(parents=True)
    random_trace(5, [4]).save(tmp_path / "scenarios" / "traces" / "a.npz")
    spec = TraceSpec(path="traces/a.npz")
    context = BuildContext(num_speculative_tokens=2, folder=tmp_path / "scenarios")
    assert spec.build(context).num_prompts == 1
    monkeypatch.chdir(tmp_path / "scenarios")
    assert spec.build(BuildContext(num_speculative_tokens=2, folder=tmp_path)).num_prompts == 1


def test_a_missing_or_broken_trace_is_one_line(tmp_path: Path) -> None:
    context = BuildContext(num_speculative_tokens=2, folder=tmp_path)
    with pytest.raises(ConfigError, match=r"no trace 'x\.npz'"):
        TraceSpec(path="x.npz").build(context)
    (tmp_path / "x.npz").write_text("nonsense")
    with pytest.raises(ConfigError, match="not an npz file"):
        TraceSpec(path="x.npz").build(context)


def test_the_kinds_of_distributions() -> None:
    assert DISTRIBUTIONS.kinds() == ("explicit", "live", "ngram", "rates", "trace")


def test_the_header_tells_how_the_target_was_sampled() -> None:
    with pytest.raises(ValidationError, match="temperature"):
        headers(temperature=-1)
