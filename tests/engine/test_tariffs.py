"""What a scenario's devices cost by the hour: how many they are, whose price counts, and its source."""

from __future__ import annotations

import math

import pytest

import specsim
from specsim.engine.prepare import prepare
from specsim.engine.tariffs import described, rents, tariffs
from specsim.errors import ConfigError
from specsim.results.tariff import Tariff
from specsim.scenario import load_scenario

SCENARIO = """\
target: {model: llama-3.1-8b, tensor_parallel_size: 4}
speculative_config: {model: llama-3.2-1b, num_speculative_tokens: 2, draft_tensor_parallel_size: 2}
distributions: {kind: rates, acceptance_rate: 0.7}
hardware: {target: h100-sxm, draft: target}
workload: {num_prompts: 2, max_concurrency: 1, prompt_tokens: 8, output_tokens: 8}
"""
OWN = "hardware.draft=l4"


def _tariffs(*settings: str) -> tuple[float, float]:
    prepared = prepare(load_scenario(SCENARIO, overrides=settings))
    found = tariffs(prepared.scenario, rents(prepared.scenario, prepared.target, prepared.draft))
    return found["baseline"].usd_per_hour, found["speculation"].usd_per_hour


def _described(*settings: str) -> str | None:
    prepared = prepare(load_scenario(SCENARIO, overrides=settings))
    return described(prepared.scenario, rents(prepared.scenario, prepared.target, prepared.draft))


@pytest.mark.parametrize(
    ("settings", "baseline", "speculation"),
    [
        ((), 4 * 3.5, 4 * 3.5),
        ((OWN,), 4 * 3.5, 4 * 3.5 + 2 * 0.6),
        ((OWN, "speculative_config.num_speculative_tokens=0"), 4 * 3.5, 4 * 3.5),
        (("cost.usd_per_hour=9",), 9.0, 9.0),
        ((OWN, "cost.usd_per_hour=9"), 9.0, 9.0 + 2 * 0.6),
        ((OWN, "cost={usd_per_hour: 9, draft_usd_per_hour: 1}"), 9.0, 10.0),
        (("cost.usd_per_hour=0",), 0.0, 0.0),
        (("cost.usd_per_kwh=0.3",), 4 * 3.5, 4 * 3.5),
        (("speculative_config={method: ngram, num_speculative_tokens: 2}",), 4 * 3.5, 4 * 3.5),
    ],
)
def test_all_devices_of_an_arm_are_paid_for(
    settings: tuple[str, ...], baseline: float, speculation: float
) -> None:
    assert _tariffs(*settings) == pytest.approx((baseline, speculation))


def test_a_device_without_a_price_leaves_the_arms_that_use_it_without() -> None:
    baseline, speculation = _tariffs(OWN, "hardware.draft.price=null")
    assert baseline == 14.0
    assert math.isnan(speculation)


def test_a_price_is_told_with_its_number_of_devices_and_its_source() -> None:
    profile = load_scenario(SCENARIO).hardware.target
    source = profile.source_of("price.usd_per_hour")
    assert source is not None
    assert _described() == f"4 {profile.name} at 3.5 USD/h ({source.source})"
    assert _described("cost={usd_per_hour: 9, usd_per_kwh: 0.3}") == (
        "9 USD/h (scenario) and 0.3 USD/kWh (scenario)"
    )
    assert _described("hardware.target.price=null") is None


@pytest.mark.parametrize(
    ("settings", "is_estimated"),
    [
        ((), False),
        ((OWN,), True),
        ((OWN, "cost.draft_usd_per_hour=1"), False),
        (("hardware.target=l4",), True),
        (("hardware.target=l4", "cost.usd_per_hour=2"), False),
        (("cost.usd_per_kwh=0.3",), True),
    ],
)
def test_a_guess_anywhere_in_the_price_is_marked(settings: tuple[str, ...], is_estimated: bool) -> None:
    # The l4's price is recalled, not looked up; the watts of the h100 are a guess, paid for by the kWh.
    result = specsim.simulate(load_scenario(SCENARIO, overrides=settings))
    assert result.provenance.price_is_estimated is is_estimated


def test_the_summary_of_a_scenario_has_its_cost() -> None:
    result = specsim.simulate(load_scenario(SCENARIO, overrides=["cost={usd_per_hour: 9, usd_per_kwh: 0.3}"]))
    assert result.tariffs == {"baseline": Tariff(9.0, 0.3), "speculation": Tariff(9.0, 0.3)}
    assert result.summary()["provenance"]["price"] == "9 USD/h (scenario) and 0.3 USD/kWh (scenario)"


def test_a_price_of_draft_devices_that_there_are_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cost\.draft_usd_per_hour: the draft has no devices of its own"):
        load_scenario(SCENARIO, overrides=["cost.draft_usd_per_hour=1"])


@pytest.mark.parametrize(
    "setting", ["usd_per_hour=-1", "usd_per_kwh=0", "usd_per_hour=1e300", "usd_per_hour=.nan"]
)
def test_a_price_that_makes_no_sense_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=r"cost\.usd_per"):
        load_scenario(SCENARIO, overrides=[f"cost.{setting}"])
