"""Draft sources: trees of every shape, independent chains, lookup; and the walk down them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from specsim.errors import ConfigError, DomainError
from specsim.speculation import (
    BlockVerifier,
    BuildContext,
    CandidatesVerifier,
    ChainDraft,
    Confidence,
    Draft,
    DynamicTreeDraft,
    ExplicitDistributions,
    Fixed,
    IndependentChainsDraft,
    IndependentChainsSpec,
    KSeqVerifier,
    LookupDraft,
    LookupSpec,
    Prefixes,
    RatesDistributions,
    SequoiaSpec,
    TokenVerifier,
    TreeDraft,
    TreeShape,
    TreeSpec,
    best_tree,
    build_rounds,
    optimal_tree,
)
from specsim.speculation.draft import node_depths
from specsim.speculation.prove import Subject, round_law
from specsim.speculation.tree_shape import largest_products
from specsim.speculation.walk import walk
from specsim.streams import RandomStreams
from tests.oracles.markov import random_pair

RATES = (0.6, 0.2, 0.08, 0.04)
NOTHING = Prefixes(np.array([0]), np.array([1]), np.empty((1, 0), dtype=np.int64))
Q = np.array([0.5, 0.3, 0.2])
PAIR = ExplicitDistributions(np.array([0.2, 0.3, 0.5]), Q)


@pytest.mark.parametrize(
    ("num_nodes", "tokens"),
    [(1, 1.6), (2, 1.96), (3, 2.176), (4, 2.376), (5, 2.5056), (7, 2.7456), (15, 3.262)],
)
def test_the_optimal_tree_has_the_published_expectation(num_nodes: int, tokens: float) -> None:
    tree = optimal_tree(RATES, num_nodes=num_nodes)
    assert tree.expected_tokens(RATES) == pytest.approx(tokens, abs=5e-5)
    assert tree.num_nodes == num_nodes


@given(
    weights=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    slack=st.integers(0, 20),
    num_nodes=st.integers(1, 12),
)
def test_where_rates_fall_the_optimal_tree_is_the_largest_products(
    weights: list[int], slack: int, num_nodes: int
) -> None:
    rates = [weight / (sum(weights) + slack) for weight in sorted(weights, reverse=True)]
    best = optimal_tree(rates, num_nodes=num_nodes).expected_tokens(rates)
    assert best == pytest.approx(largest_products(rates, num_nodes=num_nodes).expected_tokens(rates))


def test_a_tree_as_engine_path_keeps_what_the_closed_form_says() -> None:
    """Rank r is token r of p = P, proposed for certain: 2.176 tokens of three nodes."""
    p = np.array([*RATES, 0.08])
    pair = ExplicitDistributions(p, np.array([0.5, 0.2, 0.15, 0.1, 0.05]))
    source = TreeDraft(pair, optimal_tree(RATES, num_nodes=3), siblings="certain")
    law = round_law(Subject(pair, source, CandidatesVerifier()))
    assert law.expected_tokens == pytest.approx(2.176, abs=1e-12)


def test_depth_is_bounded_where_asked() -> None:
    assert optimal_tree((0.9,), num_nodes=8, max_depth=2).depth == 2
    assert optimal_tree(RATES, num_nodes=0).num_nodes == 0


def test_a_dear_device_gets_a_smaller_tree() -> None:
    trees = [
        best_tree(RATES, max_nodes=16, round_s=lambda tree, c=cost: 1 + c * tree.num_nodes)
        for cost in (0.0, 0.05, 0.3, 2.0)
    ]
    sizes = [tree.num_nodes for tree in trees]
    assert sizes[0] == 16
    assert sizes[-1] == 0
    assert all(first >= second for first, second in pairwise(sizes))


@pytest.mark.parametrize("rates", [(), (1.2,), (0.7, 0.7), (-0.1,)])
def test_rates_that_are_none_are_refused(rates: tuple[float, ...]) -> None:
    with pytest.raises(DomainError, match="acceptance by rank"):
        optimal_tree(rates, num_nodes=3)


def test_passes_of_a_tree_compute_a_level_each() -> None:
    assert TreeShape.of_branching([3, 2, 1]).pass_positions == (1, 3, 6)
    assert TreeShape.of_paths([(0,), (1,), (0, 0)]).pass_positions == (1, 1)


def test_a_node_without_its_elder_sibling_is_refused() -> None:
    with pytest.raises(DomainError, match=r"node \[1\] needs node \[0\]"):
        TreeShape.of_paths([(1,)])


def test_distinct_siblings_are_distinct_and_drawn_from_what_is_left() -> None:
    source = TreeDraft(PAIR, TreeShape.of_branching([3]), siblings="distinct")
    for chance, draft in source.enumerate(NOTHING):
        first, second, third = draft.token[0].tolist()
        assert sorted((first, second, third)) == [0, 1, 2]
        assert chance == pytest.approx(Q[first] * Q[second] / (1 - Q[first]), abs=1e-12)
        assert draft.probabilities[0, 1, first] == 0


def test_certain_siblings_are_the_most_probable() -> None:
    source = TreeDraft(PAIR, TreeShape.of_branching([2]), siblings="certain")
    ((chance, draft),) = source.enumerate(NOTHING)
    assert (chance, draft.token.tolist()) == (1.0, [[0, 1]])


def test_eagle2_keeps_the_most_valuable_nodes() -> None:
    source = DynamicTreeDraft(PAIR, num_nodes=4, depth=3, top_k=2)
    draft = source.propose(NOTHING, np.zeros((1, 4)))
    # Values: 0 .5, 1 .3, 00 .25, 01 .15 or 10 .15: the stable order takes 01.
    assert draft.token.tolist() == [[0, 1, 0, 0]] or draft.token.tolist() == [[0, 1, 0, 1]]
    assert draft.parent[0, :3].tolist() == [-1, -1, 0]
    assert source.pass_positions == (1, 2, 2)


@given(
    seed=st.integers(0, 30), num_nodes=st.integers(1, 12), depth=st.integers(1, 4), top_k=st.integers(1, 3)
)
def test_eagle2s_trees_are_trees(seed: int, num_nodes: int, depth: int, top_k: int) -> None:
    pair = random_pair(seed, size=3)
    draft = DynamicTreeDraft(pair, num_nodes=num_nodes, depth=depth, top_k=top_k).propose(
        Prefixes(np.arange(3), np.ones(3, dtype=np.int64), np.array([[0], [1], [2]])),
        np.zeros((3, num_nodes)),
    )
    assert (draft.parent < np.arange(num_nodes)).all()
    assert node_depths(draft.parent).max() < depth
    for row in range(3):
        named = [
            (p, t)
            for p, t in zip(draft.parent[row].tolist(), draft.token[row].tolist(), strict=True)
            if t >= 0
        ]
        assert len(set(named)) == len(named)


def test_chains_that_begin_alike_go_on_below_the_first() -> None:
    source = IndependentChainsDraft(PAIR, num_chains=2, length=2)
    alike = source.propose(NOTHING, np.array([[0.1, 0.2, 0.1, 0.9]]))
    assert (alike.token.tolist(), alike.parent.tolist()) == ([[0, 0, 0, 2]], [[-1, -1, 0, 0]])
    unlike = source.propose(NOTHING, np.array([[0.1, 0.9, 0.1, 0.9]]))
    assert unlike.parent.tolist() == [[-1, -1, 0, 1]]


def _lookup(text: list[int], *, num_tokens: int = 3) -> list[int]:
    source = LookupDraft(
        num_tokens=num_tokens, longest=2, shortest=1, window_tokens=len(text), vocabulary_size=9
    )
    prefix = Prefixes(np.array([0]), np.array([1]), np.array([text]))
    tokens: list[int] = source.propose(prefix, np.zeros((1, num_tokens))).token[0].tolist()
    return tokens


def test_lookup_proposes_what_followed_the_longest_run() -> None:
    assert _lookup([1, 2, 3, 4, 2, 5, 1, 2]) == [3, 4, 2]
    assert _lookup([-1, 3, 7, 8, 3]) == [7, 8, 3]


def test_lookup_takes_the_latest_occurrence_and_stops_at_the_end() -> None:
    assert _lookup([1, 5, 1, 6, 1]) == [6, 1, -1]


def test_a_lookup_that_misses_proposes_nothing() -> None:
    assert _lookup([-1, -1, 1, 2, 3]) == [-1, -1, -1]


def test_misses_of_a_lookup_are_not_drafts_but_their_pass_is_paid() -> None:
    cycle = ExplicitDistributions(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    source = LookupDraft(num_tokens=4, longest=1, shortest=1, window_tokens=8, vocabulary_size=2)
    caps = np.full(50, 12)
    rounds = build_rounds(
        cycle,
        Fixed(),
        TokenVerifier(),
        streams=RandomStreams(0),
        num_output_tokens=caps,
        num_speculative_tokens=4,
        draft_source=source,
    )
    from specsim.speculation import Sequences

    request = np.arange(50)
    first = rounds.peek(Sequences(request, np.ones_like(request), caps - 1), horizon=1)
    assert first.num_drafted.tolist() == [[0] * 50]
    assert first.num_draft_steps.tolist() == [[1] * 50]
    assert first.num_emitted.tolist() == [[1] * 50]


@given(data=st.data())
def test_a_chain_is_walked_alike_as_chain_and_as_tree(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    keep = np.array([data.draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))])
    uniforms = np.array([data.draw(st.lists(st.floats(0, 0.999), min_size=count, max_size=count))])
    chain = Draft(
        np.arange(count)[np.newaxis], np.arange(-1, count - 1)[np.newaxis], np.ones((1, count, count))
    )
    # One more node, never kept, makes it a tree.
    tree = Draft(
        np.append(chain.token, [[0]], 1), np.append(chain.parent, [[-1]], 1), np.ones((1, count + 1, count))
    )
    as_chain, as_tree = walk(chain, keep, uniforms), walk(tree, np.append(keep, [[0.0]], 1), uniforms)
    assert as_chain.tokens.tolist() == as_tree.tokens.tolist()
    assert as_chain.last.tolist() == as_tree.last.tolist()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"branching": None}, "give one of branching and paths"),
        ({"branching": [2], "paths": [[0]]}, "give one of branching and paths"),
        ({"branching": [0]}, "at least one child"),
        ({"paths": [[1]]}, "needs node"),
    ],
)
def test_trees_that_are_none_are_refused(spec: dict[str, object], message: str) -> None:
    with pytest.raises((ValidationError, DomainError), match=message):
        TreeSpec.model_validate(spec)


def test_a_tree_has_as_many_nodes_as_a_round_drafts() -> None:
    with pytest.raises(ConfigError, match="a tree of 6 nodes, but num_speculative_tokens is 4"):
        TreeSpec(branching=(2, 2)).build(BuildContext(num_speculative_tokens=4), PAIR)
    with pytest.raises(ConfigError, match="not a multiple of 3"):
        IndependentChainsSpec(num_chains=3).build(BuildContext(num_speculative_tokens=4), PAIR)


def test_a_greedy_draft_makes_trees_certain() -> None:
    greedy, sampled = (
        SequoiaSpec(acceptance_by_rank=(0.5, 0.2)).build(
            BuildContext(num_speculative_tokens=4, draft_sample_method=method), PAIR
        )
        for method in ("greedy", "probabilistic")
    )
    assert (greedy.siblings, sampled.siblings) == ("certain", "distinct")


def test_lookups_that_find_nothing_are_refused() -> None:
    with pytest.raises(ValidationError, match="more than prompt_lookup_max"):
        LookupSpec(prompt_lookup_max=2, prompt_lookup_min=3)
    with pytest.raises(ValidationError, match="nothing could be found"):
        LookupSpec(window_tokens=3)


def _built(**given: object) -> None:
    build_rounds(
        **{  # type: ignore[arg-type]
            "distributions": PAIR,
            "policy": Fixed(),
            "verifier": TokenVerifier(),
            "streams": RandomStreams(0),
            "num_output_tokens": np.array([4]),
            "num_speculative_tokens": 3,
        }
        | given
    )


def test_rules_and_drafts_that_do_not_fit_are_refused() -> None:
    tree = TreeDraft(PAIR, TreeShape.of_branching([3]), siblings="distinct")
    with pytest.raises(ConfigError, match="siblings are 'distinct'"):
        _built(draft_source=tree, verifier=BlockVerifier())
    with pytest.raises(ConfigError, match="siblings are 'distinct'"):
        _built(draft_source=tree, verifier=KSeqVerifier())
    with pytest.raises(ConfigError, match="is for chains"):
        _built(draft_source=tree, verifier=CandidatesVerifier(), policy=Confidence(threshold=0.5))
    with pytest.raises(ConfigError, match="draft_source"):
        _built(distributions=RatesDistributions([0.5]), draft_source=ChainDraft(PAIR, num_tokens=1))
