"""What ``specsim list`` prints of the catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specsim.config import names
from specsim.hardware import load_model, load_profile
from tests.cli.command import exit_code


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert exit_code("list", *arguments) == 0
    return capsys.readouterr().out


def test_devices_are_ranked_for_a_model_and_none_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(_printed(capsys, "hardware", "--compare", "--json"))
    assert (found["model"], found["dtype"], found["context_tokens"]) == ("llama-3.1-8b", "bfloat16", 2048)
    limits = [device["limit_s"] for device in found["devices"]]
    assert limits == sorted(limits)
    ranked = {device["name"] for device in found["devices"]}
    left_out = {name for devices in found["left_out"].values() for name in devices}
    assert ranked | left_out == set(names("hardware_profiles"))


def test_joules_from_guessed_watts_are_withheld_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    plain = json.loads(_printed(capsys, "hardware", "--compare", "--json"))["devices"]
    asked = json.loads(_printed(capsys, "hardware", "--compare", "--show-estimated-energy", "--json"))[
        "devices"
    ]
    for before, after in zip(plain, asked, strict=True):
        has_power = load_profile(before["name"]).has_power
        assert (after["token_j"] is not None) == has_power
        share = before["guessed_energy_fraction"]
        assert (before["token_j"] is not None) == (has_power and share <= 0.5)
    shares = {device["name"]: device["guessed_energy_fraction"] for device in plain}
    assert shares["rtx-3090"] == 0
    assert 0 < shares["h100-sxm"] < 0.5
    assert shares["t4"] == 1


def test_the_table_marks_guesses_and_what_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    table = _printed(capsys, "hardware", "--compare", "--show-estimated-energy").splitlines()
    (t4,) = [line for line in table if line.startswith("t4 ")]
    assert t4.endswith("does not fit")
    assert "~" in t4
    (withheld,) = [line for line in _printed(capsys, "hardware", "--compare").splitlines() if "t4 " in line]
    assert "withheld" in withheld


def test_the_table_tells_fitted_times_from_those_of_datasheets(capsys: pytest.CaptureFixture[str]) -> None:
    table = _printed(capsys, "hardware", "--compare")
    times = {line.split()[0]: line for line in table.splitlines()[3:] if line}
    assert "fitted, 5.9 % off" in times["h100-sxm"]
    assert "datasheet, 13.2 % off" in times["b200-sxm"]
    assert times["l4"].rstrip().endswith("datasheet")
    assert "times: fitted to measured runs or by the datasheet" in table


def test_a_smaller_format_and_a_longer_context_move_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    def limit_s(*arguments: str) -> float:
        devices = json.loads(_printed(capsys, "hardware", "--compare", "--json", *arguments))["devices"]
        return float(next(device["limit_s"] for device in devices if device["name"] == "a40"))

    assert limit_s("--dtype", "int8") < limit_s() < limit_s("--context", "32768")


def test_devices_that_lack_the_arithmetic_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    printed = _printed(capsys, "hardware", "--compare", "--dtype", "float32")
    (line,) = [line for line in printed.splitlines() if line.startswith("Left out")]
    assert line.startswith("Left out, since it has no float32 arithmetic: a100-sxm-40g, ")


def test_models_are_listed_with_their_size(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = json.loads(_printed(capsys, "models", "--long", "--json"))
    assert list(sizes) == list(names("models"))
    assert sizes["mixtral-8x7b"]["params_active"] == load_model("mixtral-8x7b").params_active
    (line,) = [line for line in _printed(capsys, "models", "--long").splitlines() if "mixtral" in line]
    assert line.split() == ["mixtral-8x7b", "46.703", "B", "12.880", "B", "32", "4096", "32000", "65536"]


def test_scenarios_are_listed_with_their_question(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _printed(capsys, "scenarios").splitlines()
    assert [line.split()[0] for line in lines] == list(names("scenarios"))
    assert all(len(line.split()) > 3 for line in lines)
    assert "Does a 1B draft pay for chat on one H100?" in "\n".join(lines)
    assert json.loads(_printed(capsys, "scenarios", "--json"))["scenarios"] == list(names("scenarios"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("models", "--compare"), "--compare ranks devices"),
        (("--compare",), "--compare ranks devices"),
        (("--long",), "--long describes one of hardware, models, scenarios, policies"),
        (("hardware", "--compare", "--dtype", "bf16"), "--dtype: 'bf16' is not allowed; known: float32"),
        (("hardware", "--compare", "--model", "llama-3.1-9b"), "did you mean 'llama-3.1-8b'"),
        (("hardware", "--compare", "--context", "-1"), "--context"),
    ],
)
def test_a_question_that_has_no_answer_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("list", *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("topic", ["policies", "distributions", "verifiers"])
def test_every_kind_is_described_by_a_sentence(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    described = json.loads(_printed(capsys, topic, "--long", "--json"))
    assert list(described) == json.loads(_printed(capsys, topic, "--json"))[topic]
    assert [text for text in described.values() if not text.endswith(".") or "``" in text] == []
    lines = _printed(capsys, topic, "--long").splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [list(item) for item in described.items()]


def test_list_names_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == ["hardware", "models", "scenarios", "policies", "distributions", "verifiers"]
    assert {"h100-sxm", "ideal", "rtx-3090", "rtx-4090"} <= set(listed["hardware"])
    assert {"llama-3.1-8b", "llama-3.1-70b", "llama-3.2-1b", "smollm2-135m"} <= set(listed["models"])
    assert {"quickstart", "chat_8b", "two_token_example"} <= set(listed["scenarios"])
    assert {"fixed", "heuristic", "confidence"} <= set(listed["policies"])
    assert {"explicit", "rates", "trace"} <= set(listed["distributions"])
    assert "token" in listed["verifiers"]


def test_list_of_one_topic_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("list", "verifiers") == 0
    assert capsys.readouterr().out.startswith("verifiers: ")


@pytest.mark.parametrize(
    "arguments", [("hardware", "--long"), ("hardware", "--compare"), ("scenarios",), ("models", "--long")]
)
def test_a_broken_file_on_the_search_path_is_left_out_of_lists_and_told(
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "broken.yaml").write_text("a: 1\na: 2\n")
    monkeypatch.setenv("SPECSIM_PATH", str(tmp_path))
    assert exit_code("list", *arguments) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) > 5
    assert captured.err == f"left out: {tmp_path}/broken.yaml:2:1: a: duplicate key; first given at 1:1\n"


def test_a_description_is_listed_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text("description: |\n  one\n  two\n")
    monkeypatch.setenv("SPECSIM_PATH", str(tmp_path))
    assert exit_code("list", "scenarios", "--json") == 0
    assert "mine" in json.loads(capsys.readouterr().out)["scenarios"]
    assert exit_code("list", "scenarios") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mine ")]
    assert line.endswith("one two")
