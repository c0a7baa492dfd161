"""Rounds by sampling: extremes, ends, the horizon law, and the tokens that come out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation import (
    BlockVerifier,
    ChainDraft,
    ConditionalDistributions,
    Confidence,
    Draft,
    DraftSource,
    ExplicitDistributions,
    Fixed,
    Heuristic,
    LookaheadPolicy,
    Prefixes,
    RecursiveVerifier,
    SampledRounds,
    Sequences,
    TokenVerifier,
    TreeDraft,
    TreeShape,
    Verifier,
    build_rounds,
)
from specsim.speculation.theory import expected_tokens
from specsim.speculation.uniforms import RoundUniforms
from specsim.streams import Purpose, RandomStreams
from tests.oracles.markov import MarkovPair, random_pair
from tests.oracles.serve import serve

P, Q = np.array([0.7, 0.3]), np.array([0.3, 0.7])
POLICIES: dict[str, LookaheadPolicy] = {
    "fixed": Fixed(),
    "heuristic": Heuristic(initial_tokens=2, most_tokens=4),
    "confidence": Confidence(threshold=0.6),
}


def _rounds(
    pair: ConditionalDistributions,
    caps: Ints,
    *,
    policy: LookaheadPolicy | None = None,
    seed: int = 0,
    lookahead: int = 4,
    shorten: bool = False,
) -> SampledRounds:
    rounds = build_rounds(
        pair,
        policy or Fixed(),
        TokenVerifier(),
        streams=RandomStreams(seed),
        num_output_tokens=caps,
        num_speculative_tokens=lookahead,
        shorten_last_draft=shorten,
    )
    assert isinstance(rounds, SampledRounds)
    return rounds


def test_equal_distributions_keep_every_draft() -> None:
    caps = np.full(20, 26)
    rounds = serve(_rounds(ExplicitDistributions(P, P), caps), caps, batch=8, horizon=3)
    assert {(r.num_accepted, r.num_emitted) for request in rounds for r in request} == {(4, 5)}


def test_disjoint_supports_give_exactly_one_token_a_round() -> None:
    pair = ExplicitDistributions(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    caps = np.full(20, 26)
    source = _rounds(pair, caps)
    rounds = serve(source, caps, batch=8, horizon=3)
    assert {(r.num_accepted, r.num_emitted) for request in rounds for r in request} == {(0, 1)}
    assert source.tokens(3).tolist() == [0] * 26


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=15)
@given(
    seed=st.integers(0, 50),
    lookahead=st.integers(0, 4),
    shorten=st.booleans(),
    horizon=st.sampled_from([2, 5, 64]),
    batch=st.integers(1, 6),
    eos=st.sampled_from([None, 0]),
)
def test_a_requests_rounds_depend_on_neither_its_batch_nor_the_horizon(
    policy: str, seed: int, lookahead: int, shorten: bool, horizon: int, batch: int, eos: int | None
) -> None:
    base = random_pair(seed, size=3)
    pair = MarkovPair(base._target, base._draft, eos_token_id=eos)
    caps = np.array([30, 2, 1, 17, 9, 40])
    served, texts = [], []
    for size, ahead, order in ((1, 1, None), (batch, horizon, np.array([5, 0, 3, 1, 4, 2]))):
        source = _rounds(pair, caps, policy=POLICIES[policy], seed=seed, lookahead=lookahead, shorten=shorten)
        served.append(serve(source, source.num_output_tokens, batch=size, horizon=ahead, order=order))
        texts.append([source.tokens(request).tolist() for request in range(caps.size)])
    assert served[0] == served[1]
    assert texts[0] == texts[1]
    for request, text in enumerate(texts[0]):
        assert len(text) == 1 + sum(round_.num_emitted for round_ in served[0][request])
        assert len(text) <= caps[request]
        assert eos is None or eos not in text[:-1]
        assert len(text) == caps[request] or text[-1] == eos


class _ReadsAToken(ExplicitDistributions):
    """The same p and q after every token, and says that they depend on it: no windows."""

    num_context_tokens = 1


SOURCES: dict[str, tuple[Callable[[ConditionalDistributions], DraftSource], Verifier]] = {
    "chain": (lambda pair: ChainDraft(pair, num_tokens=3), BlockVerifier()),
    "greedy": (lambda pair: ChainDraft(pair, num_tokens=3, is_greedy=True), TokenVerifier()),
    "tree": (
        lambda pair: TreeDraft(pair, TreeShape.of_branching([2, 2]), siblings="distinct"),
        RecursiveVerifier(),
    ),
    "none": (lambda pair: ChainDraft(pair, num_tokens=0), TokenVerifier()),
}


@pytest.mark.parametrize("kind", SOURCES)
@settings(max_examples=6)
@given(
    seed=st.integers(0, 50),
    shorten=st.booleans(),
    horizon=st.sampled_from([2, 3, 64]),
    batch=st.integers(1, 6),
    eos=st.sampled_from([None, 0]),
)
def test_rounds_looked_up_in_a_window_are_those_taken_one_after_the_other(
    kind: str, seed: int, shorten: bool, horizon: int, batch: int, eos: int | None
) -> None:
    laws = np.random.default_rng(seed).dirichlet(np.ones(3), 2)
    make, rule = SOURCES[kind]
    caps = np.array([30, 2, 1, 17, 300, 40])
    served, texts = [], []
    for law in (ExplicitDistributions, _ReadsAToken):
        pair = law(laws[0], laws[1], eos_token_id=eos)
        draft_source = make(pair)
        source = SampledRounds(
            pair,
            draft_source,
            rule,
            Confidence(threshold=0.4) if kind == "chain" else Fixed(),
            uniforms=RoundUniforms.keyed(RandomStreams(seed), num_nodes=draft_source.num_nodes),
            num_output_tokens=caps,
            shorten_last_draft=shorten,
        )
        served.append(serve(source, source.num_output_tokens, batch=batch, horizon=horizon))
        texts.append(source.all_tokens().tolist())
    assert served[0] == served[1]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("law", "is_window"), [(ExplicitDistributions, True), (_ReadsAToken, False)])
def test_a_window_drafts_for_all_its_rounds_at_once(
    law: type[ExplicitDistributions], is_window: bool
) -> None:
    class Counted(ChainDraft):
        num_proposals = 0

        def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
            self.num_proposals += 1
            return super().propose(prefix, uniforms)

    pair, caps = law(P, Q), np.array([200])
    draft_source = Counted(pair, num_tokens=4)
    source = SampledRounds(
        pair,
        draft_source,
        TokenVerifier(),
        Fixed(),
        uniforms=RoundUniforms.keyed(RandomStreams(0), num_nodes=4),
        num_output_tokens=caps,
    )
    start = Sequences(request=np.array([0]), position=np.array([1]), remaining=np.array([199]))
    num_rounds = source.peek(start, horizon=50).num_rounds
    assert num_rounds == 50
    assert draft_source.num_proposals == (1 if is_window else num_rounds)


def test_an_end_token_among_the_drafts_ends_the_sequence_there() -> None:
    pair = ExplicitDistributions(np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    ending = MarkovPair(
        np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
        np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
        eos_token_id=2,
    )
    caps = np.array([20])
    source = _rounds(ending, caps)
    (rounds,) = serve(source, caps, batch=1, horizon=9)
    assert [(r.num_drafted, r.num_accepted, r.num_emitted, r.is_last) for r in rounds] == [(4, 2, 2, True)]
    assert source.tokens(0).tolist() == [0, 1, 2]
    assert serve(_rounds(pair, caps), caps, batch=1, horizon=9)[0][-1].is_last


def test_a_request_whose_first_token_ends_it_has_no_rounds() -> None:
    certain = np.array([0.0, 1.0])
    source = _rounds(ExplicitDistributions(certain, certain, eos_token_id=1), np.array([20, 5]))
    assert source.num_output_tokens.tolist() == [1, 1]
    assert source.tokens(0).tolist() == [1]


def test_tokens_past_the_cap_count_as_drafted_not_as_accepted() -> None:
    caps = np.array([8])
    (rounds,) = serve(_rounds(ExplicitDistributions(P, P), caps), caps, batch=1, horizon=9)
    assert [(r.num_drafted, r.num_accepted, r.num_emitted) for r in rounds] == [(4, 4, 5), (4, 2, 2)]
    (short,) = serve(_rounds(ExplicitDistributions(P, P), caps, shorten=True), caps, batch=1, horizon=9)
    assert [(r.num_drafted, r.num_accepted, r.num_emitted) for r in short] == [(4, 4, 5), (1, 1, 2)]


def test_tokens_a_round_match_leviathan_eq1() -> None:
    caps = np.full(64, 201)
    rounds = serve(_rounds(ExplicitDistributions(P, Q), caps, lookahead=3), caps, batch=64, horizon=64)
    whole = [r.num_emitted for request in rounds for r in request if not r.is_last]
    assert np.mean(whole) == pytest.approx(expected_tokens(0.6, 3), abs=4 * 1.2 / np.sqrt(len(whole)))


def test_greedy_target_and_greedy_draft_agree_or_not_for_good() -> None:
    pair = ExplicitDistributions(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    caps = np.array([11])
    source = _rounds(pair, caps)
    serve(source, caps, batch=1, horizon=9)
    assert source.tokens(0).tolist() == [1] * 11


def test_a_policy_that_reads_the_batch_is_refused() -> None:
    policy = Fixed()
    policy.reads = "batch"  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="reads the batch"):
        _rounds(ExplicitDistributions(P, Q), np.array([5]), policy=policy)


def test_the_draft_lists_all_chains_with_probabilities_that_sum_to_one() -> None:
    pair = random_pair(3, size=3)
    prefix = Prefixes(np.array([0]), np.array([1]), np.array([[2]]))
    chains = list(ChainDraft(pair, num_tokens=3).enumerate(prefix))
    assert len(chains) == 27
    assert sum(chance for chance, _ in chains) == pytest.approx(1)


def test_proposals_follow_the_enumerated_law() -> None:
    pair = random_pair(3, size=2)
    ones = np.ones(20_000, dtype=np.int64)
    prefix = Prefixes(ones, ones, ones[:, np.newaxis])
    uniforms = RandomStreams(5).generator(Purpose.DRAFT).random((20_000, 2))
    drawn = ChainDraft(pair, num_tokens=2).propose(prefix, uniforms)
    one = Prefixes(np.array([0]), np.array([1]), np.array([[1]]))
    for chance, draft in ChainDraft(pair, num_tokens=2).enumerate(one):
        share = (drawn.token == draft.token).all(axis=1).mean()
        assert share == pytest.approx(chance, abs=4 * 0.5 / np.sqrt(20_000))
