"""Rounds along paths: against a plain replay, against closed forms, whatever the batch and the horizon."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation import (
    Confidence,
    Fixed,
    Heuristic,
    LookaheadPolicy,
    PathDistributions,
    PathRounds,
    PlainRounds,
    RatesDistributions,
    RecordedPaths,
    Sequences,
    Signals,
    TokenVerifier,
    build_rounds,
)
from specsim.speculation.theory import expected_tokens, finite_length, mixture_expected_tokens
from specsim.streams import RandomStreams
from tests.oracles.serve import serve
from tests.oracles.slow_replay import SlowRound, replay
from tests.strategies import random_trace

SCALARS = RecordedPaths(random_trace(0, [40, 7, 1, 23, 2, 60]))
LOOKUP = RecordedPaths(random_trace(1, [40, 7, 1, 23, 2, 60], with_scalars=False))
RATES = RatesDistributions([0.9, 0.7, 0.6, 0.2])
POLICIES: dict[str, LookaheadPolicy] = {
    "fixed": Fixed(),
    "heuristic": Heuristic(initial_tokens=3, most_tokens=4),
    "confidence": Confidence(threshold=0.5),
}
SOURCES: dict[str, PathDistributions] = {"scalars": SCALARS, "lookup": LOOKUP, "rates": RATES}


def _rounds(
    distributions: PathDistributions,
    policy: LookaheadPolicy,
    caps: Ints,
    *,
    seed: int = 0,
    lookahead: int = 4,
    shorten: bool = False,
) -> PathRounds:
    return PathRounds(
        distributions,
        policy,
        streams=RandomStreams(seed),
        num_output_tokens=caps,
        num_speculative_tokens=lookahead,
        shorten_last_draft=shorten,
    )


def _ends(distributions: PathDistributions, caps: Ints) -> Ints:
    paths = [distributions.path(request) for request in range(caps.size)]
    return np.minimum(caps, [caps.max() if path is None else path.num_tokens for path in paths])


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("policy", POLICIES)
@given(
    seed=st.integers(0, 100),
    lookahead=st.integers(0, 4),
    shorten=st.booleans(),
    caps=st.lists(st.integers(1, 70), min_size=1, max_size=9),
    horizon=st.sampled_from([1, 2, 7, 64]),
    batch=st.integers(1, 5),
)
def test_rounds_are_those_of_a_plain_replay_whatever_the_batch_and_the_horizon(
    source: str,
    policy: str,
    seed: int,
    lookahead: int,
    shorten: bool,
    caps: list[int],
    horizon: int,
    batch: int,
) -> None:
    distributions = SOURCES[source]
    ends = _ends(distributions, np.array(caps))
    fast = _rounds(
        distributions, POLICIES[policy], np.array(caps), seed=seed, lookahead=lookahead, shorten=shorten
    )
    served = serve(fast, ends, batch=batch, horizon=horizon)
    for request, end in enumerate(ends.tolist()):
        assert served[request] == replay(
            distributions,
            POLICIES[policy],
            seed=seed,
            request=request,
            num_output_tokens=end,
            num_speculative_tokens=lookahead,
            shorten_last_draft=shorten,
        )


class _Remembering(Fixed):
    """The fixed policy with a state that it never reads: takes the route of policies that remember."""

    def start(self, num_sequences: int) -> Floats:
        return np.zeros((num_sequences, 1))


@given(seed=st.integers(0, 1000), lookahead=st.integers(0, 6), shorten=st.booleans())
def test_the_route_with_memory_and_the_route_without_agree(seed: int, lookahead: int, shorten: bool) -> None:
    caps = np.array([30, 2, 1, 17, 300, 5])
    rates = RatesDistributions([0.8**depth for depth in range(1, 7)])
    served = [
        serve(
            _rounds(rates, policy, caps, seed=seed, lookahead=lookahead, shorten=shorten),
            caps,
            batch=4,
            horizon=8,
        )
        for policy in (Fixed(), _Remembering())
    ]
    assert served[0] == served[1]


def test_requests_beyond_one_group_and_long_ones_keep_their_rounds() -> None:
    caps = np.full(150, 9)
    caps[70] = 2**18 + 5
    long = _rounds(RATES, Fixed(), caps)
    short = _rounds(RATES, Fixed(), np.minimum(caps, 9))
    order = np.array([149, 64, 71, 0, 3, 140])
    unfolded = serve(long, np.where(np.isin(np.arange(150), order), caps, 1), batch=2, horizon=4, order=order)
    expected = serve(short, np.minimum(caps, 9), batch=64, horizon=64)
    assert [unfolded[r] for r in order.tolist()] == [expected[r] for r in order.tolist()]


def test_a_peek_has_no_effect_and_can_be_taken_in_pieces() -> None:
    caps = np.array([200, 200, 200])
    whole, pieces = (_rounds(RATES, Fixed(), caps) for _ in range(2))
    request, position = np.array([0, 2]), np.array([1, 1])
    together = whole.peek(Sequences(request, position, caps[request] - 1), horizon=12)
    pieces.peek(Sequences(np.array([1]), np.array([1]), np.array([199])), horizon=50)
    emitted = []
    for count in (1, 3, 5, 3):
        block = pieces.peek(Sequences(request, position, caps[request] - position), horizon=20)
        pieces.commit(count)
        emitted.append(block.num_emitted[:count])
        position = position + block.num_emitted[:count].sum(axis=0)
    np.testing.assert_array_equal(np.concatenate(emitted), together.num_emitted)


@given(seed=st.integers(0, 1000), lookahead=st.integers(1, 4))
def test_another_lookahead_changes_no_requests_luck(seed: int, lookahead: int) -> None:
    """Where a draft is kept or not is the path's: a shorter round stops before the same first miss."""
    caps = np.array([60])
    rates = RatesDistributions([0.7**depth for depth in range(1, 6)])
    reach = {}
    for depth in (lookahead, 5):
        source = _rounds(rates, Fixed(), caps, seed=seed, lookahead=depth)
        (rounds,) = serve(source, caps, batch=1, horizon=64)
        reach[depth] = {
            round_.start + round_.num_accepted
            for round_ in rounds
            if round_.num_accepted < round_.num_drafted and not round_.is_last
        }
        kept = {
            place for round_ in rounds for place in range(round_.start, round_.start + round_.num_accepted)
        }
        reach[-depth] = kept
    assert not reach[lookahead] & reach[-5]
    assert not reach[5] & reach[-lookahead]


def test_no_lookahead_is_plain_decoding() -> None:
    caps = np.array([9, 1, 30])
    assert serve(_rounds(RATES, Fixed(), caps, lookahead=0), caps, batch=2, horizon=4) == serve(
        PlainRounds(), caps, batch=2, horizon=4
    )


def test_certain_acceptance_keeps_every_draft_up_to_the_cap() -> None:
    caps = np.array([13])
    rounds = serve(_rounds(RatesDistributions([1.0] * 4), Fixed(), caps), caps, batch=1, horizon=1)[0]
    assert [(round_.num_drafted, round_.num_accepted, round_.num_emitted) for round_ in rounds] == [
        (4, 4, 5),
        (4, 4, 5),
        (4, 2, 2),
    ]


def test_no_acceptance_emits_one_token_a_round() -> None:
    caps = np.array([6])
    rounds = serve(_rounds(RatesDistributions([0.0] * 4), Fixed(), caps), caps, batch=1, horizon=9)[0]
    assert rounds == [SlowRound(start, 4, 4, 0, 1, start == 5) for start in range(1, 6)]


def test_a_lookup_costs_one_step_even_where_it_misses() -> None:
    caps = np.array([40])
    rounds = serve(_rounds(LOOKUP, Fixed(), caps), caps, batch=1, horizon=9)[0]
    assert {round_.num_drafted for round_ in rounds} >= {0, 4}
    assert {round_.num_draft_steps for round_ in rounds} == {1}


class _SeesAhead(Fixed):
    """Drafts two at most, after a pass that looks at the distribution of the third."""

    passes_ahead: Literal[1] = 1  # type: ignore[assignment]

    def lengths(self, signals: Signals, state: Floats, limit: Ints) -> Ints:
        return np.minimum(2, limit)


def test_a_look_ahead_pass_is_paid_where_drafting_stops_before_its_limit() -> None:
    caps = np.array([30])
    for lookahead, steps in ((4, 3), (2, 2)):
        rounds = serve(_rounds(RATES, _SeesAhead(), caps, lookahead=lookahead), caps, batch=1, horizon=9)[0]
        assert {round_.num_draft_steps for round_ in rounds} == {steps}


def test_a_signal_policy_on_a_trace_without_tails_is_approximate() -> None:
    caps = np.array([9])
    assert _rounds(SCALARS, Confidence(threshold=0.5), caps).is_approximate
    assert not _rounds(SCALARS, Fixed(), caps).is_approximate
    assert not _rounds(SCALARS, POLICIES["heuristic"], caps).is_approximate


class _ReadsBatch(Fixed):
    reads: Literal["batch"] = "batch"  # type: ignore[assignment]


def test_a_policy_that_reads_the_batch_is_refused() -> None:
    with pytest.raises(ConfigError, match="reads the batch"):
        _rounds(RATES, _ReadsBatch(), np.array([9]))


class _NeedsMore(TokenVerifier):
    needs: Literal["conditional"] = "conditional"  # type: ignore[assignment]


def test_a_verifier_that_needs_more_than_a_path_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs p and q after any prefix"):
        build_rounds(
            RATES,
            Fixed(),
            _NeedsMore(),
            streams=RandomStreams(0),
            num_output_tokens=np.array([9]),
            num_speculative_tokens=4,
        )


def _totals(distributions: PathDistributions, caps: Ints, **options: int | bool) -> tuple[int, int, int]:
    rounds = serve(_rounds(distributions, Fixed(), caps, **options), caps, batch=4000, horizon=64)  # type: ignore[arg-type]
    flat = [round_ for request in rounds for round_ in request]
    return len(flat), sum(r.num_drafted for r in flat), sum(r.num_emitted for r in flat)


@pytest.mark.parametrize(("rate", "lookahead"), [(0.6, 2), (0.8, 5), (0.9, 10), (0.75, 7)])
def test_tokens_a_round_match_leviathan_eq1(rate: float, lookahead: int) -> None:
    rates = RatesDistributions([rate ** (depth + 1) for depth in range(lookahead)])
    num_rounds, _, emitted = _totals(rates, np.array([40_001]), lookahead=lookahead)
    # The variance of tokens a round is at most (K + 1)² / 4.
    spread = (lookahead + 1) / 2 / np.sqrt(num_rounds)
    assert abs(emitted / num_rounds - expected_tokens(rate, lookahead)) < 4 * spread


@pytest.mark.parametrize(("shorten", "speed_up"), [(True, 2.232), (False, 2.107)])
def test_ten_tokens_after_the_first(shorten: bool, speed_up: float) -> None:
    caps = np.full(4000, 11)
    rates = RatesDistributions([0.8 ** (depth + 1) for depth in range(4)])
    num_rounds, drafted, emitted = _totals(rates, caps, shorten=shorten)
    exact = finite_length(0.8, 4, 10, shorten_last_draft=shorten)
    assert exact.wall_time_improvement(0.1) == pytest.approx(speed_up, abs=5e-4)
    assert num_rounds / 4000 == pytest.approx(exact.expected_rounds, rel=0.02)
    assert emitted / (num_rounds + 0.1 * drafted) == pytest.approx(speed_up, rel=0.02)


def test_two_acceptance_rates_in_one_population_average_by_rounds() -> None:
    total = np.zeros(2)
    for rate, seed in ((0.5, 0), (0.9, 1)):
        rates = RatesDistributions([rate ** (depth + 1) for depth in range(5)])
        num_rounds, _, emitted = _totals(rates, np.array([30_001]), lookahead=5, seed=seed)
        total += num_rounds, emitted
    assert total[1] / total[0] == pytest.approx(mixture_expected_tokens([0.5, 0.9], [0.5, 0.5], 5), rel=0.02)
    assert total[1] / total[0] == pytest.approx(2.773, abs=0.05)


def test_rates_by_position_come_out_as_they_went_in() -> None:
    unconditional = [0.9, 0.5, 0.4, 0.1]
    caps = np.array([30_001])
    rounds = serve(_rounds(RatesDistributions(unconditional), Fixed(), caps), caps, batch=1, horizon=64)[0]
    accepted = np.array([round_.num_accepted for round_ in rounds])
    found = [(accepted > depth).mean() for depth in range(4)]
    np.testing.assert_allclose(found, unconditional, atol=4 * 0.5 / np.sqrt(len(rounds)))
