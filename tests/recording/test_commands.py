"""``specsim record`` and ``specsim trace``: files in, files out, one line for each fault."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from specsim.cli import record as record_command
from specsim.cli.app import main
from specsim.speculation.trace import Trace
from tests.strategies import random_trace

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")


def run(*arguments: str | Path) -> int | str | None:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return caught.value.code


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    random_trace(1, [8, 5, 9, 3]).save(tmp_path / "a.npz")
    return tmp_path / "a.npz"


@pytest.fixture
def words_file(tmp_path: Path) -> Path:
    path = tmp_path / "words.yaml"
    path.write_text(
        "name: words\ndomain: chat\nlanguage: en\nsource: the test\nprompts: [w1 w2 w1, w3 w4, w5]\n"
    )
    return path


@needs_torch
def test_record_writes_a_trace_a_draft_and_leaves_no_parts(
    model_folder: Path, words_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["record", model_folder, "--prompts", words_file, "--max-tokens", "9", "--threads", "1"]
    code = run(*arguments, "--draft", "lookup", "--draft", "exit:2", "-o", tmp_path / "{draft}.npz")
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    assert "3 prompts" in captured.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exit2.npz", "lookup.npz", "words.yaml"]
    lookup, exit_2 = Trace.load(tmp_path / "lookup.npz"), Trace.load(tmp_path / "exit2.npz")
    np.testing.assert_array_equal(lookup.token, exit_2.token)


@needs_torch
def test_record_takes_another_model_as_the_draft(
    model_folder: Path, other_folder: Path, words_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "a.npz"
    arguments = ["record", model_folder, "--prompts", words_file, "--max-tokens", "5", "--threads", "1"]
    assert run(*arguments, "--draft", other_folder, "--draft-temperature", "0.5", "-o", output) == 0
    header = Trace.load(output).header
    assert (header.draft, header.temperature, header.draft_temperature) == ("padded", 1.0, 0.5)


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draft", "lookup", "--draft", "exit:1"], "2 drafts need {draft} in the name"),
        (["--draft", "exit:x"], "needs a whole number"),
        (["--draft", "nosuch"], "neither lookup, exit:LAYERS, module:… nor a model on disk"),
        (["--draft", "exit:3"], "at most 2"),
        (["--draft", "lookup", "--temperature", "-1"], "temperature"),
        (["--draft", "lookup", "--top-p", "0"], "top_p"),
        (["--draft", "lookup", "--prompts", "nosuch"], "no prompt set 'nosuch'"),
        (["--draft", "lookup", "--prompt-lookup-min", "9"], "prompt_lookup_min"),
        (["--draft", "lookup", "-o", "nosuch/a.npz"], "no such folder"),
    ],
)
def test_faults_of_record_are_one_line_and_exit_2(
    model_folder: Path, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("record", model_folder, "-o", tmp_path / "a.npz", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_record_without_its_libraries_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record_command, "_LIBRARIES", ("no_such_library",))
    assert run("record", "model", "--draft", "lookup", "-o", "a.npz") == 2
    error = capsys.readouterr().err
    assert error == "recording needs no_such_library, not installed: pip install 'specsim-llm[models]'\n"


def test_info_shows_acceptance_by_domain(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("trace", "info", trace_file) == 0
    shown = capsys.readouterr().out
    assert "target: target-of-tests" in shown
    assert [line.split()[0] for line in shown.splitlines()[-3:]] == ["chat", "code", "all"]


def test_info_prints_json(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("trace", "info", trace_file, "--json", "-k", "2") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["header"]["temperature"] == 0.7
    assert [row["domain"] for row in shown["acceptance"]] == ["chat", "code", "all"]


def test_info_of_one_token_has_no_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random_trace(1, [1]).save(tmp_path / "a.npz")
    assert run("trace", "info", tmp_path / "a.npz") == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[-1] == "-"
    assert run("trace", "info", tmp_path / "a.npz", "--json") == 0


def test_check_names_the_fault_of_every_file(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = trace_file.with_name("cut.npz")
    cut.write_bytes(trace_file.read_bytes()[:-100])
    absent = trace_file.with_name("absent.npz")
    assert run("trace", "check", trace_file, cut, absent) == 2
    captured = capsys.readouterr()
    assert captured.out == f"{trace_file}: OK, 4 prompts, 25 tokens\n"
    assert [line.split(":")[0] for line in captured.err.splitlines()] == [str(cut), str(absent)]


def test_slices_merge_to_the_whole(trace_file: Path, tmp_path: Path) -> None:
    for domain in ("chat", "code"):
        assert run("trace", "slice", trace_file, "--domain", domain, "-o", tmp_path / f"{domain}.npz") == 0
    assert run("trace", "merge", tmp_path / "chat.npz", tmp_path / "code.npz", "-o", tmp_path / "b.npz") == 0
    whole, merged = Trace.load(trace_file), Trace.load(tmp_path / "b.npz")
    assert merged.domain.tolist() == ["chat", "chat", "code", "code"]
    assert sorted(merged.token.tolist()) == sorted(whole.token.tolist())


def test_slice_keeps_the_first_prompts(trace_file: Path, tmp_path: Path) -> None:
    assert (
        run("trace", "slice", trace_file, "--first", "1", "--language", "en", "-o", tmp_path / "b.npz") == 0
    )
    assert Trace.load(tmp_path / "b.npz").num_tokens == 8


def test_a_slice_of_nothing_is_refused(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("trace", "slice", trace_file, "--domain", "poetry", "-o", trace_file) == 2
    assert "domains: chat, code" in capsys.readouterr().err
