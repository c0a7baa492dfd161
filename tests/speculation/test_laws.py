"""Laws: live sampling emits the target's, replay has that of live rounds, luck is never reused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from specsim.arrays import Floats, Ints
from specsim.speculation import (
    ChainDraft,
    ConditionalDistributions,
    Confidence,
    Draft,
    DraftSource,
    ExplicitDistributions,
    Fixed,
    Heuristic,
    LookaheadPolicy,
    PathRounds,
    Prefixes,
    RecordedPaths,
    RoundSource,
    SampledRounds,
    TokenVerifier,
)
from specsim.speculation.uniforms import RoundUniforms, Uniforms
from specsim.streams import RandomStreams
from tests.oracles.chi_square import goodness_of_fit, homogeneity
from tests.oracles.markov import MarkovPair, random_pair
from tests.oracles.serve import serve
from tests.policies import RestsAfterThree

SIZES = [4000, pytest.param(40_000, marks=pytest.mark.verification)]
LEAST_P = 1e-3
"""Seeds are fixed, so a p-value below this is a fault and not bad luck."""


def _live(
    pair: ConditionalDistributions,
    caps: Ints,
    *,
    lookahead: int,
    policy: LookaheadPolicy | None = None,
    draft: DraftSource | None = None,
    seed: int = 1,
) -> SampledRounds:
    return SampledRounds(
        pair,
        draft or ChainDraft(pair, num_tokens=lookahead),
        TokenVerifier(),
        policy or Fixed(),
        uniforms=RoundUniforms.keyed(RandomStreams(seed), num_nodes=lookahead),
        num_output_tokens=caps,
    )


def _law_of_rounds(source: RoundSource, caps: Ints, lookahead: int) -> Ints:
    """Count (accepted in the first round, accepted in the second), flat."""
    cells = np.zeros((lookahead + 1, lookahead + 1), dtype=np.int64)
    for rounds in serve(source, caps, batch=caps.size, horizon=1):
        cells[rounds[0].num_accepted, rounds[1].num_accepted] += 1
    return cells.ravel()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lookahead", [1, 3, 6])
def test_replay_and_live_sampling_have_one_law_of_rounds(lookahead: int, size: int) -> None:
    pair = random_pair(7, size=4)
    caps = np.full(size, 2 * lookahead + 4)
    trace = pair.record(np.random.default_rng(2), num_paths=size, num_tokens=int(caps[0]))
    replay = PathRounds(
        RecordedPaths(trace),
        Fixed(),
        streams=RandomStreams(3),
        num_output_tokens=caps,
        num_speculative_tokens=lookahead,
    )
    live = _live(pair, caps, lookahead=lookahead)
    laws = [_law_of_rounds(source, caps, lookahead) for source in (live, replay)]
    assert homogeneity(*laws) > LEAST_P


def test_another_draft_has_another_law_of_rounds() -> None:
    """The negative control of the test above: it sees a draft that is worse."""
    caps = np.full(4000, 10)
    pair = random_pair(7, size=4)
    worse = MarkovPair(pair._target, 0.3 * pair._draft + 0.7 * pair._draft[:, ::-1])
    laws = [_law_of_rounds(_live(one, caps, lookahead=3), caps, 3) for one in (pair, worse)]
    assert homogeneity(*laws) < 1e-6


def _strings(source: SampledRounds, caps: Ints, *, vocabulary: int, count: int) -> Ints:
    """Count the strings of ``count`` tokens after the first of each request, as numbers in base V."""
    serve(source, caps, batch=caps.size, horizon=1)
    text = np.array([source.tokens(request)[1 : 1 + count] for request in range(caps.size)])
    number = (text * vocabulary ** np.arange(count)).sum(axis=1)
    return np.bincount(number, minlength=vocabulary**count)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "policy",
    [Fixed(), Heuristic(initial_tokens=2, most_tokens=3), Confidence(threshold=0.5)],
    ids=lambda policy: type(policy).__name__,
)
def test_every_policy_emits_the_targets_law_over_several_rounds(policy: LookaheadPolicy, size: int) -> None:
    pair = random_pair(11, size=3)
    caps = np.full(size, 5)
    source = _live(pair, caps, lookahead=3, policy=policy)
    serve(source, caps, batch=size, horizon=1)
    text = np.array([source.tokens(request) for request in range(size)])
    law = np.zeros([3] * 4)
    for tokens in np.ndindex(*law.shape):
        law[tokens] = np.prod([pair._target[tokens[i], tokens[i + 1]] for i in range(3)])
    law *= pair._target[-1][:, np.newaxis, np.newaxis, np.newaxis]
    seen = np.zeros(law.shape, dtype=np.int64)
    np.add.at(seen, tuple(text[:, :4].T), 1)
    assert goodness_of_fit(seen.ravel(), law.ravel()) > LEAST_P


class _StopsAfterUnlikely:
    """A chain that ends after a token of small q; the token itself is kept."""

    def __init__(self, chain: ChainDraft, *, threshold: float) -> None:
        self._chain = chain
        self._threshold = threshold
        self.siblings, self.depth, self.num_nodes = chain.siblings, chain.depth, chain.num_nodes
        self.num_context_tokens, self.pass_positions = chain.num_context_tokens, chain.pass_positions

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        draft = self._chain.propose(prefix, uniforms)
        q = np.take_along_axis(draft.probabilities, draft.token[:, :, np.newaxis], axis=2)[:, :, 0]
        has_stopped = np.logical_or.accumulate(q < self._threshold, axis=1)
        token = draft.token.copy()
        token[:, 1:][has_stopped[:, :-1]] = -1
        return Draft(token, draft.parent, draft.probabilities)

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        return self._chain.enumerate(prefix)


class _KeyedByPosition:
    """Wrong on purpose: the draft of a position has one uniform, whichever round drafts it."""

    def __init__(self, table: Uniforms, *, num_nodes: int) -> None:
        self._table = table
        self._num_nodes = num_nodes

    def at(self, request: Ints, position: Ints) -> Floats:
        place = position[:, np.newaxis] + np.arange(self._num_nodes)
        flat = self._table.at(np.repeat(request, self._num_nodes), place.ravel())
        return flat[:, 0].reshape(place.shape)


def _p_value_of_looking(size: int, *, is_keyed_by_position: bool) -> float:
    """Whether four tokens have the law of p, drafted by a rule that looks at what it later throws away."""
    p, q = np.array([0.4, 0.4, 0.2]), np.array([0.2, 0.2, 0.6])
    pair = ExplicitDistributions(p, q)
    caps = np.full(size, 5)
    draft = _StopsAfterUnlikely(ChainDraft(pair, num_tokens=4), threshold=0.25)
    source = _live(pair, caps, lookahead=4, policy=RestsAfterThree(), draft=draft)
    if is_keyed_by_position:
        luck = source._uniforms
        source._uniforms = replace(luck, draft=_KeyedByPosition(luck.draft, num_nodes=4))
    seen = _strings(source, caps, vocabulary=3, count=4)
    law = np.multiply.outer(np.multiply.outer(p, p), np.multiply.outer(p, p)).ravel()
    return goodness_of_fit(seen, law)


@pytest.mark.parametrize("size", SIZES)
def test_a_uniform_that_a_decision_has_looked_at_is_never_used_again(size: int) -> None:
    assert _p_value_of_looking(size, is_keyed_by_position=False) > LEAST_P


def test_draft_draws_keyed_by_output_position_fail() -> None:
    assert _p_value_of_looking(8000, is_keyed_by_position=True) < 1e-6


def test_a_token_dropped_for_its_own_probability_changes_the_law() -> None:
    """The rule that ``confidence`` avoids: p = q = (.5, .3, .2), drafts with q < .25 dropped."""

    class Drops(_StopsAfterUnlikely):
        def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
            draft = self._chain.propose(prefix, uniforms)
            token = np.where(draft.token == 2, -1, draft.token)
            return Draft(token, draft.parent, draft.probabilities)

    p = np.array([0.5, 0.3, 0.2])
    pair = ExplicitDistributions(p, p)
    caps = np.full(4000, 3)
    for draft, is_exact in (
        (_StopsAfterUnlikely(ChainDraft(pair, num_tokens=1), threshold=0.25), True),
        (Drops(ChainDraft(pair, num_tokens=1), threshold=0.25), False),
    ):
        seen = _strings(_live(pair, caps, lookahead=1, draft=draft), caps, vocabulary=3, count=1)
        assert (goodness_of_fit(seen, p) > LEAST_P) == is_exact
        if not is_exact:
            np.testing.assert_allclose(seen / seen.sum(), [0.6, 0.36, 0.04], atol=0.03)
