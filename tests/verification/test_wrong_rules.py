"""Rules that are wrong in ways that were really shipped: prove rejects each, with the law that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from specsim.arrays import Floats, Ints
from specsim.speculation import (
    BlockVerifier,
    ChainDraft,
    Draft,
    ExplicitDistributions,
    Prefixes,
    RecursiveVerifier,
    SampledRounds,
    TokenVerifier,
)
from specsim.speculation.markov import random_markov_pair
from specsim.speculation.prove import Subject, prove, round_law, two_rounds_p_value
from specsim.speculation.prove.proof import LEAST_P_VALUE
from specsim.speculation.sampling import draw, keep_probabilities, kept_given_text
from specsim.speculation.uniforms import RoundUniforms, Uniforms
from specsim.speculation.verify.block import _prefix_ratios, _vouching
from specsim.speculation.verify.chain import at_tokens, is_drafted
from specsim.speculation.walk import Walk, walk
from specsim.streams import Purpose, RandomStreams
from tests.policies import RestsAfterThree
from tests.verification.subjects import chain, subject, tree

_V3 = random_markov_pair(RandomStreams(28).generator(Purpose.PROOF), vocabulary_size=3)


def _first_law(one: Subject) -> Floats:
    law = round_law(one)
    emitted: Floats = (law.chance @ law.emitted).reshape(one.distributions.vocabulary_size, -1).sum(axis=1)
    return emitted


class _Lies(ChainDraft):
    """Draws from one distribution and states another."""

    def __init__(
        self,
        pair: ExplicitDistributions,
        *,
        drawn: Callable[[Floats], Floats],
        says: Callable[[Floats], Floats],
    ) -> None:
        super().__init__(pair, num_tokens=1)
        self._pair = pair
        self._drawn = drawn
        self._says = says

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        q = self._pair.draft(prefix)
        token = draw(self._drawn(q), uniforms[:, 0])[:, np.newaxis]
        return Draft(token, np.full_like(token, -1), self._says(q)[:, np.newaxis])


def _top(count: int) -> Callable[[Floats], Floats]:
    def kept(law: Floats) -> Floats:
        least = np.sort(law, axis=1)[:, -count, np.newaxis]
        # Ties at the edge go to the lowest tokens.
        order = np.argsort(-law, axis=1, kind="stable")[:, :count]
        only = np.zeros_like(law)
        np.put_along_axis(only, order, np.take_along_axis(law, order, axis=1), axis=1)
        assert (only[only > 0] >= least.min()).all()
        return only / only.sum(axis=1, keepdims=True)

    return kept


def _as_is(law: Floats) -> Floats:
    return law


@pytest.mark.parametrize(
    ("p", "q", "drawn", "says", "law"),
    [
        ([0.6, 0.4], [0.8, 0.2], _top(1), _as_is, [0.75, 0.25]),
        ([0.4, 0.3, 0.2, 0.1], [0.5, 0.2, 0.2, 0.1], _top(2), _as_is, None),
        ([0.4, 0.6, 0.0], [0.6, 0.2, 0.2], _top(2), _as_is, [0.5, 0.5, 0.0]),
    ],
    ids=["greedy draft, soft q", "top 2 draft, raw q", "top 2 draft, raw q, zero p"],
)
def test_a_draft_that_is_not_drawn_from_its_q_is_found_out(
    p: list[float],
    q: list[float],
    drawn: Callable[[Floats], Floats],
    says: Callable[[Floats], Floats],
    law: list[float] | None,
) -> None:
    pair = ExplicitDistributions(np.array(p), np.array(q))
    wrong = Subject(pair, _Lies(pair, drawn=drawn, says=says), TokenVerifier())
    assert not prove([wrong], num_requests=2000).passed
    if law is not None:
        np.testing.assert_allclose(_first_law(wrong), law, atol=1e-12)
    right = Subject(pair, _Lies(pair, drawn=drawn, says=drawn), TokenVerifier())
    assert prove([right], num_requests=2000).passed


def test_raw_q_against_a_top_2_draw_gives_the_law_that_was_reported() -> None:
    """The target cut to its two most probable tokens, the draft cut so as well, or only drawn so."""
    cut = _top(2)(np.array([[0.4, 0.3, 0.2, 0.1]]))[0]
    pair = ExplicitDistributions(cut, np.array([0.5, 0.2, 0.2, 0.1]))
    wrong = Subject(pair, _Lies(pair, drawn=_top(2), says=_as_is), TokenVerifier())
    np.testing.assert_allclose(_first_law(wrong)[:2], [5 / 7, 2 / 7], atol=1e-12)
    right = Subject(pair, _Lies(pair, drawn=_top(2), says=_top(2)), TokenVerifier())
    np.testing.assert_allclose(_first_law(right)[:2], [4 / 7, 3 / 7], atol=1e-12)
    assert not prove([wrong], num_requests=2000).passed


class _NaiveIndependent(RecursiveVerifier):
    """Tests every sibling against the whole p, and corrects once."""

    def descend(self, draft: Draft, target: Floats) -> Floats:
        rows = np.arange(len(draft.token))[:, np.newaxis]
        p = target[rows, draft.parent + 1, draft.token]
        accepts = keep_probabilities(p, at_tokens(draft, draft.probabilities))
        before = np.cumprod(np.concatenate([np.ones((len(p), 1)), 1 - accepts[:, :-1]], axis=1), axis=1)
        return before * accepts

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        one = Draft(draft.token[:, :1], draft.parent[:, :1], draft.probabilities[:, :1])
        return np.where(
            last[:, np.newaxis] < 0,
            super().next_token(one, target, last),
            target[np.arange(last.size), last + 1],
        )


def test_naive_independent_tests_of_siblings_are_found_out() -> None:
    wrong = subject(_NaiveIndependent(), tree("independent", 2))
    np.testing.assert_allclose(_first_law(wrong), [0.35, 0.39, 0.26], atol=1e-12)
    assert not prove([wrong], num_requests=2000).passed


class _BlockWithTokenResidual(BlockVerifier):
    """Block acceptance, then the correction of token verification."""

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        return TokenVerifier().next_token(draft, target, last)


class _BlockReplayedAsToken(BlockVerifier):
    """Block verification that is replayed along a text as token verification is."""

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        return kept_given_text(target, draft)


def test_a_replay_that_is_not_the_rules_is_found_out() -> None:
    wrong = subject(_BlockReplayedAsToken(), chain(3), _V3)
    law = round_law(wrong)
    assert law.total_variation < 1e-12
    assert law.replay_total_variation is not None
    assert law.replay_total_variation > 1e-3
    assert not prove([wrong], num_requests=2000).passed


class _BlockStopsAtFirstFailure(BlockVerifier):
    """Stops at the first draft that does not vouch, instead of keeping up to the last that does."""

    def descend(self, draft: Draft, target: Floats) -> Floats:
        return np.where(is_drafted(draft), _vouching(draft, target, _prefix_ratios(draft, target)), 0.0)


@pytest.mark.parametrize(
    "rule", [_BlockWithTokenResidual(), _BlockStopsAtFirstFailure()], ids=["residual", "first failure"]
)
def test_block_verification_with_a_part_of_token_verification_is_found_out(rule: BlockVerifier) -> None:
    wrong = subject(rule, chain(3), _V3)
    assert round_law(wrong).total_variation > 0.01
    assert not prove([wrong], num_requests=2000).passed


class _DropsUnlikely(ChainDraft):
    """Throws a drawn token away for its own probability."""

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        draft = super().propose(prefix, uniforms)
        token = np.where(at_tokens(draft, draft.probabilities) < 0.25, -1, draft.token)
        return Draft(token, draft.parent, draft.probabilities)


def test_dropping_a_drawn_token_for_its_own_probability_is_found_out() -> None:
    p = np.array([0.5, 0.3, 0.2])
    pair = ExplicitDistributions(p, p)
    wrong = Subject(pair, _DropsUnlikely(pair, num_tokens=1), TokenVerifier())
    np.testing.assert_allclose(_first_law(wrong), [0.6, 0.36, 0.04], atol=1e-12)
    assert not prove([wrong], num_requests=2000).passed


@dataclass(frozen=True)
class _OneUniformTwice(Subject):
    """Draws the token after with the uniform that decided whether the draft is kept."""

    def rounds(self, uniforms: RoundUniforms, num_output_tokens: Ints) -> SampledRounds:
        return super().rounds(replace(uniforms, next_token=uniforms.stop), num_output_tokens)


def test_one_uniform_used_twice_is_found_out() -> None:
    pair = ExplicitDistributions(np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.1, 0.2, 0.6]))
    wrong = subject(TokenVerifier(), chain(1), pair, kind=_OneUniformTwice)
    np.testing.assert_allclose(_first_law(wrong), [0.36, 0.34, 0.2, 0.1], atol=1e-12)
    assert not prove([wrong], num_requests=2000).passed


class _KeyedByPosition:
    """The draft of an output position has one uniform, whichever round drafts it."""

    def __init__(self, table: Uniforms, num_nodes: int) -> None:
        self._table = table
        self._num_nodes = num_nodes

    def at(self, request: Ints, position: Ints) -> Floats:
        place = position[:, np.newaxis] + np.arange(self._num_nodes)
        flat = self._table.at(np.repeat(request, self._num_nodes), place.ravel())[:, 0]
        return flat.reshape(place.shape)


@dataclass(frozen=True)
class _DraftsKeyedByPosition(Subject):
    def rounds(self, uniforms: RoundUniforms, num_output_tokens: Ints) -> SampledRounds:
        keyed = _KeyedByPosition(uniforms.draft, self.draft_source.num_nodes)
        return super().rounds(replace(uniforms, draft=keyed), num_output_tokens)


class _StopsAfterUnlikely(ChainDraft):
    """Ends a chain after an unlikely token, which is kept: causal, and so allowed."""

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        draft = super().propose(prefix, uniforms)
        has_stopped = np.logical_or.accumulate(at_tokens(draft, draft.probabilities) < 0.25, axis=1)
        draft.token[:, 1:][has_stopped[:, :-1]] = -1
        return draft


def test_draft_draws_keyed_by_output_position_and_so_reused_are_found_out() -> None:
    pair = ExplicitDistributions(np.array([0.4, 0.4, 0.2]), np.array([0.2, 0.2, 0.6]))
    source = _StopsAfterUnlikely(pair, num_tokens=4)
    right = Subject(pair, source, TokenVerifier(), RestsAfterThree())
    wrong = _DraftsKeyedByPosition(pair, source, TokenVerifier(), RestsAfterThree())
    assert two_rounds_p_value(right, num_requests=20_000, seed=0) > LEAST_P_VALUE
    proof = prove([wrong], seed=0)
    assert proof.p_value < LEAST_P_VALUE
    assert not proof.passed


class _TextbookBlock(SampledRounds):
    """Looks at a uniform of every drafted position, also of those that the next round decides again."""

    def _walk(self, draft: Draft, keep: Floats, stop: Floats) -> Walk:
        # What the rule says for a walk, turned back into h: 1 - prod over j >= i of (1 - h_j) = prod of keep.
        at_least = np.cumprod(keep, axis=1)
        above = np.concatenate([at_least[:, 1:], np.zeros((len(keep), 1))], axis=1)
        vouches = 1 - (1 - at_least) / np.where(above < 1, 1 - above, 1.0)
        vouches = np.where(above < 1, vouches, at_least)
        is_kept = np.logical_or.accumulate((stop < vouches)[:, ::-1], axis=1)[:, ::-1]
        return walk(draft, is_kept.astype(np.float64), np.zeros_like(stop))


@dataclass(frozen=True)
class _BlockKeyedByPosition(Subject):
    def rounds(self, uniforms: RoundUniforms, num_output_tokens: Ints) -> SampledRounds:
        return _TextbookBlock(
            self.distributions,
            self.draft_source,
            self.verifier,
            self.policy,
            uniforms=uniforms,
            num_output_tokens=num_output_tokens,
        )


def test_blocks_uniforms_keyed_by_position_and_so_reused_are_found_out() -> None:
    """One round of it is exact; two are not, since the second looks at what the first has decided by."""
    pair = ExplicitDistributions(np.array([0.6, 0.4]), np.array([0.1, 0.9]))
    wrong = subject(BlockVerifier(), chain(2), pair, kind=_BlockKeyedByPosition)
    proof = prove([wrong])
    assert proof.laws[0].total_variation < 1e-12
    assert proof.p_value < LEAST_P_VALUE
    assert not proof.passed
    assert prove([subject(BlockVerifier(), chain(2), pair)]).passed


def test_enumerated_drafts_of_a_lying_source_are_not_what_it_says() -> None:
    pair = ExplicitDistributions(np.array([0.6, 0.4]), np.array([0.8, 0.2]))
    lies = _Lies(pair, drawn=_top(1), says=_as_is)
    prefix = Prefixes(np.array([0]), np.array([1]), np.empty((1, 0), dtype=np.int64))
    honest: Iterator[tuple[float, Draft]] = ChainDraft(pair, num_tokens=1).enumerate(prefix)
    assert [chance for chance, _ in honest] == [0.8, 0.2]
    assert lies.propose(prefix, np.array([[0.9]])).token.tolist() == [[0]]
