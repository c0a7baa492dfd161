"""Runs on disk that were cut short, mixed up or changed: the commands that read them say so in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import exit_code
from tests.sweep.small import SMALL

TABLES = ("requests.parquet", "prompts.parquet", "steps.parquet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, ``a`` and ``b``, of other scenarios."""
    base = tmp_path_factory.mktemp("runs")
    (base / "small.yaml").write_text(SMALL)
    for name, tokens in (("a", "2"), ("b", "3")):
        setting = f"speculative_config.num_speculative_tokens={tokens}"
        assert exit_code("run", str(base / "small.yaml"), "--set", setting, "-o", str(base / name)) == 0
    return base


def _cut(file: str) -> Callable[[Path], object]:
    return lambda run: (run / file).write_bytes((run / file).read_bytes()[: (run / file).stat().st_size // 2])


def _written(file: str, content: bytes) -> Callable[[Path], object]:
    return lambda run: (run / file).write_bytes(content)


def _gone(file: str) -> Callable[[Path], None]:
    return lambda run: (run / file).unlink()


def _of_another_run(file: str) -> Callable[[Path], object]:
    return lambda run: shutil.copy(run.parent / "b" / file, run / file)


def _set(value: object, *path: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        summary = at = json.loads((run / "summary.json").read_text("utf-8"))
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")

    return change


DAMAGES = {
    **{f"half of {file}": _cut(file) for file in ("summary.json", *TABLES)},
    **{f"nothing in {file}": _written(file, b"") for file in ("summary.json", *TABLES)},
    **{f"no {file}": _gone(file) for file in TABLES},
    **{f"{file} of another run": _of_another_run(file) for file in TABLES},
    "binary": _written("summary.json", bytes(range(256))),
    "nested without end": _written("summary.json", b"[" * 200_000),
    "a list": _written("summary.json", b"[]"),
    "another version": _set(1, "schema_version"),
    "arm that is a number": _set(3, "baseline"),
    "speed-up without its parts": _set({}, "speedup"),
    "speed-up that is a word": _set("fast", "speedup", "tpot"),
    "seed below zero": _set(-1, "seed"),
    "seed that is a word": _set("x", "seed"),
    "not a number": _set(float("nan"), "baseline", "mean_tpot_ms"),
    "scenario that is a list": _set([], "scenario"),
    "verdict that is a word": _set("pays", "verdict"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_run_is_refused_in_one_line(
    damage: Callable[[Path], None], runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / "a")
    reports = ("report", str(tmp_path / "a"), "-o", str(tmp_path / "report.html"))
    compares = ("compare", str(tmp_path / "b"), str(tmp_path / "a"), "--json")
    is_of_steps = damage in [DAMAGES[name] for name in DAMAGES if "steps.parquet" in name]
    for command in (reports,) if is_of_steps else (reports, compares):
        capsys.readouterr()
        assert exit_code(*command) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert str(tmp_path / "a") in captured.err
        assert captured.out == ""
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("damage", [_set({}, "scenario"), _set(5, "scenario", "workload")])
def test_a_report_of_a_scenario_that_is_none_is_refused_in_one_line(
    damage: Callable[[Path], None], runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / "a")
    capsys.readouterr()
    assert exit_code("report", str(tmp_path / "a")) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "damage",
    [
        _set({}, "scenario"),
        _set(5, "scenario", "workload"),
        _set({}, "provenance"),
        _set(5, "provenance", "versions"),
        _set(5, "provenance", "trace"),
        _set({}, "baseline"),
        _set(None, "speculation"),
        _set(None, "speedup"),
        _set([0.5], "baseline", "mean_tpot_ms"),
        _set(2**70, "seed"),
    ],
)
def test_a_summary_of_right_shape_and_wrong_content_is_no_bug_of_ours(
    damage: Callable[[Path], None], runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / "a")
    for pair, form in (("ba", "--json"), ("ab", "--markdown")):
        assert exit_code("compare", *(str(tmp_path / name) for name in pair), form) == 0
        assert capsys.readouterr().err == ""
