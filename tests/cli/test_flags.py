"""Flags that give keys of a scenario: what they set, and faults under the name that was typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import exit_code

SCENARIO = "two_token_example"


def test_short_names_work_wherever_a_key_is_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", SCENARIO, "--set", "K=1", "--json") == 0
    run = json.loads(capsys.readouterr().out)
    assert run["scenario"]["speculative_config"]["num_speculative_tokens"] == 1
    assert exit_code("sweep", SCENARIO, "--set", "K=1", "--vary", "seed=1,2", "-j", "1", "--json") == 0
    base = json.loads(capsys.readouterr().out)["about"]["base"]
    assert base["speculative_config"]["num_speculative_tokens"] == 1


def test_check_takes_settings_for_scenarios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(
        "hardware: {target: {kind: unit, name: u, target_step_s: 1.0, draft_cost_ratio: 0.1}}\n"
        "speculative_config: {num_speculative_tokens: 3}\n"
        "workload: {max_concurrency: 1, prompt_tokens: 8, output_tokens: 8}\n"
    )
    rates = "distributions={kind: rates, acceptance_rate: 0.5}"
    assert exit_code("check", str(file), "--set", rates, "--set", "K=2") == 0
    assert exit_code("check", str(file), "--set", rates, "--set", "K=-2") == 2
    assert "--set speculative_config.num_speculative_tokens" in capsys.readouterr().err


def test_check_refuses_settings_over_what_is_no_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "unit.yaml"
    file.write_text("{kind: unit, name: u, target_step_s: 1.0, draft_cost_ratio: 0.1}\n")
    assert exit_code("check", str(file), "--set", "K=2") == 2
    assert "--set changes scenarios" in capsys.readouterr().err


def test_concurrency_is_a_flag_of_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", SCENARIO, "--max-concurrency", "3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["scenario"]["workload"]["max_concurrency"] == 3


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (("--hardware", "h10-sxm"), "--hardware: hardware.target: no accelerator profile 'h10-sxm'"),
        (("--target", "lama"), "--target: target.model: no model 'lama'"),
        (("-k", "-1"), "-k: speculative_config.num_speculative_tokens: -1 is not allowed"),
        (("--max-concurrency", "0"), "--max-concurrency: workload.max_concurrency: 0 is not allowed"),
        (("--acceptance-rate", "2"), "--acceptance-rate: distributions.acceptance_rate: 2.0 is not"),
        (("--slo", "p99_tft_ms=3"), "--slo p99_tft_ms: slo.p99_tft_ms: unknown metric"),
        (("--slo", "p99_ttft_ms"), "--slo p99_ttft_ms: is not of the form METRIC=LIMIT"),
        (("--set", "seed=x"), "--set seed: seed: 'x' is not allowed"),
        (("--seed", "1", "--set", "seed=x"), "--set seed: seed: 'x' is not allowed"),
    ],
)
def test_a_fault_is_told_under_the_flag_that_was_typed(
    words: tuple[str, ...], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("run", SCENARIO, *words) == 2
    assert capsys.readouterr().err.startswith(start)
