"""Every lossless rule has the target's law: enumerated to rounding, and counted over two rounds."""

from __future__ import annotations

import numpy as np
import pytest

from specsim.speculation import (
    BlockVerifier,
    Confidence,
    ExplicitDistributions,
    Fixed,
    Heuristic,
    LenienceVerifier,
    LookaheadPolicy,
    RecursiveVerifier,
    TokenVerifier,
    TypicalVerifier,
    Verifier,
)
from specsim.speculation.markov import MarkovPair, random_markov_pair
from specsim.speculation.prove import Subject, prove, round_law, two_rounds_p_value
from specsim.streams import Purpose, RandomStreams
from tests.verification.subjects import (
    CHAIN_RULES,
    GREEDY_RULES,
    PAIR,
    TREE_RULES,
    P,
    Q,
    Source,
    chain,
    subject,
    tree,
)

TOLERANCE = 1e-12
LEAST_P = 1e-4
THIN_AND_FULL = [1, pytest.param(6, marks=pytest.mark.verification)]


def _pair(number: int, *, size: int = 3, is_certain: bool = False) -> MarkovPair:
    generator = RandomStreams(5).generator(Purpose.PROOF, number)
    return random_markov_pair(generator, vocabulary_size=size, is_certain=is_certain)


@pytest.mark.parametrize("num_pairs", THIN_AND_FULL)
@pytest.mark.parametrize(
    ("size", "lookahead"), [pytest.param(2, 3, marks=pytest.mark.verification), (3, 2), (4, 3)]
)
@pytest.mark.parametrize("rule", CHAIN_RULES)
def test_a_chain_rule_emits_the_targets_law(rule: str, size: int, lookahead: int, num_pairs: int) -> None:
    for number in range(num_pairs):
        law = round_law(subject(CHAIN_RULES[rule](), chain(lookahead), _pair(number, size=size)))
        assert law.total_variation < TOLERANCE
        assert (law.replay_total_variation or 0.0) < TOLERANCE


@pytest.mark.parametrize("rule", CHAIN_RULES)
def test_a_chain_rule_emits_the_targets_law_after_a_greedy_draft(rule: str) -> None:
    law = round_law(subject(CHAIN_RULES[rule](), chain(3, is_greedy=True), _pair(1)))
    assert law.total_variation < TOLERANCE


@pytest.mark.parametrize("num_pairs", THIN_AND_FULL)
@pytest.mark.parametrize(
    "rule",
    [
        # The dearest by far; `kseq chains 2x2` and `kseq independent 3` stay.
        pytest.param(rule, marks=pytest.mark.verification) if rule == "kseq independent 2,2" else rule
        for rule in TREE_RULES
    ],
)
def test_a_tree_rule_emits_the_targets_law(rule: str, num_pairs: int) -> None:
    verifier, source = TREE_RULES[rule]
    for number in range(num_pairs):
        law = round_law(subject(verifier(), source, _pair(number)))
        assert law.total_variation < TOLERANCE
        assert (law.replay_total_variation or 0.0) < TOLERANCE


@pytest.mark.parametrize("rule", GREEDY_RULES)
def test_greedy_verification_emits_a_certain_targets_law(rule: str) -> None:
    verifier, source = GREEDY_RULES[rule]
    assert round_law(subject(verifier(), source, _pair(2, is_certain=True))).total_variation < TOLERANCE


def test_greedy_verification_is_token_verification_of_a_certain_target() -> None:
    pair = _pair(2, is_certain=True)
    greedy = round_law(subject(GREEDY_RULES["greedy chain"][0](), chain(3), pair))
    token = round_law(subject(TokenVerifier(), chain(3), pair))
    assert greedy.expected_tokens == pytest.approx(token.expected_tokens, abs=TOLERANCE)


@pytest.mark.verification
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("branching", [(3,), (2, 2), (3, 1), (1, 3), (1, 2, 1), (1, 1, 3), (2, 1, 2)])
def test_recursive_rejection_emits_the_targets_law_on_trees(branching: tuple[int, ...], size: int) -> None:
    law = round_law(subject(RecursiveVerifier(), tree("distinct", *branching), _pair(4, size=size)))
    assert law.total_variation < TOLERANCE


@pytest.mark.parametrize("verifier", [TokenVerifier(), BlockVerifier()], ids=["token", "block"])
@pytest.mark.parametrize(
    "policy",
    [Confidence(threshold=0.6), Heuristic(initial_tokens=2, most_tokens=3)],
    ids=["confidence", "heuristic"],
)
def test_the_law_does_not_change_with_the_policy(policy: LookaheadPolicy, verifier: Verifier) -> None:
    pair = _pair(3)
    law = round_law(Subject(pair, chain(3)(pair), verifier, policy))
    assert law.total_variation < TOLERANCE


@pytest.mark.parametrize("num_requests", [6000, pytest.param(60_000, marks=pytest.mark.verification)])
@pytest.mark.parametrize(
    ("verifier", "source"),
    [
        (TokenVerifier(), chain(2)),
        (BlockVerifier(), chain(3)),
        TREE_RULES["recursive distinct 2,1,1"],
        TREE_RULES["kseq chains 2x2"],
        TREE_RULES["candidates lookup"],
    ],
    ids=["token", "block", "recursive tree", "kseq chains", "lookup"],
)
def test_two_rounds_on_the_luck_of_a_run_have_the_targets_law(
    verifier: Verifier | type[Verifier], source: Source, num_requests: int
) -> None:
    rule = verifier() if isinstance(verifier, type) else verifier
    p_value = two_rounds_p_value(subject(rule, source, _pair(6)), num_requests=num_requests, seed=1)
    assert p_value > LEAST_P


def test_two_rounds_under_every_policy_have_the_targets_law() -> None:
    pair = _pair(6)
    for policy in (Fixed(), Confidence(threshold=0.6), Heuristic(initial_tokens=1, most_tokens=3)):
        one = Subject(pair, chain(3)(pair), BlockVerifier(), policy)
        assert two_rounds_p_value(one, num_requests=5000, seed=2) > LEAST_P


@pytest.mark.parametrize(
    ("verifier", "source", "acceptance"),
    [
        (CHAIN_RULES["token"], chain(1), 0.70),
        (CHAIN_RULES["recursive"], tree("independent", 2), 0.76),
        (CHAIN_RULES["kseq"], tree("independent", 2), 0.791355),
        (CHAIN_RULES["recursive"], tree("distinct", 2), 0.82),
        (CHAIN_RULES["optimal"], tree("independent", 2), 0.86),
        (CHAIN_RULES["optimal"], tree("distinct", 2), 69 / 70),
        (CHAIN_RULES["candidates"], tree("certain", 2), 0.50),
        (CHAIN_RULES["sampler_match"], chain(1), 0.29),
    ],
    ids=["token", "recursive iid", "kseq", "recursive", "optimal iid", "optimal", "top 2", "match"],
)
def test_two_siblings_of_the_worked_pair_are_kept_as_published(
    verifier: type[Verifier], source: Source, acceptance: float
) -> None:
    law = round_law(subject(verifier(), source))
    assert law.acceptance_probability == pytest.approx(acceptance, abs=1e-6)
    np.testing.assert_allclose(law.emitted.reshape(3, -1).sum(axis=1), P, atol=TOLERANCE)


def test_block_keeps_eleven_ninths_where_token_keeps_ten_ninths() -> None:
    pair = ExplicitDistributions(np.array([1 / 3, 2 / 3]), np.array([2 / 3, 1 / 3]))
    tokens = [
        round_law(subject(rule, chain(2), pair)).expected_tokens
        for rule in (TokenVerifier(), BlockVerifier())
    ]
    assert tokens == pytest.approx([1 + 10 / 9, 1 + 11 / 9], abs=TOLERANCE)


@pytest.mark.parametrize("number", range(4))
def test_block_never_keeps_less_than_token(number: int) -> None:
    pair = _pair(number)
    token, block = (round_law(subject(rule, chain(3), pair)) for rule in (TokenVerifier(), BlockVerifier()))
    assert block.expected_tokens >= token.expected_tokens - TOLERANCE


@pytest.mark.parametrize("rule", ["token", "block", "recursive", "kseq", "optimal"])
def test_a_draft_that_is_the_target_is_always_kept(rule: str) -> None:
    pair = ExplicitDistributions(P, P)
    law = round_law(subject(CHAIN_RULES[rule](), chain(3), pair))
    assert law.expected_tokens == pytest.approx(4, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("rule", "total_variation"),
    [(TypicalVerifier(threshold=0.2), 0.3), (LenienceVerifier(lenience=0.5), 0.2)],
    ids=["typical", "lenience"],
)
def test_a_lossy_rule_fails_and_says_by_how_much(rule: Verifier, total_variation: float) -> None:
    proof = prove([subject(rule, chain(1))], num_requests=2000)
    assert not proof.passed
    assert not rule.is_lossless
    law = proof.laws[0].emitted.reshape(3, -1).sum(axis=1)[0:3]
    assert np.abs(law - P).sum() / 2 == pytest.approx(total_variation, abs=1e-9)


def test_lenience_makes_no_token_more_probable_than_p_over_l() -> None:
    for lenience in (0.25, 0.5, 0.75):
        law = round_law(subject(LenienceVerifier(lenience=lenience), chain(1), PAIR))
        assert (law.emitted.reshape(3, -1).sum(axis=1) <= P / lenience + TOLERANCE).all()
    assert Q[2] > P[2]
