"""Trees of the most probable tokens along a path: exact by ranks, costed by nodes, refused if unknown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specsim.arrays import Ints
from specsim.engine.simulate import simulate
from specsim.errors import ConfigError
from specsim.scenario import load_scenario
from specsim.speculation import (
    CandidatesVerifier,
    ConfidenceSpec,
    Fixed,
    LookaheadPolicy,
    RatesDistributions,
    RecordedPaths,
    RecursiveVerifier,
    Sequences,
    TokenVerifier,
    TreeDraft,
    TreeShape,
    Verifier,
    build_rounds,
)
from specsim.speculation.kinds import BuildContext
from specsim.speculation.mixture import MixedPaths
from specsim.speculation.path_rounds import PathRounds
from specsim.speculation.ruled_paths import RuledPaths
from specsim.speculation.tree_paths import TreePaths
from specsim.streams import RandomStreams
from tests.oracles.text_law import (
    Keep,
    every_text,
    pair_of_64ths,
    total_variation,
    two_rounds_by_replay,
    two_rounds_by_the_rule,
)
from tests.policies import RestsAfterThree
from tests.strategies import random_trace

SHAPES = {
    "2": TreeShape.of_branching([2]),
    "2,2": TreeShape.of_branching([2, 2]),
    "1,2": TreeShape.of_branching([1, 2]),
    "uneven": TreeShape.of_paths([(0,), (1,), (0, 0), (0, 1)]),
}
SCENARIO = """\
hardware: {target: {name: unit, kind: unit, target_step_s: 1 s, draft_cost_ratio: 0.1}}
speculative_config: {method: early_exit, num_speculative_tokens: 9}
verifier: {kind: candidates}
draft_source: {kind: tree, branching: [3, 2]}
distributions: {kind: trace, path: scenarios/traces/smollm2_exit24_union64_t0.7.npz}
workload: {num_prompts: 12, max_concurrency: 4}
"""


def _along(shape: TreeShape, rule: Verifier) -> Callable[[RecordedPaths], Keep]:
    def keep_of(paths: RecordedPaths) -> Keep:
        along = RuledPaths(TreePaths(paths, shape), rule)
        return lambda request, start: along.acceptance(np.array([request]), np.array([start]), shape.depth)[0]

    return keep_of


@pytest.mark.parametrize("rule", [CandidatesVerifier(), RecursiveVerifier()], ids=["candidates", "recursive"])
@pytest.mark.parametrize(("shape", "size"), [("2", 3), ("2,2", 2), ("1,2", 2), ("uneven", 3)])
def test_two_rounds_of_replay_have_the_joint_law_of_the_rule(shape: str, size: int, rule: Verifier) -> None:
    pair, tree = pair_of_64ths(1, size=size), SHAPES[shape]
    by_rule = two_rounds_by_the_rule(pair, TreeDraft(pair, tree, siblings="certain"), rule)
    assert sum(by_rule.values()) == pytest.approx(1, abs=1e-12)
    replayed = two_rounds_by_replay(pair, tree.depth, _along(tree, rule))
    assert total_variation(by_rule, replayed) < 1e-12


def test_replay_by_ranks_that_are_one_off_has_another_law() -> None:
    pair, tree, narrow = pair_of_64ths(1, size=3), SHAPES["2,2"], TreeShape.of_branching([1, 1])
    by_rule = two_rounds_by_the_rule(pair, TreeDraft(pair, tree, siblings="certain"), CandidatesVerifier())
    replayed = two_rounds_by_replay(pair, 2, _along(narrow, CandidatesVerifier()))
    assert total_variation(by_rule, replayed) > 0.1


def test_a_tree_of_one_child_a_node_is_a_greedy_chain() -> None:
    paths = RecordedPaths(random_trace(3, [60]), draft_sample_method="greedy")
    where = np.zeros(40, dtype=np.int64), np.arange(1, 41)
    chain = RuledPaths(paths, CandidatesVerifier()).acceptance(*where, 3)
    tree = RuledPaths(TreePaths(paths, TreeShape.of_branching([1, 1, 1])), CandidatesVerifier())
    np.testing.assert_array_equal(tree.acceptance(*where, 3), chain.cumprod(axis=1))


def test_a_mixture_replays_a_tree_where_each_class_does() -> None:
    paths = RecordedPaths(every_text(pair_of_64ths(4, size=3), 4)[0])
    number = {"request_class": np.array([0, 1]), "index_in_class": np.array([7, 7])}
    both = TreePaths(MixedPaths([paths, paths], **number), SHAPES["2"])
    kept = both.acceptance(np.array([0, 1]), np.array([1, 1]), 1)
    assert kept[0] == kept[1] == TreePaths(paths, SHAPES["2"]).acceptance(np.array([7]), np.array([1]), 1)
    with pytest.raises(ConfigError, match="needs the ranks"):
        TreePaths(MixedPaths([paths, RatesDistributions([0.5])], **number), SHAPES["2"])


def _rounds(policy: LookaheadPolicy, *, tree: TreeShape, rule: Verifier) -> PathRounds:
    trace, _ = every_text(pair_of_64ths(1, size=3), 7)
    rounds = build_rounds(
        RecordedPaths(trace),
        policy,
        rule,
        streams=RandomStreams(0),
        num_output_tokens=np.full(40, 7),
        num_speculative_tokens=tree.num_nodes,
        tree=tree,
    )
    assert isinstance(rounds, PathRounds)
    return rounds


def test_a_tree_counts_its_nodes_and_a_policy_cuts_it_by_levels() -> None:
    request: Ints = np.arange(40)
    start = Sequences(request, np.ones_like(request), np.full_like(request, 6))
    for policy, num_nodes in ((Fixed(), {6}), (RestsAfterThree(), {0, 2, 6})):
        peeked = _rounds(policy, tree=SHAPES["2,2"], rule=CandidatesVerifier()).peek(start, horizon=6)
        assert set(peeked.num_drafted.ravel().tolist()) <= num_nodes
        assert (peeked.num_positions == peeked.num_drafted + 1).all()
        assert (peeked.num_accepted <= 2).all()
        assert peeked.positions_of_passes()[0].tolist() == [1, 2]


def test_trees_that_are_not_known_along_the_path_are_refused() -> None:
    with pytest.raises(ConfigError, match="siblings are 'certain'"):
        _rounds(Fixed(), tree=SHAPES["2,2"], rule=TokenVerifier())
    confident = ConfidenceSpec(threshold=0.5).build(BuildContext(num_speculative_tokens=6))
    with pytest.raises(ConfigError, match="chains, not for trees"):
        _rounds(confident, tree=SHAPES["2,2"], rule=CandidatesVerifier())
    with pytest.raises(ConfigError, match="has 2 children, but the trace ranks only the draft's 1"):
        TreePaths(RecordedPaths(random_trace(3, [60])), SHAPES["2"])
    with pytest.raises(ConfigError, match="needs the ranks"):
        TreePaths(RecordedPaths(random_trace(3, [60], with_scalars=False)), SHAPES["2"])


def test_a_scenario_replays_a_tree_on_a_shipped_trace() -> None:
    steps = simulate(load_scenario(SCENARIO)).steps.query("arm == 'speculation' and phase == 'decode'")
    assert (steps["num_positions"] == 10 * steps["num_sequences"]).all()
    assert (steps["num_draft_positions"] == 4 * steps["num_sequences"]).all()


@pytest.mark.parametrize(
    "override",
    [
        "draft_source={kind: tree, branching: [3, 2], siblings: distinct}",
        "draft_source={kind: eagle2, depth: 2, top_k: 3}",
        "draft_source={kind: lookup}",
    ],
)
def test_a_draft_that_a_recording_does_not_hold_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match="a recorded text has its own draft"):
        simulate(load_scenario(SCENARIO, overrides=[override]))
