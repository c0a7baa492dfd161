"""The command line: exit codes, one line for every error, and the light commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specsim.cli import app
from specsim.cli.app import main
from specsim.errors import CapacityError, ConfigError, DomainError, Fault, GateError

ROOT = Path(__file__).parents[2]


def _run(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


@pytest.mark.parametrize(
    "arguments", [("--help",), ("check", "--help"), ("list", "--help"), ("schema", "--help")]
)
def test_help_is_not_an_error(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(*arguments) == 0
    assert "Usage: specsim" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nosuch",), "nosuch"),
        (("list", "nosuch"), "nosuch"),
        (("list", "--nosuch"), "--nosuch"),
        (("check",), "files"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert message in line


class _Raising:
    """Stands in for the application: raises what a command would."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *_: object, **__: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (ConfigError("no such thing"), 2, ["no such thing"]),
        (
            ConfigError([Fault("a.yaml", 1, 2, "b", "wrong"), Fault("a.yaml", 3, 4, "c", "too")]),
            2,
            ["a.yaml:1:2: b: wrong", "a.yaml:3:4: c: too"],
        ),
        (DomainError("outside\nthe grid"), 2, ["specsim: outside the grid"]),
        (CapacityError("lacks 3 GB", lacking_bytes=3e9), 3, ["specsim: lacks 3 GB"]),
        (GateError("p99_ttft_ms"), 1, ["specsim: p99_ttft_ms"]),
        (KeyboardInterrupt(), 130, []),
    ],
)
def test_error_has_its_code_and_a_line_for_each_fault(
    error: BaseException,
    code: int,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(app, "app", _Raising(error))
    assert _run() == code
    assert capsys.readouterr().err.splitlines() == lines


def test_bug_of_ours_exits_70_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "app", _Raising(ZeroDivisionError("oops")))
    assert _run() == 70
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "specsim: internal error, a bug of ours: ZeroDivisionError: oops"
    assert "Traceback (most recent call last):" in lines


def test_reader_that_goes_away_is_no_error_to_read() -> None:
    code = "import sys, time\nfrom specsim.cli.app import main\nsys.stdin.read()\nmain(['schema'])"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


_COMMAND = [sys.executable, "-c", "from specsim.cli.app import main; main()"]


@pytest.mark.parametrize("arguments", [("list",), ("schema",), ("--help",), ("--version",)])
def test_full_device_is_one_line_and_no_bug_of_ours(arguments: tuple[str, ...]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*_COMMAND, *arguments], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == "specsim: the output cannot be written: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize(("arguments", "code"), [(("list",), 0), (("run", "nosuch"), 2)])
def test_streams_that_the_shell_has_closed_are_not_missed(arguments: tuple[str, ...], code: int) -> None:
    shell = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *_COMMAND, *arguments]
    assert subprocess.run(shell, cwd=ROOT, check=False).returncode == code


def test_characters_that_the_terminal_lacks_are_written_as_escapes() -> None:
    done = subprocess.run(
        [*_COMMAND, "check", "n\u00e9ant.yaml"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
        capture_output=True,
        check=False,
    )
    assert done.stderr == b"n\\xe9ant.yaml: no such file\n"
    assert done.returncode == 2


def test_text_of_a_file_neither_breaks_a_line_nor_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text('target: {model: "a\\e[31m\\rb\\nc"}\n')
    assert _run("check", str(tmp_path / "s.yaml")) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert r"no model 'a\x1b[31m\rb c'" in lines[-1]


def test_lack_of_memory_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "app", _Raising(MemoryError("Unable to allocate")))
    assert _run() == 2
    assert capsys.readouterr().err == "specsim: out of memory; ask for fewer prompts, tokens or steps\n"


def test_list_names_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == ["hardware", "models", "scenarios", "policies", "distributions", "verifiers"]
    assert {"h100-sxm", "ideal", "rtx-3090", "rtx-4090"} <= set(listed["hardware"])
    assert {"llama-3.1-8b", "llama-3.1-70b", "llama-3.2-1b", "smollm2-135m"} <= set(listed["models"])
    assert {"quickstart", "chat_8b", "two_token_example"} <= set(listed["scenarios"])
    assert {"fixed", "heuristic", "confidence"} <= set(listed["policies"])
    assert {"explicit", "rates", "trace"} <= set(listed["distributions"])
    assert "token" in listed["verifiers"]


def test_list_of_one_topic_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("list", "verifiers") == 0
    assert capsys.readouterr().out.startswith("verifiers: ")


@pytest.mark.parametrize("subject", ["scenario", "hardware", "model"])
def test_schema_is_written_as_it_is_printed(
    subject: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("schema", subject) == 0
    printed = capsys.readouterr().out
    assert _run("schema", subject, "-o", str(tmp_path / "schema.json")) == 0
    assert (tmp_path / "schema.json").read_text() == printed
    assert json.loads(printed)["$schema"].startswith("https://json-schema.org/")


def test_schema_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("schema", "-o", str(tmp_path)) == 2
    assert capsys.readouterr().err == f"{tmp_path}: cannot be written: Is a directory\n"


def _resolve(schema: dict[str, object], node: object) -> dict[str, object]:
    assert isinstance(node, dict)
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]  # type: ignore[index]
    return node


@pytest.mark.parametrize(
    ("block", "key"), [("target", "model"), ("hardware", "target"), ("hardware", "draft")]
)
def test_schema_of_a_scenario_takes_names(block: str, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    field = _resolve(schema, schema["properties"][block])["properties"][key]  # type: ignore[index]
    assert {"type": "string"} in field["anyOf"]


@pytest.mark.parametrize("folder", ["scenarios", "hardware_profiles", "specsim/hardware/presets"])
def test_every_shipped_file_passes_check(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(str(path) for path in (ROOT / folder).glob("*.yaml"))
    assert files
    assert _run("check", *files) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(files)


def test_check_prints_the_faults_of_all_files_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = ROOT / "hardware_profiles" / "h100-sxm.yaml"
    (tmp_path / "bad.yaml").write_text("name: x\nkind: roofline\nmemory: {bandwidth_bytes_per_s: -3}\n")
    (tmp_path / "worse.yaml").write_text("target: {model: no-such-model}\n")
    (tmp_path / "other.yaml").write_text("colour: red\n")
    files = [good, *(tmp_path / name for name in ("bad.yaml", "worse.yaml", "other.yaml", "missing.yaml"))]
    assert _run("check", *map(str, files)) == 2
    captured = capsys.readouterr()
    assert captured.out == f"{good}: OK, accelerator profile 'h100-sxm'\n"
    assert f"{tmp_path}/bad.yaml:3:33: memory.bandwidth_bytes_per_s: -3 is not allowed" in captured.err
    assert f"{tmp_path}/worse.yaml:1:17: target.model: no model 'no-such-model'" in captured.err
    assert f"{tmp_path}/other.yaml:1:1: is none of these, by its keys" in captured.err
    assert f"{tmp_path}/missing.yaml: no such file" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x89PNG\0",
        b"target: {model: *x}",
        b"target: !!python/object:os.system x",
        b"seed: .nan",
        b"seed: 1e400\ntarget: {}",
        b"target: &a [*a]",
        b"a: " + b"[" * 10_000,
        b"target: 1\ntarget: 2",
    ],
)
def test_bad_file_is_a_line_and_exit_2(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_bytes(content)
    assert _run("check", str(tmp_path / "s.yaml")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path}/s.yaml:")


_TOO_LARGE = """
name: too-large
target: {model: llama-3.1-70b}
hardware: {target: rtx-4090}
workload: {num_prompts: 1, max_concurrency: 1, prompt_tokens: 16, output_tokens: 16}
"""


def test_check_of_what_does_not_fit_the_memory_exits_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(_TOO_LARGE)
    assert _run("check", str(tmp_path / "s.yaml")) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert f"{tmp_path}/s.yaml: " in line
    assert "GB" in line


@pytest.mark.parametrize("kind", ["block", "recursive", "optimal"])
def test_check_refuses_a_rule_that_needs_more_than_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    (tmp_path / "s.yaml").write_text(
        "name: rates\n"
        "hardware: {target: {kind: unit, name: u, target_step_s: 1.0, draft_cost_ratio: 0.1}}\n"
        "distributions: {kind: rates, acceptance_rate: 0.5}\n"
        "speculative_config: {num_speculative_tokens: 2}\n"
        f"verifier: {{kind: {kind}}}\n"
        "workload: {num_prompts: 3, prompt_tokens: 5, output_tokens: 20, max_concurrency: 1}\n"
    )
    assert _run("check", str(tmp_path / "s.yaml")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}/s.yaml:5:11: verifier: " in line
    assert "use token" in line


def test_check_tells_of_every_file_which_one_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large, odd = tmp_path / "large.yaml", tmp_path / "odd.yaml"
    large.write_text(_TOO_LARGE)
    shape = "70b, tensor_parallel_size: 3}"
    odd.write_text(_TOO_LARGE.replace("rtx-4090", "h100-sxm").replace("70b}", shape))
    assert _run("check", str(large), str(odd), str(large)) == 2
    lines = capsys.readouterr().err.splitlines()
    files = [line.removeprefix("specsim: ").split(": ")[0] for line in lines]
    assert files == [str(large), str(large), str(odd)]
    assert _run("check", str(large), str(large)) == 3
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_check_shows_a_name_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text(_TOO_LARGE.replace("70b", "8b").replace("too-large", '"a\\nb\\e[31m"'))
    assert _run("check", str(tmp_path / "s.yaml")) == 0
    assert capsys.readouterr().out == f"{tmp_path}/s.yaml: OK, scenario 'a\\nb\\x1b[31m'\n"


def test_empty_name_is_not_the_quickstart(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("run", "") == 2
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
    assert _run("run", "llama70b_h100", "--set", setting) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert place in line


def test_lookup_as_the_draft_of_a_scenario_takes_the_place_of_its_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run("run", "chat_8b", "--draft", "ngram", "--set", "workload.num_prompts=2", "--json") == 0
    config = json.loads(capsys.readouterr().out)["scenario"]["speculative_config"]
    assert (config["method"], config["model"]) == ("ngram", None)


def test_what_a_run_from_flags_lacks_is_told_with_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("run", "--target", "llama-3.1-8b", "--hardware", "h100-sxm") == 2
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
    assert _run("run", "two_token_example", "-o", str(folder)) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("VERDICT")
    assert captured.err == f"{folder}: cannot be written: File exists\n"


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
    assert _run("list", *arguments) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) > 5
    assert captured.err == f"left out: {tmp_path}/broken.yaml:2:1: a: duplicate key; first given at 1:1\n"


def test_a_description_is_listed_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text("description: |\n  one\n  two\n")
    monkeypatch.setenv("SPECSIM_PATH", str(tmp_path))
    assert _run("list", "scenarios", "--json") == 0
    assert "mine" in json.loads(capsys.readouterr().out)["scenarios"]
    assert _run("list", "scenarios") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mine ")]
    assert line.endswith("one two")
