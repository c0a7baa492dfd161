"""Rules along a path: their law of rounds and text is that of the rule on whole distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specsim.arrays import Floats, Ints
from specsim.engine.simulate import simulate
from specsim.errors import ConfigError
from specsim.scenario import load_scenario
from specsim.scenario.kinds import verifier_named, verifier_spec
from specsim.speculation import (
    VERIFIERS,
    BlockVerifier,
    BuildContext,
    ChainDraft,
    ConfidenceSpec,
    Fixed,
    GreedyVerifier,
    PathRounds,
    RatesDistributions,
    RecordedPaths,
    TypicalVerifier,
    Verifier,
    build_rounds,
)
from specsim.speculation.distributions import PathProbabilities, Signals
from specsim.speculation.mixture import MixedPaths
from specsim.speculation.ruled_paths import RuledPaths
from specsim.speculation.verify.rule import PathVerifier
from specsim.streams import RandomStreams
from tests.oracles.text_law import (
    Keep,
    pair_of_64ths,
    total_variation,
    two_rounds_by_replay,
    two_rounds_by_the_rule,
)
from tests.strategies import random_trace

SIZES = [(2, 1), (2, 2), (2, 3), (3, 2)]
BLOCK = BlockVerifier()
TRACE = "scenarios/traces/smollm2_exit24_t0.7.npz"


def _under(rule: Verifier, depth: int) -> Callable[[RecordedPaths], Keep]:
    def keep_of(paths: RecordedPaths) -> Keep:
        along = RuledPaths(paths, rule)
        return lambda request, start: along.acceptance(*_at(request, start), depth)[0]

    return keep_of


def _without_product(depth: int) -> Callable[[RecordedPaths], Keep]:
    return lambda paths: lambda request, start: paths.acceptance(*_at(request, start), depth)[0]


def _product_over_starts(depth: int) -> Callable[[RecordedPaths], Keep]:
    """Wrong on purpose: what is carried began with the text, not with the round."""

    def keep(paths: RecordedPaths, request: int, start: int) -> Floats:
        whole: Floats = RuledPaths(paths, BLOCK).acceptance(*_at(request, 1), start - 1 + depth)[0]
        after: Floats = whole[start - 1 :]
        return after

    return lambda paths: lambda request, start: keep(paths, request, start)


def _at(request: int, start: int) -> tuple[Ints, Ints]:
    return np.array([request]), np.array([start])


@pytest.mark.parametrize(("size", "depth"), SIZES)
@pytest.mark.parametrize("seed", [0, 1])
def test_two_rounds_of_replay_have_the_joint_law_of_block_verification(
    size: int, depth: int, seed: int
) -> None:
    pair = pair_of_64ths(seed, size=size)
    by_rule = two_rounds_by_the_rule(pair, ChainDraft(pair, num_tokens=depth), BLOCK)
    assert sum(by_rule.values()) == pytest.approx(1, abs=1e-12)
    assert total_variation(by_rule, two_rounds_by_replay(pair, depth, _under(BLOCK, depth))) < 1e-12


@pytest.mark.parametrize("kind", ["candidates", "kseq", "optimal", "recursive", "sampler_match"])
def test_two_rounds_of_replay_have_the_joint_law_of_every_rule_for_chains(kind: str) -> None:
    pair, rule = pair_of_64ths(2, size=2), verifier_named(kind).build(BuildContext(num_speculative_tokens=2))
    by_rule = two_rounds_by_the_rule(pair, ChainDraft(pair, num_tokens=2), rule)
    assert total_variation(by_rule, two_rounds_by_replay(pair, 2, _under(rule, 2))) < 1e-12


def test_a_rule_replays_iff_it_is_lossless_and_then_says_how() -> None:
    for kind, spec in VERIFIERS:
        rule = verifier_spec(
            spec.model_validate({"kind": kind, "lenience": 0.5} if kind == "lenience" else {})
        )
        built = rule.build(BuildContext(num_speculative_tokens=2))
        assert built.is_lossless is (built.needs != "conditional"), kind
        assert isinstance(built, PathVerifier) is (built.needs == "path"), kind


def test_greedy_verification_replays_a_text_recorded_at_temperature_0_and_no_other() -> None:
    certain = random_trace(3, [30])
    certain.p_token = np.ones_like(certain.p_token)
    where = np.zeros(20, dtype=np.int64), np.arange(1, 21)
    paths = RecordedPaths(certain)
    np.testing.assert_array_equal(
        RuledPaths(paths, GreedyVerifier()).acceptance(*where, 4), paths.acceptance(*where, 4)
    )
    with pytest.raises(ConfigError, match="verifier: greedy: the target is not certain"):
        RuledPaths(RecordedPaths(random_trace(3, [30])), GreedyVerifier()).check(
            np.array([30]), num_speculative_tokens=2
        )


@pytest.mark.parametrize(("where", "caps"), [(70, [30, 80]), (31, [30, 2]), (50, [30, 20])])
def test_a_rule_is_asked_about_every_prompt_before_anything_runs(where: int, caps: list[int]) -> None:
    trace = random_trace(3, [30, 50])
    trace.p_token = np.ones_like(trace.p_token)
    trace.p_token[where] = 0.5
    along = RuledPaths(RecordedPaths(trace), GreedyVerifier())
    with pytest.raises(ConfigError, match="greedy: the target is not certain"):
        along.check(np.array(caps), num_speculative_tokens=2)
    with pytest.raises(ConfigError, match="greedy: the target is not certain"):
        build_rounds(
            RecordedPaths(trace),
            Fixed(),
            GreedyVerifier(),
            streams=RandomStreams(0),
            num_output_tokens=np.array(caps),
            num_speculative_tokens=2,
        )


@pytest.mark.parametrize("where", [30, 51, 79])
def test_a_rule_is_not_asked_about_what_no_request_reaches(where: int) -> None:
    trace = random_trace(3, [30, 50])
    trace.p_token = np.ones_like(trace.p_token)
    # The first token comes from prefill; the others lie past what the last round may draft.
    trace.p_token[where] = 0.5
    RuledPaths(RecordedPaths(trace), GreedyVerifier()).check(np.array([30, 20]), num_speculative_tokens=2)


def test_a_mixture_asks_each_class_once() -> None:
    class Counted(RecordedPaths):
        num_asked = 0

        def probabilities(self, request: Ints, position: Ints, depth: int) -> PathProbabilities:
            self.num_asked += 1
            return super().probabilities(request, position, depth)

        def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
            self.num_asked += 1
            return super().signals(request, position, depth)

    classes = [Counted(random_trace(seed, [20])) for seed in (2, 3)]
    mixed = MixedPaths(classes, request_class=np.array([0, 1, 0]), index_in_class=np.array([0, 0, 1]))
    where = np.array([0, 1, 2]), np.array([3, 4, 5])
    known, seen = mixed.probabilities(*where, 4), mixed.signals(*where, 4)
    assert [part.num_asked for part in classes] == [2, 2]
    for row, number, index in ((0, 0, 0), (1, 1, 0), (2, 0, 1)):
        at = np.array([index]), where[1][row : row + 1]
        own, signals = classes[number].probabilities(*at, 4), classes[number].signals(*at, 4)
        np.testing.assert_array_equal([known.target[row], known.draft[row]], [own.target[0], own.draft[0]])
        np.testing.assert_array_equal(seen.entropy_nats[row], signals.entropy_nats[0])
        np.testing.assert_array_equal(seen.top_probability[row], signals.top_probability[0])


class _LossyBlock(BlockVerifier):
    is_lossless = False


@pytest.mark.parametrize("rule", [TypicalVerifier(), _LossyBlock()], ids=["needs more", "says it replays"])
def test_a_lossy_rule_is_refused_on_a_recording(rule: Verifier) -> None:
    with pytest.raises(ConfigError, match="no exact replay"):
        RuledPaths(RecordedPaths(random_trace(3, [30])), rule)


@pytest.mark.parametrize("wrong", [_without_product, _product_over_starts])
def test_replay_with_a_part_left_out_has_another_law(
    wrong: Callable[[int], Callable[[RecordedPaths], Keep]],
) -> None:
    pair = pair_of_64ths(0, size=2)
    by_rule = two_rounds_by_the_rule(pair, ChainDraft(pair, num_tokens=3), BLOCK)
    assert total_variation(by_rule, two_rounds_by_replay(pair, 3, wrong(3))) > 1e-3


def test_at_least_i_drafts_are_kept_with_the_smallest_of_the_ratios_products() -> None:
    paths = RecordedPaths(random_trace(3, [60]))
    where = np.zeros(40, dtype=np.int64), np.arange(1, 41)
    known = paths.probabilities(*where, 8)
    products = np.cumprod(known.draft / known.target, axis=1)
    expected = np.minimum.accumulate(np.minimum(products, 1.0), axis=1)
    np.testing.assert_allclose(
        np.cumprod(RuledPaths(paths, BLOCK).acceptance(*where, 8), axis=1), expected, rtol=1e-12
    )


def test_block_keeps_at_least_what_token_keeps_along_every_path() -> None:
    paths = RecordedPaths(random_trace(4, [60, 30]))
    where = np.repeat([0, 1], 30), np.tile(np.arange(1, 31), 2)
    block, token = (one.acceptance(*where, 6) for one in (RuledPaths(paths, BLOCK), paths))
    assert np.all(np.cumprod(block, axis=1) >= np.cumprod(token, axis=1) - 1e-15)
    assert block.sum() > token.sum()


@pytest.mark.parametrize("method", ["lookup", "greedy"])
def test_certain_drafts_are_kept_alike_by_block_and_token(method: str) -> None:
    if method == "lookup":
        paths = RecordedPaths(random_trace(1, [40, 7], with_scalars=False))
    else:
        paths = RecordedPaths(random_trace(1, [40, 7]), draft_sample_method="greedy")
    where = np.zeros(30, dtype=np.int64), np.arange(1, 31)
    np.testing.assert_array_equal(RuledPaths(paths, BLOCK).acceptance(*where, 4), paths.acceptance(*where, 4))


def test_a_mixture_replays_block_where_each_class_does() -> None:
    paths = RecordedPaths(random_trace(2, [20]))
    number = {"request_class": np.array([0, 1]), "index_in_class": np.array([0, 0])}
    mixed = RuledPaths(MixedPaths([paths, paths], **number), BlockVerifier())
    both = mixed.acceptance(np.array([0, 1]), np.array([3, 3]), 4)
    np.testing.assert_array_equal(both[0], both[1])
    np.testing.assert_array_equal(both[0], RuledPaths(paths, BLOCK).acceptance(*_at(0, 3), 4)[0])
    with pytest.raises(ConfigError, match="rates and logs"):
        RuledPaths(MixedPaths([paths, RatesDistributions([0.5])], **number), BlockVerifier())


def test_rates_know_no_ratios_and_are_refused() -> None:
    with pytest.raises(ConfigError, match="verifier: needs p and q along the path"):
        RuledPaths(RatesDistributions([0.5, 0.5]), BlockVerifier())


def test_a_rule_that_reads_the_draft_past_a_rejection_is_marked_approximate() -> None:
    policy = ConfidenceSpec(threshold=0.5).build(BuildContext(num_speculative_tokens=4))
    for lookahead, is_approximate in ((policy, True), (Fixed(), False)):
        rounds = build_rounds(
            RecordedPaths(random_trace(2, [20])),
            lookahead,
            BLOCK,
            streams=RandomStreams(0),
            num_output_tokens=np.array([20]),
            num_speculative_tokens=4,
        )
        assert isinstance(rounds, PathRounds)
        assert rounds.is_approximate is is_approximate


def test_a_scenario_replays_block_on_a_shipped_trace() -> None:
    scenario = f"""\
hardware: {{target: {{name: unit, kind: unit, target_step_s: 1 s, draft_cost_ratio: 0.1}}}}
speculative_config: {{num_speculative_tokens: 8, draft_sample_method: probabilistic}}
distributions: {{kind: trace, path: {TRACE}}}
workload: {{num_prompts: 160, max_concurrency: 8, output_tokens: 200}}
"""
    rounds = {
        rule: simulate(load_scenario(scenario, overrides=[f"verifier={{kind: {rule}}}"])).rounds
        for rule in ("token", "block")
    }
    accepted = {rule: table["num_accepted"].mean() for rule, table in rounds.items()}
    assert accepted["block"] > accepted["token"]
