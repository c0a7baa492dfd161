"""Checks across the blocks of a scenario, and how files and settings come together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specsim.config import parse
from specsim.errors import ConfigError
from specsim.results.writer import config_yaml
from specsim.scenario import Scenario, load_scenario, scenario_of

GOOD = """\
target: {model: llama-3.1-8b}
speculative_config: {model: llama-3.2-1b, num_speculative_tokens: 3}
distributions: {kind: rates, acceptance_rate: 0.7}
hardware: {target: h100-sxm}
workload: {num_prompts: 4, max_concurrency: 2, prompt_tokens: 8, output_tokens: 8}
"""
UNIT = "{kind: unit, name: unit, target_step_s: 1.0, draft_cost_ratio: 0.1}"


def faults(*overrides: str, text: str = GOOD) -> list[str]:
    """Return the faults of a scenario, one line each."""
    with pytest.raises(ConfigError) as caught:
        scenario_of(parse(text, file="my.yaml"), overrides=overrides)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("overrides", "path", "message"),
    [
        (["distributions=null"], "distributions", "there is no default acceptance"),
        (
            [
                "speculative_config.rejection_sample_method=synthetic",
                "speculative_config.synthetic_acceptance_length=2",
            ],
            "distributions",
            "one, not both",
        ),
        (
            ["speculative_config.rejection_sample_method=synthetic"],
            "speculative_config.rejection_sample_method",
            "needs one of",
        ),
        (
            ["speculative_config.synthetic_acceptance_length=2"],
            "speculative_config.synthetic_acceptance_length",
            "needs rejection_sample_method: synthetic",
        ),
        (
            ["verifier={kind: token}", "speculative_config.rejection_sample_method=standard"],
            "verifier",
            "excludes",
        ),
        (["speculative_config.model=null"], "speculative_config.model", "needs the shape of its draft"),
        (["speculative_config.method=ngram"], "speculative_config.model", "has no draft model"),
        (["target.model=null"], "target.model", "missing"),
        ([f"hardware.draft={UNIT}"], "hardware.draft", "both devices or none"),
        (["workload.output_tokens=null"], "workload.output_tokens", "only a recorded trace"),
        (
            ["speculative_config.parallel_drafting=true"],
            "speculative_config.parallel_drafting",
            "not simulate",
        ),
        (["slo={p99_tftt_ms: 5}"], "slo.p99_tftt_ms", "did you mean 'p99_ttft_ms'?"),
        (["workload.classes=[{name: a, share: 0.5}]"], "workload.classes", "must sum to 1"),
        (
            ["speculative_config.num_speculative_tokens=257"],
            "speculative_config.num_speculative_tokens",
            "256",
        ),
    ],
)
def test_fields_that_contradict_each_other_are_named(overrides: list[str], path: str, message: str) -> None:
    found = faults(*overrides)
    assert any(f": {path}: " in fault and message in fault for fault in found), found


def test_all_faults_of_a_file_come_at_once_names_that_stand_for_nothing_included() -> None:
    text = GOOD.replace("h100-sxm", "h100-smx").replace("num_speculative_tokens", "num_speculative_token")
    found = faults(text=text.replace("max_concurrency: 2", "max_concurrency: -2"))
    assert [fault.split(": ")[1] for fault in found] == [
        "speculative_config.num_speculative_tokens",
        "speculative_config.num_speculative_token",
        "hardware.target",
        "workload.max_concurrency",
    ]


def test_a_setting_changes_one_figure_of_a_profile_that_another_setting_names() -> None:
    spec = scenario_of(
        parse(GOOD), overrides=["hardware.target=rtx-4090", "hardware.target.memory.capacity_bytes=99 GB"]
    )
    assert spec.hardware.target.name.startswith("rtx-4090")
    assert spec.hardware.target.memory is not None
    assert spec.hardware.target.memory.capacity_bytes == 99e9


def test_synthetic_rates_are_those_of_the_speculative_config() -> None:
    spec = scenario_of(
        parse(GOOD),
        overrides=[
            "distributions=null",
            "speculative_config.rejection_sample_method=synthetic",
            "speculative_config.synthetic_acceptance_rates=[0.8, 0.6, 0.5]",
        ],
    )
    (only,) = spec.request_classes()
    assert only.distributions is not None
    assert only.distributions.model_dump()["synthetic_acceptance_rates"] == (0.8, 0.6, 0.5)


def test_a_class_takes_what_it_does_not_give_from_the_workload() -> None:
    classes = "[{name: code, share: 0.5, output_tokens: 99}, {name: chat, share: 0.5}]"
    spec = scenario_of(parse(GOOD), overrides=[f"workload.classes={classes}"])
    lengths = [entry.lengths for entry in spec.request_classes()]
    assert [one.output_tokens for one in lengths] == [99, 8]
    assert [one.prompt_tokens for one in lengths] == [8, 8]


def test_no_speculation_needs_no_distributions() -> None:
    spec = scenario_of(parse(GOOD), overrides=["speculative_config=null", "distributions=null"])
    assert spec.num_speculative_tokens == 0


def test_a_trace_beside_the_file_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.npz").write_bytes(b"")
    file = tmp_path / "my.yaml"
    file.write_text(GOOD.replace("{kind: rates, acceptance_rate: 0.7}", "{kind: trace, path: mine.npz}"))
    monkeypatch.chdir("/")
    assert load_scenario(file).trace_files() == (str(tmp_path / "mine.npz"),)


def test_a_scenario_survives_being_written_and_read() -> None:
    spec = scenario_of(parse(GOOD))
    assert Scenario.model_validate_json(spec.model_dump_json()) == spec


def test_check_across_blocks_points_at_the_name_of_a_profile_not_into_it() -> None:
    (fault,) = faults(f"hardware.target={UNIT}", "hardware.draft=ideal")
    assert fault.startswith("--set hardware.draft: hardware.draft: kind unit counts in target steps")
    (fault,) = faults(f"hardware.target={UNIT}", text=GOOD.replace("h100-sxm}", "ideal, draft: ideal}"))
    assert fault.startswith("my.yaml:4:34: hardware.draft: kind unit counts in target steps")


def test_name_that_stands_for_no_file_is_one_fault_among_the_others() -> None:
    found = faults("target.model=/", "hardware.target=5", "seed=-1")
    assert [fault.split(": ")[1] for fault in found] == ["hardware.target", "seed", "target.model"]
    assert found[-1].endswith("target.model: /: is a directory, not a file")


SYNTHETIC = ["distributions=null", "speculative_config.rejection_sample_method=synthetic"]
RATES = "speculative_config.synthetic_acceptance_rates"


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ([*SYNTHETIC, f"{RATES}=[.8, .6]"], f"{RATES}: 2 rates for num_speculative_tokens: 3"),
        ([*SYNTHETIC, f"{RATES}=[.6, .8, .9]"], f"{RATES}: 0.8 at position 1 is above 0.6 before it"),
        (
            [*SYNTHETIC, "speculative_config.synthetic_acceptance_length=4.5"],
            "speculative_config.synthetic_acceptance_length: 4.5 is more than num_speculative_tokens + 1, 4",
        ),
        (
            ["distributions={kind: rates, synthetic_acceptance_rates: [.8]}"],
            "distributions.synthetic_acceptance_rates: 1 rates for num_speculative_tokens: 3",
        ),
        (
            ["speculative_config.prompt_lookup_max=3"],
            "speculative_config.prompt_lookup_max: is a key of method ngram; the method is draft_model",
        ),
        (
            [
                "speculative_config={method: ngram, num_speculative_tokens: 3, prompt_lookup_max: 3}",
                "speculative_config.prompt_lookup_min=5",
            ],
            "speculative_config.prompt_lookup_min: 5 is more than prompt_lookup_max, 3",
        ),
        (
            ["speculative_config.draft_tensor_parallel_size=8"],
            "speculative_config.draft_tensor_parallel_size: 8 is more than the 1 of",
        ),
        (["workload.prompt_tokens_max=7"], "workload.prompt_tokens: 8 is outside"),
        (
            ["workload.classes=[{name: a, share: .5}, {name: b, share: .5, output_tokens_max: 7}]"],
            "workload.classes.1.output_tokens: 8 is outside [output_tokens_min, output_tokens_max] = [1, 7]",
        ),
        (["workload.classes=[{name: a, share: .5}]"], "workload.classes: the shares sum to 0.5"),
        (
            ["workload.classes=[{name: a, share: .5}, {name: a, share: .5}]"],
            "workload.classes.1.name: 'a' is taken",
        ),
        (["name=''"], "name: '' is not allowed; it should have at least 1 character"),
    ],
)
def test_fault_has_the_path_of_the_key_that_is_wrong(settings: list[str], fault: str) -> None:
    (found,) = faults(*settings)
    assert fault in found
    assert not found.startswith("my.yaml:1:1")


def test_a_draft_with_devices_of_its_own_may_have_more_of_them_than_the_target() -> None:
    overrides = ["speculative_config.draft_tensor_parallel_size=2", "hardware.draft=h100-sxm"]
    scenario = scenario_of(parse(GOOD), overrides=overrides)
    assert scenario.speculative_config is not None
    assert scenario.speculative_config.draft_tensor_parallel_size == 2


@pytest.mark.parametrize("spelled", [".inf", "inf"])
def test_infinite_rate_reads_back_from_what_a_run_writes(spelled: str) -> None:
    text = GOOD.replace("max_concurrency: 2", f"request_rate: {spelled}")
    scenario = scenario_of(parse(text))
    assert scenario.workload.request_rate == "inf"
    dump = scenario.model_dump(mode="json")
    assert scenario_of(parse(config_yaml(dump))) == scenario
    assert Scenario.model_validate_json(json.dumps(dump, allow_nan=False)) == scenario


@pytest.mark.parametrize(
    "key", ["distributions.acceptance_rate", "workload.num_prompts", "workload.burstiness"]
)
def test_infinity_elsewhere_is_refused(key: str) -> None:
    (fault,) = faults(f"{key}=.inf")
    assert fault.startswith(f"--set {key}: {key}: 'inf' is not allowed; expected a")
