"""Scenarios from data, settings over them, and what is said of those that are wrong."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import specsim
from specsim.config import from_data
from specsim.errors import ConfigError
from specsim.scenario import load_scenario

DATA = {
    "speculative_config": {"num_speculative_tokens": 3},
    "distributions": {"kind": "rates", "acceptance_rate": 0.7},
    "hardware": {"target": {"kind": "unit", "name": "unit", "target_step_s": 1.0, "draft_cost_ratio": 0.1}},
    "workload": {"num_prompts": 2, "max_concurrency": 1, "prompt_tokens": 8, "output_tokens": 8},
}


@pytest.mark.parametrize("name", ["K", "k", " K "])
def test_a_short_name_sets_the_key_that_it_stands_for(name: str) -> None:
    assert load_scenario("two_token_example", overrides=[f"{name}=2"]).num_speculative_tokens == 2


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("max_concurrency=2", "'workload.max_concurrency'"),
        ("num_speculative_token=2", "'speculative_config.num_speculative_tokens'"),
        ("workload.num_speculative_tokens=2", "'speculative_config.num_speculative_tokens'"),
        ("cap_w=300", "'hardware.target.power.cap_w' or 'hardware.draft.power.cap_w'"),
        ("wrkload=3", "'workload'"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_its_own(setting: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key \\(did you mean {meant}\\?\\)"):
        load_scenario("two_token_example", overrides=[setting])


def test_a_key_that_resembles_none_lists_those_beside_it() -> None:
    with pytest.raises(ConfigError, match=r"workload.xyz: unknown key \(allowed: burstiness, "):
        load_scenario("two_token_example", overrides=["workload.xyz=1"])


def test_an_unknown_objective_lists_what_a_limit_can_be_put_on() -> None:
    with pytest.raises(ConfigError) as caught:
        load_scenario("two_token_example", overrides=["slo.p95_latency=3"])
    (fault,) = caught.value.faults
    assert "{mean, median, std, p90, p99}_{ttft, tpot, itl, e2el}_ms, as in 'p99_ttft_ms: 200'" in str(fault)


def test_a_scenario_in_memory_is_the_one_in_a_file() -> None:
    assert specsim.simulate(DATA).scenario == load_scenario(DATA)
    assert load_scenario(DATA, overrides=["K=1"]).num_speculative_tokens == 1


def test_faults_of_data_in_memory_name_the_key_and_no_line() -> None:
    with pytest.raises(ConfigError) as caught:
        load_scenario(DATA | {"workload": {"num_prompt": 2, "max_concurrency": 0}})
    lines = [str(fault) for fault in caught.value.faults]
    assert lines[0] == (
        "scenario: workload.max_concurrency: 0 is not allowed; expected greater than or equal to 1"
    )
    assert lines[1] == "scenario: workload.num_prompt: unknown key (did you mean 'num_prompts'?)"


def test_data_may_hold_paths_tuples_and_infinity() -> None:
    data = {"path": Path("a") / "b", "rates": (0.5, 0.25), "workload": {"request_rate": math.inf}}
    found = from_data(data, name="scenario").data
    assert found == {"path": "a/b", "rates": [0.5, 0.25], "workload": {"request_rate": "inf"}}


@pytest.mark.parametrize("value", [math.nan, {1, 2}, object()])
def test_data_that_no_file_can_hold_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="scenario: holds what no file can"):
        load_scenario({"seed": value})


@pytest.mark.parametrize("overrides", ["K=2", {"K": 2}, {"K=2"}, [2], 3, None])
def test_overrides_that_are_no_list_of_texts_are_one_line(overrides: object) -> None:
    with pytest.raises(ConfigError, match=r"^overrides: .* is not a list of settings such as"):
        load_scenario("two_token_example", overrides=overrides)  # type: ignore[arg-type]


def test_settings_are_put_over_what_is_simulated() -> None:
    assert specsim.simulate(DATA, overrides=["K=1"]).num_speculative_tokens == 1
    with pytest.raises(ConfigError, match="overrides: this scenario is loaded already"):
        specsim.simulate(load_scenario(DATA), overrides=["K=1"])


def test_what_names_no_scenario_is_refused_by_its_type() -> None:
    with pytest.raises(ConfigError, match=r"a scenario is given by its name, path, .*, not by a int"):
        specsim.simulate(3)  # type: ignore[arg-type]
