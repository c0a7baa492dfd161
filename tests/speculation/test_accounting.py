"""What is counted: ends inside a block, caps inside a round, the bonus once, and nothing between requests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specsim.arrays import Ints
from specsim.speculation import (
    BlockVerifier,
    CandidatesVerifier,
    ChainDraft,
    ConditionalDistributions,
    DraftSource,
    ExplicitDistributions,
    Fixed,
    KSeqVerifier,
    RecursiveVerifier,
    SampledRounds,
    TokenVerifier,
    TreeDraft,
    TreeShape,
    Verifier,
    build_rounds,
)
from specsim.streams import RandomStreams
from tests.oracles.markov import MarkovPair, random_pair
from tests.oracles.serve import serve

Build = Callable[[ConditionalDistributions], DraftSource]


def _tree(pair: ConditionalDistributions) -> DraftSource:
    return TreeDraft(pair, TreeShape.of_branching([2, 2]), siblings="distinct")


def _iid(pair: ConditionalDistributions) -> DraftSource:
    return TreeDraft(pair, TreeShape.of_branching([2, 1]), siblings="independent")


def _chain(pair: ConditionalDistributions) -> DraftSource:
    return ChainDraft(pair, num_tokens=3)


RULES: dict[str, tuple[Verifier, Build]] = {
    "token": (TokenVerifier(), _chain),
    "block": (BlockVerifier(), _chain),
    "recursive tree": (RecursiveVerifier(), _tree),
    "candidates tree": (CandidatesVerifier(), _tree),
    "kseq tree": (KSeqVerifier(), _iid),
}


def _source(rule: str, pair: ConditionalDistributions, caps: Ints, *, seed: int = 0) -> SampledRounds:
    verifier, build = RULES[rule]
    draft = build(pair)
    rounds = build_rounds(
        pair,
        Fixed(),
        verifier,
        streams=RandomStreams(seed),
        num_output_tokens=caps,
        num_speculative_tokens=draft.num_nodes,
        draft_source=draft,
    )
    assert isinstance(rounds, SampledRounds)
    return rounds


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 99),
    batch=st.integers(1, 5),
    horizon=st.sampled_from([1, 3, 50]),
    eos=st.sampled_from([None, 2]),
)
def test_rounds_and_texts_depend_on_neither_batch_nor_horizon_nor_neighbours(
    rule: str, seed: int, batch: int, horizon: int, eos: int | None
) -> None:
    base = random_pair(seed, size=3)
    pair = MarkovPair(base._target, base._draft, eos_token_id=eos)
    caps = np.array([14, 1, 2, 9, 20])
    alone, together = _source(rule, pair, caps, seed=seed), _source(rule, pair, caps, seed=seed)
    first = serve(alone, alone.num_output_tokens, batch=1, horizon=1)
    second = serve(
        together, together.num_output_tokens, batch=batch, horizon=horizon, order=np.array([3, 0, 4, 2, 1])
    )
    assert first == second
    for request in range(caps.size):
        text = alone.tokens(request).tolist()
        assert text == together.tokens(request).tolist()
        # Every token is counted once: the first from prefill, the others from rounds, the bonus among them.
        assert len(text) == 1 + sum(one.num_emitted for one in first[request])
        assert eos is None or eos not in text[:-1]
        assert len(text) <= caps[request]
        assert len(text) == caps[request] or text[-1] == eos
        for one in first[request]:
            assert one.num_accepted <= one.num_emitted <= one.num_accepted + 1
            assert one.is_last or one.num_emitted == one.num_accepted + 1


@pytest.mark.parametrize("rule", RULES)
def test_an_end_token_inside_a_block_ends_the_text_there(rule: str) -> None:
    """Token 1 follows 0 and ends the text: whatever was drafted after it is not emitted."""
    certain = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    pair = MarkovPair(certain, certain, eos_token_id=2)
    source = _source(rule, pair, np.array([20]))
    (rounds,) = serve(source, np.array([20]), batch=1, horizon=5)
    assert source.tokens(0).tolist() == [0, 1, 2]
    assert [(one.num_accepted, one.num_emitted, one.is_last) for one in rounds] == [(2, 2, True)]


@pytest.mark.parametrize("rule", ["token", "block"])
def test_a_cap_inside_a_round_cuts_it_and_counts_all_drafts(rule: str) -> None:
    p = np.array([0.7, 0.3])
    (rounds,) = serve(
        _source(rule, ExplicitDistributions(p, p), np.array([7])), np.array([7]), batch=1, horizon=9
    )
    assert [(one.num_drafted, one.num_accepted, one.num_emitted) for one in rounds] == [(3, 3, 4), (3, 2, 2)]


def test_acceptance_length_is_one_and_the_sum_of_unconditional_rates() -> None:
    caps = np.full(200, 41)
    rounds = serve(_source("block", random_pair(3, size=3), caps), caps, batch=50, horizon=4)
    whole = [one for request in rounds for one in request if not one.is_last]
    rates = [np.mean([one.num_accepted > depth for one in whole]) for depth in range(3)]
    assert np.mean([one.num_emitted for one in whole]) == pytest.approx(1 + sum(rates))
    assert rates == sorted(rates, reverse=True)
