"""``specsim run``: what it refuses, what stands for what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import exit_code


def test_empty_name_is_not_the_quickstart(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", "") == 2
    assert capsys.readouterr().err.startswith("no scenario ''")


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("hardware.target.memory.bandwidth_bytes_per_s=-1", "--set hardware.target.memory"),
        (
            "hardware.target=h100-smx",
            "--set hardware.target: hardware.target: no accelerator profile 'h100-smx'",
        ),
        ("workload.num_prompt=3", "unknown key (did you mean 'num_prompts'?)"),
        ("seed", "is not of the form path.to.key=value"),
    ],
)
def test_bad_setting_of_a_run_is_one_line(
    setting: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("run", "llama70b_h100", "--set", setting) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert place in line


def test_lookup_as_the_draft_of_a_scenario_takes_the_place_of_its_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code("run", "chat_8b", "--draft", "ngram", "--set", "workload.num_prompts=2", "--json") == 0
    config = json.loads(capsys.readouterr().out)["scenario"]["speculative_config"]
    assert (config["method"], config["model"]) == ("ngram", None)


def test_what_a_run_from_flags_lacks_is_told_with_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", "--target", "llama-3.1-8b", "--hardware", "h100-sxm") == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("command line: distributions: missing")
    assert first.endswith("; give --acceptance-rate")
    assert second.startswith("command line: speculative_config.model: missing")
    assert second.endswith("; give --draft")


def test_answer_is_shown_though_its_folder_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "run"
    assert exit_code("run", "two_token_example", "-o", str(folder)) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("VERDICT")
    assert captured.err == f"{folder}: cannot be written: File exists\n"
