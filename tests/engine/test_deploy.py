"""Models on their devices, as a scenario says: parallelism, launch, and the physical limit of a run."""

from __future__ import annotations

import numpy as np
import pytest

from specsim.engine.deploy import deploy_draft, deploy_target
from specsim.engine.simulate import simulate
from specsim.errors import ConfigError, DomainError
from specsim.hardware import StepCosts, StepShape, UnitProfile
from specsim.hardware.unit import UnitCosts
from specsim.scenario import Scenario, load_scenario

_SMALL_DRAFT = (
    "speculative_config.model={name: small-draft, model_type: llama, hidden_size: 768,"
    " intermediate_size: 2048, num_hidden_layers: 12, num_attention_heads: 12, vocab_size: 128256}"
)


def _positions(count: int) -> StepShape:
    one = np.array([1])
    return StepShape(one, one * count, one * 0, one * count, one * 1000, one * count * 1000)


def _draft_costs(scenario: Scenario) -> StepCosts:
    draft = deploy_draft(scenario)
    assert draft is not None
    return draft.cost.steps(_positions(1))


def _tpot_ms(scenario: Scenario) -> float:
    speculation = simulate(scenario).summary()["speculation"]
    assert speculation is not None
    return float(str(speculation["mean_tpot_ms"]))


def test_a_small_draft_gets_slower_from_one_device_to_four() -> None:
    one, four = (
        load_scenario(
            "llama70b_h100",
            overrides=[_SMALL_DRAFT, f"speculative_config.draft_tensor_parallel_size={size}"],
        )
        for size in (1, 4)
    )
    slower, faster = _draft_costs(four), _draft_costs(one)
    assert slower.duration_ps[0] > faster.duration_ps[0]
    # Two all-reduces a layer of 4.9 us and what a position's activations take.
    assert slower.communication_s[0] == pytest.approx(24 * (4.9e-6 + 1.5 * 768 * 2 / 302e9))
    assert _tpot_ms(four) > _tpot_ms(one)


def test_expert_parallelism_reaches_target_and_draft() -> None:
    sliced, spread = (
        load_scenario("deepseek_v3_mtp", overrides=[f"target.enable_expert_parallel={is_spread}"])
        for is_spread in ("false", "true")
    )
    for deploy in (deploy_target, deploy_draft):
        before, after = deploy(sliced), deploy(spread)
        assert before is not None
        assert after is not None
        costs = [deployed.cost.steps(_positions(16)) for deployed in (before, after)]
        assert costs[0].communication_s[0] != costs[1].communication_s[0]
        assert costs[0].memory_s[0] == costs[1].memory_s[0]


def test_a_dense_draft_keeps_its_slices_beside_experts_that_are_spread() -> None:
    sliced, spread = (
        load_scenario("moe_mixtral", overrides=[f"target.enable_expert_parallel={is_spread}"])
        for is_spread in ("false", "true")
    )
    assert _draft_costs(sliced).duration_ps[0] == _draft_costs(spread).duration_ps[0]
    assert _tpot_ms(sliced) != _tpot_ms(spread)


def test_eager_launch_pays_its_all_reduces_in_target_and_draft() -> None:
    overrides = ["speculative_config.draft_tensor_parallel_size=4"]
    captured = load_scenario("llama70b_h100", overrides=overrides)
    eager = load_scenario("llama70b_h100", overrides=[*overrides, "target.enforce_eager=true"])
    for deploy, num_layers in ((deploy_target, 80), (deploy_draft, 16)):
        before, after = deploy(captured), deploy(eager)
        assert before is not None
        assert after is not None
        added_s = (
            after.cost.steps(_positions(1)).communication_s - before.cost.steps(_positions(1)).communication_s
        )
        assert added_s == pytest.approx([2 * num_layers * (21e-6 - 4.9e-6)])


def test_eager_launch_leaves_a_draft_on_one_device_as_it_is() -> None:
    captured = load_scenario("llama70b_h100")
    eager = load_scenario("llama70b_h100", overrides=["target.enforce_eager=true"])
    assert _draft_costs(captured).duration_ps[0] == _draft_costs(eager).duration_ps[0]


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("chat_8b", "target.enforce_eager=true", "enforce_eager: changes nothing on one device"),
        (
            "llama70b_h100",
            "target.enable_expert_parallel=true",
            "target.enable_expert_parallel: model 'llama-3.1-70b' has no experts to spread over devices",
        ),
    ],
)
def test_a_choice_that_would_change_nothing_is_refused(name: str, setting: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_scenario(name, overrides=[setting])
    assert message in str(caught.value)


def test_a_kind_that_cannot_tell_a_choice_apart_refuses_it() -> None:
    settings = ["target.tensor_parallel_size=2", "target.enforce_eager=true"]
    scenario = load_scenario("two_token_example", overrides=settings)
    with pytest.raises(ConfigError, match="'unit' of kind unit does not tell eager launch apart"):
        deploy_target(scenario)


def test_a_run_below_the_physical_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Impossible(UnitCosts):
        def steps(self, shape: StepShape) -> StepCosts:
            costs = super().steps(shape)
            costs.limit_s = 2e-12 * costs.duration_ps
            return costs

    scenario = load_scenario("two_token_example")
    monkeypatch.setattr(UnitProfile, "build", lambda *_: _Impossible(1e-3))
    with pytest.raises(DomainError, match=r"costs 0.001 s, below its physical limit of 0.002 s"):
        simulate(scenario)


def test_the_limit_of_a_token_is_that_of_its_drafts_and_verification_over_the_tokens_of_a_round() -> None:
    scenario = load_scenario(
        "chat_8b",
        overrides=[
            "workload={num_prompts: 1, max_concurrency: 1, prompt_tokens: 2048, output_tokens: 1500}",
            "show_estimated_energy=true",
        ],
    )
    result = simulate(scenario)
    speculation = result.summary()["speculation"]
    assert speculation is not None
    steps = result.steps.query("arm == 'speculation' and phase == 'decode'")
    tau = steps["num_emitted"].sum() / len(steps)
    # At the middle of the text: 4 draft passes and one verification of 5 positions.
    context = int(steps["context_tokens"].mean())
    one = np.array([1])

    def limits(positions: int, *, model: str) -> tuple[float, float, float]:
        deployed = deploy_target(scenario) if model == "target" else deploy_draft(scenario)
        assert deployed is not None
        shape = StepShape(
            one, one * positions, one * 0, one * positions, one * context, one * positions * context
        )
        costs = deployed.cost.steps(shape)
        return float(costs.limit_s[0]), float(costs.limit_j[0]), float(costs.device_limit_j[0])

    whole = 4 * np.array(limits(1, model="draft")) + np.array(limits(5, model="target"))
    found = [
        speculation["limit_ms_per_token"],
        speculation["limit_joules_per_token"],
        speculation["device_limit_joules_per_token"],
    ]
    assert found == pytest.approx((whole * [1e3, 1, 1] / tau).tolist(), rel=2e-3)
    assert found[2] < found[1]
