"""Where floating point is at its edge: the right answer or a clear refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.speculation import Draft, ExplicitDistributions, GreedyVerifier, temperature
from specsim.speculation.prove import round_law
from specsim.speculation.sampling import acceptance_rate, distribution, draw, keep_probabilities
from specsim.speculation.walk import walk
from tests.strategies import distributions
from tests.verification.subjects import CHAIN_RULES, TREE_RULES, chain, subject, tree

JUST_BELOW_ONE = float(np.nextafter(1.0, 0.0))
EDGES: dict[str, tuple[list[float], list[float]]] = {
    "no mass in common": ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
    "p is q": ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
    "p is q with a zero": ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]),
    "p is certain": ([0.0, 1.0, 0.0], [0.3, 0.3, 0.4]),
    "q is certain": ([0.2, 0.3, 0.5], [1.0, 0.0, 0.0]),
    "both are certain of another": ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
    "p underflows": ([1e-300, 1.0, 0.0], [0.5, 0.5, 0.0]),
    "q underflows": ([0.5, 0.5, 0.0], [1e-300, 1.0, 0.0]),
    "p and q almost agree": ([0.5, 0.5 - 1e-16, 1e-16], [0.5, 0.5, 0.0]),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("rule", CHAIN_RULES)
def test_a_chain_rule_is_exact_at_the_edges(rule: str, edge: str) -> None:
    p, q = (np.array(law) for law in EDGES[edge])
    law = round_law(subject(CHAIN_RULES[rule](), chain(2), ExplicitDistributions(p, q)))
    assert law.total_variation < 1e-12
    assert not law.emitted[law.target == 0].any()


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    "rule",
    [
        "recursive distinct 3",
        "kseq independent 3",
        "candidates distinct 2,2",
        pytest.param("kseq independent 2,2", marks=pytest.mark.verification),
    ],
)
def test_a_tree_rule_is_exact_at_the_edges(rule: str, edge: str) -> None:
    p, q = (np.array(law) for law in EDGES[edge])
    verifier, source = TREE_RULES[rule]
    law = round_law(subject(verifier(), source, ExplicitDistributions(p, q)))
    assert law.total_variation < 1e-12
    assert not law.emitted[law.target == 0].any()


@given(data=st.data())
@pytest.mark.parametrize("rule", CHAIN_RULES)
def test_a_rule_states_probabilities_whatever_it_is_given(rule: str, data: st.DataObject) -> None:
    p = np.stack([data.draw(distributions(size=3)) for _ in range(3)])
    q = np.stack([data.draw(distributions(size=3)) for _ in range(2)])
    token = np.array([[data.draw(st.sampled_from(np.flatnonzero(law > 0).tolist())) for law in q]])
    draft = Draft(token, np.array([[-1, 0]]), q[np.newaxis])
    verifier = CHAIN_RULES[rule]()
    keep = verifier.descend(draft, p[np.newaxis])
    assert ((keep >= 0) & (keep <= 1)).all()
    for last in (-1, 0, 1):
        law = verifier.next_token(draft, p[np.newaxis], np.array([last]))
        assert law.sum() == pytest.approx(1)
        assert (law >= 0).all()
        assert not law[0][p[last + 1] == 0].any()


def test_a_uniform_of_zero_never_keeps_what_has_no_probability() -> None:
    draft = Draft(np.array([[0, 1]]), np.array([[-1, 0]]), np.full((1, 2, 2), 0.5))
    assert walk(draft, np.zeros((1, 2)), np.zeros((1, 2))).num_kept.tolist() == [0]
    tree_draft = Draft(np.array([[0, 1]]), np.array([[-1, -1]]), np.full((1, 2, 2), 0.5))
    assert walk(tree_draft, np.array([[0.0, 0.5]]), np.zeros((1, 1))).tokens.tolist() == [[1]]


def test_a_uniform_next_to_one_keeps_what_is_certain() -> None:
    draft = Draft(np.array([[0, 1]]), np.array([[-1, 0]]), np.full((1, 2, 2), 0.5))
    assert walk(draft, np.ones((1, 2)), np.full((1, 2), JUST_BELOW_ONE)).num_kept.tolist() == [2]


@pytest.mark.parametrize("uniform", [0.0, JUST_BELOW_ONE])
def test_a_draw_never_gives_a_token_without_mass(uniform: float) -> None:
    law = np.array([[0.0, 0.3, 0.6999, 0.0]])
    assert draw(law, np.array([uniform])).item() in (1, 2)


def test_a_cumulative_sum_that_ends_below_one_still_draws_by_the_law() -> None:
    law = np.full((1, 4096), np.float32(1 / 4096), dtype=np.float32).astype(np.float64) * (1 - 1e-6)
    assert draw(law, np.array([JUST_BELOW_ONE])).item() == 4095


def test_tiny_p_over_small_q_from_logits_accepts_one_in_twenty() -> None:
    p, q = (temperature([0.0, np.log(odds)], 1.0) for odds in (1e-9, 2e-8))
    assert keep_probabilities(p[1], q[1]).item() == pytest.approx(0.05, rel=1e-6)


def test_probabilities_stored_in_half_precision_are_refused() -> None:
    with pytest.raises(DomainError, match="float16"):
        distribution(np.array([0.5, 0.5], dtype=np.float16))
    with pytest.raises(DomainError, match="float16"):
        acceptance_rate(np.array([1.0, 1e-9], dtype=np.float16), np.array([1.0, 2e-8], dtype=np.float16))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_refused(value: float) -> None:
    with pytest.raises(DomainError, match="logits"):
        temperature([0.0, value], 1.0)


def test_a_vanishing_temperature_gives_the_greedy_law() -> None:
    p = temperature([1.0, 1.0 + 1e-3, 0.0], 1e-6)
    law = round_law(subject(GreedyVerifier(), chain(2), ExplicitDistributions(p, np.full(3, 1 / 3))))
    assert p.tolist() == [0, 1, 0]
    assert law.emitted[0, 9 + 3 + 1] == 1


def test_a_greedy_rule_refuses_a_target_that_is_not_certain() -> None:
    with pytest.raises(DomainError, match=r"not certain \(largest probability 0.5"):
        round_law(subject(GreedyVerifier(), chain(1)))


def test_siblings_whose_q_differs_in_a_last_digit_are_independent_all_the_same() -> None:
    p, q = np.array([[[0.5, 0.3, 0.2]] * 3]), np.array([[[0.2, 0.3, 0.5]] * 2])
    q[0, 1] = np.nextafter(q[0, 1], 1.0)
    for token in ([2, 2], [2, 0]):
        draft = Draft(np.array([token]), np.array([[-1, -1]]), q)
        keep = CHAIN_RULES["optimal"]().descend(draft, p)
        assert ((keep >= 0) & (keep.sum() <= 1)).all()


def test_a_tree_with_more_children_than_tokens_is_padded_and_exact() -> None:
    pair = ExplicitDistributions(np.array([0.3, 0.7, 0.0]), np.array([0.6, 0.4, 0.0]))
    verifier, _ = TREE_RULES["recursive distinct 3"]
    one = subject(verifier(), tree("distinct", 3), pair)
    law = round_law(one)
    assert law.total_variation < 1e-12
    assert law.acceptance_probability == pytest.approx(1)


def test_laws_of_large_vocabularies_sum_to_one() -> None:
    generator = np.random.default_rng(0)
    p: Floats = generator.dirichlet(np.full(5000, 0.01), (1, 4))
    q: Floats = generator.dirichlet(np.full(5000, 0.01), (1, 3))
    token = q.argmax(axis=2)
    draft = Draft(token, np.array([[-1, 0, 1]]), q)
    for rule in ("token", "block", "recursive", "kseq"):
        verifier = CHAIN_RULES[rule]()
        law = verifier.next_token(draft, p, np.array([0]))
        assert law.sum() == pytest.approx(1, abs=1e-9)
        assert np.isfinite(verifier.descend(draft, p)).all()
