"""The token rule is exact: proved by enumeration, with a wrong rule that the proof rejects."""

from __future__ import annotations

import numpy as np
import pytest

from specsim.arrays import Floats, Ints
from specsim.speculation import (
    ConditionalDistributions,
    Draft,
    ExplicitDistributions,
    Prefixes,
    TokenVerifier,
)
from specsim.speculation.theory import expected_tokens
from tests.oracles.exact_law import speculative_law, target_law
from tests.oracles.markov import MarkovPair, random_pair

ROOT = Prefixes(np.array([0]), np.array([1]), np.array([[-1]]))


def _largest_difference(pair: ConditionalDistributions, verifier: TokenVerifier, lookahead: int) -> float:
    law, _ = speculative_law(pair, verifier, ROOT, lookahead)
    truth = target_law(pair, ROOT, lookahead + 1)
    return 0.5 * sum(abs(law[tokens] - truth[tokens]) for tokens in truth)


@pytest.mark.parametrize(("size", "lookahead"), [(2, 1), (2, 3), (3, 2), (4, 1)])
@pytest.mark.parametrize("seed", range(5))
def test_token_verification_emits_the_law_of_plain_sampling(size: int, lookahead: int, seed: int) -> None:
    pair = random_pair(seed, size=size, concentration=0.5)
    assert _largest_difference(pair, TokenVerifier(), lookahead) < 1e-12


def test_the_law_is_kept_where_supports_differ() -> None:
    target = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.2, 0.0, 0.8], [0.3, 0.3, 0.4]])
    draft = np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
    assert _largest_difference(MarkovPair(target, draft), TokenVerifier(), 2) < 1e-12


class _WithoutCorrection(TokenVerifier):
    """Wrong on purpose: draws the token after a rejection from p."""

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        return target[np.arange(last.size), last + 1]


class _GreedyDraftSoftLaw(TokenVerifier):
    """Wrong on purpose: tests a draft drawn from q as though it had been drawn evenly."""

    def descend(self, draft: Draft, target: Floats) -> Floats:
        even = np.full_like(draft.probabilities, 1 / draft.probabilities.shape[2])
        return super().descend(Draft(draft.token, draft.parent, even), target)


@pytest.mark.parametrize("wrong", [_WithoutCorrection(), _GreedyDraftSoftLaw()])
def test_wrong_rules_are_rejected(wrong: TokenVerifier) -> None:
    assert _largest_difference(random_pair(0, size=3), wrong, 2) > 0.01


def test_expected_tokens_match_leviathan_eq1_where_acceptance_is_constant() -> None:
    pair = ExplicitDistributions(np.array([0.7, 0.3]), np.array([0.3, 0.7]))
    for lookahead in (1, 2, 3):
        _, expected = speculative_law(pair, TokenVerifier(), ROOT, lookahead)
        assert expected == pytest.approx(expected_tokens(0.6, lookahead), abs=1e-12)


def test_accepted_drafts_of_the_third_and_two_thirds_pair() -> None:
    pair = ExplicitDistributions(np.array([1 / 3, 2 / 3]), np.array([2 / 3, 1 / 3]))
    _, expected = speculative_law(pair, TokenVerifier(), ROOT, 2)
    assert expected - 1 == pytest.approx(10 / 9, abs=1e-12)


def test_padding_is_never_kept_and_ends_in_the_targets_own_law() -> None:
    draft = Draft(np.array([[1, -1]]), np.array([[-1, 0]]), np.array([[[0.3, 0.7], [0.5, 0.5]]]))
    target = np.array([[[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]]])
    assert TokenVerifier().descend(draft, target).tolist() == [[1.0, 0.0]]
    assert TokenVerifier().next_token(draft, target, np.array([0])).tolist() == [[0.9, 0.1]]


def test_an_empty_draft_ends_in_the_targets_law() -> None:
    draft = Draft(np.empty((2, 0), dtype=np.int64), np.empty((2, 0), dtype=np.int64), np.empty((2, 0, 2)))
    target = np.array([[[0.3, 0.7]], [[0.9, 0.1]]])
    last = np.array([-1, -1])
    assert TokenVerifier().next_token(draft, target, last).tolist() == [[0.3, 0.7], [0.9, 0.1]]
