"""``specsim check``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import exit_code

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["scenarios", "hardware_profiles", "specsim/hardware/presets"])
def test_every_shipped_file_passes_check(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(str(path) for path in (ROOT / folder).glob("*.yaml"))
    assert files
    assert exit_code("check", *files) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(files)


def test_check_prints_the_faults_of_all_files_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = ROOT / "hardware_profiles" / "h100-sxm.yaml"
    (tmp_path / "bad.yaml").write_text("name: x\nkind: roofline\nmemory: {bandwidth_bytes_per_s: -3}\n")
    (tmp_path / "worse.yaml").write_text("target: {model: no-such-model}\n")
    (tmp_path / "other.yaml").write_text("colour: red\n")
    files = [good, *(tmp_path / name for name in ("bad.yaml", "worse.yaml", "other.yaml", "missing.yaml"))]
    assert exit_code("check", *map(str, files)) == 2
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
    assert exit_code("check", str(tmp_path / "s.yaml")) == 2
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
    assert exit_code("check", str(tmp_path / "s.yaml")) == 3
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
    assert exit_code("check", str(tmp_path / "s.yaml")) == 2
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
    assert exit_code("check", str(large), str(odd), str(large)) == 2
    lines = capsys.readouterr().err.splitlines()
    files = [line.removeprefix("specsim: ").split(": ")[0] for line in lines]
    assert files == [str(large), str(large), str(odd)]
    assert exit_code("check", str(large), str(large)) == 3
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_check_shows_a_name_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text(_TOO_LARGE.replace("70b", "8b").replace("too-large", '"a\\nb\\e[31m"'))
    assert exit_code("check", str(tmp_path / "s.yaml")) == 0
    assert capsys.readouterr().out == f"{tmp_path}/s.yaml: OK, scenario 'a\\nb\\x1b[31m'\n"


def test_text_of_a_file_neither_breaks_a_line_nor_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text('target: {model: "a\\e[31m\\rb\\nc"}\n')
    assert exit_code("check", str(tmp_path / "s.yaml")) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert r"no model 'a\x1b[31m\rb c'" in lines[-1]
