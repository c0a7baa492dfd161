"""What the first draft pass of a round takes in: by a cache kept token by token, and by closed forms."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.arrays import Ints
from specsim.engine.deploy import deploy_draft
from specsim.engine.draft_cache import FirstPass, draft_cached
from specsim.engine.shapes import contexts
from specsim.engine.simulate import simulate
from specsim.scenario import load_scenario
from specsim.scenario.parts import SpeculativeConfig
from specsim.speculation.rounds import Rounds
from tests.engine.doubles import LinearCost, run
from tests.oracles.serve import first_pass_positions
from tests.oracles.slow_replay import SlowRound

FIRST_PASSES = get_args(FirstPass)
METHODS = get_args(SpeculativeConfig.model_fields["method"].annotation)
SCENARIO = """\
hardware: {target: {name: unit, kind: unit, target_step_s: 1 s, draft_cost_ratio: 0.1}}
speculative_config: {num_speculative_tokens: 3}
distributions: {kind: rates, acceptance_rate: 0.8}
workload: {num_prompts: 8, max_concurrency: 3, prompt_tokens: 4, output_tokens: 200}
"""

# (drafted, kept, a look-ahead pass is paid), a row a round.
chains = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=12)


def _slow(chain: list[tuple[int, int, bool]]) -> list[SlowRound]:
    rounds, start = [], 1
    for drafted, kept, looks_ahead in chain:
        accepted = min(kept, drafted)
        passes = drafted + looks_ahead
        rounds.append(SlowRound(start, drafted, passes, accepted, accepted + 1, False))
        start += accepted + 1
    return rounds


def _rounds(slow: list[SlowRound]) -> Rounds:
    def column(name: str) -> Ints:
        return np.array([[getattr(one, name)] for one in slow])

    drafted, emitted = column("num_drafted"), column("num_emitted")
    passes, accepted = column("num_draft_steps"), column("num_accepted")
    return Rounds(drafted, passes, drafted + 1, accepted, emitted, emitted < 0)


@given(chain=chains, prompt=st.integers(1, 9), first_pass=st.sampled_from(FIRST_PASSES))
def test_first_passes_take_in_what_a_cache_kept_token_by_token_lacks(
    chain: list[tuple[int, int, bool]], prompt: int, first_pass: FirstPass
) -> None:
    slow = _slow(chain)
    rounds, cached = _rounds(slow), np.array([prompt])
    context = contexts(cached, rounds)
    behind = context + 1 - draft_cached(first_pass, context, rounds, cached)[:-1]
    taken_in = np.where(rounds.num_draft_steps > 0, behind, 0).ravel().tolist()
    assert taken_in == first_pass_positions(slow, first_pass)


@given(chain=chains, first_pass=st.sampled_from(FIRST_PASSES), cut=st.integers(0, 12))
def test_what_a_draft_holds_goes_on_over_the_end_of_a_block(
    chain: list[tuple[int, int, bool]], first_pass: FirstPass, cut: int
) -> None:
    slow, cut = _slow(chain), min(cut, len(chain) - 1)
    cached = np.array([5])
    context = contexts(cached, _rounds(slow))
    whole = draft_cached(first_pass, context, _rounds(slow), cached)
    rest = draft_cached(first_pass, context[cut:], _rounds(slow[cut:]), whole[cut])
    np.testing.assert_array_equal(rest, whole[cut:])


@pytest.mark.parametrize(("first_pass", "behind"), [("unseen", 1), ("emitted", 4), ("newest", 0)])
def test_where_all_is_kept_each_round_but_the_first_takes_in_more(first_pass: FirstPass, behind: int) -> None:
    # Four drafts kept and one more token a round: 1 + 5 tokens, then 1 + 5, …
    def now(position_ps: int) -> float:
        return run(
            prompts=[10],
            outputs=[51],
            num_drafted=4,
            every=5,
            target=LinearCost(100, prefill_is_free=True),
            draft=LinearCost(10, position_ps=position_ps, prefill_is_free=True),
            first_pass=first_pass,
        )[1].now

    # The first round starts inside a run of five, so that it keeps three of four.
    rounds = 1 + 10
    assert now(0) == rounds * (100 + 4 * 10)
    takes_in = {"unseen": 9 * behind, "emitted": 3 + 9 * behind, "newest": 0}[first_pass]
    assert now(1) - now(0) == rounds * 4 + takes_in


def _decode(method: str, *overrides: str) -> dict[str, Ints]:
    scenario = load_scenario(SCENARIO, overrides=[f"speculative_config.method={method}", *overrides])
    steps = simulate(scenario).steps.query("arm == 'speculation' and phase == 'decode'")
    return {name: steps[name].to_numpy() for name in ("num_draft_positions", "num_drafted", "draft_s")}


def test_a_draft_model_takes_in_one_more_with_the_probability_that_all_were_kept() -> None:
    found = _decode("draft_model", "workload.output_tokens=4000")
    rounds = found["num_drafted"].sum() / 3
    rate = (found["num_draft_positions"] - found["num_drafted"]).sum() / rounds
    assert rate == pytest.approx(0.8**3, abs=4 * np.sqrt(0.8**3 * (1 - 0.8**3) / rounds))


def test_what_a_first_pass_takes_in_costs_nothing_where_passes_cost_the_same() -> None:
    by_method = {method: _decode(method) for method in ("draft_model", "eagle", "early_exit")}
    positions = {method: int(found["num_draft_positions"].sum()) for method, found in by_method.items()}
    assert positions["early_exit"] < positions["draft_model"] < positions["eagle"]
    for found in by_method.values():
        np.testing.assert_array_equal(found["draft_s"], by_method["early_exit"]["draft_s"])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_what_its_first_pass_takes_in(method: str) -> None:
    draft = deploy_draft(load_scenario(SCENARIO, overrides=[f"speculative_config.method={method}"]))
    own_cache, head = {"draft_model": "unseen"}, dict.fromkeys(("eagle", "eagle3", "mtp"), "emitted")
    assert draft is not None
    assert draft.first_pass == (own_cache | head).get(method, "newest")


def test_a_round_that_drafts_nothing_leaves_its_token_to_the_next() -> None:
    slow = _slow([(2, 2, False), (0, 0, False), (0, 0, False), (2, 0, False)])
    assert first_pass_positions(slow, "unseen") == [1, 0, 0, 4]
    assert first_pass_positions(slow, "emitted") == [1, 0, 0, 5]
    assert first_pass_positions(slow, "newest") == [1, 0, 0, 1]
