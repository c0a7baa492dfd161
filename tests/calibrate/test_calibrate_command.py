"""``specsim calibrate`` from a trace file to a profile, a report and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrate import Measurements, write_trace
from specsim.cli.app import main
from specsim.hardware import load_profile
from tests.calibrate.synthetic import measured, true_profile

EXAMPLE = Path(__file__).parents[2] / "calibrate" / "examples" / "rtx_pro_6000.csv"


def _write(path: Path, rows: Measurements) -> Path:
    names = np.array([one.name for one in rows.models])[rows.model]
    table = pd.DataFrame(
        {
            "model": names,
            "phase": rows.phase,
            "positions": rows.num_positions,
            "batch": rows.num_sequences,
            "ctx": rows.context_tokens,
            "t_wall_us": 1e6 * rows.wall_s,
        }
    )
    write_trace(path, table, header={"device": "h100-sxm", "source": "made up", "licence": "CC0-1.0"})
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = measured(true_profile(), seed=21)
    return _write(tmp_path_factory.mktemp("trace") / "trace.csv", rows.take(np.arange(0, len(rows), 2)))


def _run(*words: object) -> int:
    with pytest.raises(SystemExit) as raised:
        main([str(word) for word in words])
    return int(raised.value.code or 0)


def test_a_trace_becomes_a_profile_with_its_error_and_source(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile, picture = tmp_path / "own.yaml", tmp_path / "own.png"
    cells = tmp_path / "cells.csv"
    write_trace(
        cells,
        pd.DataFrame({"positions": [4, 5000], "batch": [1, 1], "ctx": [1000, 0]}),
        header={"device": "h100-sxm", "model": "llama-3.1-8b"},
    )
    assert _run("calibrate", trace, "-o", profile, "--plot", picture, "--json", "--predict", cells) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"]
    assert 0 < report["held_out"]["error"] < 0.1
    assert {part["name"] for part in report["held_out"]["by_phase"]} == {"decode", "verify"}
    inside, outside = report["predictions"]
    assert inside["low"] < inside["t_gpu_us"] < inside["high"]
    assert (inside["is_outside"], outside["is_outside"]) == (False, True)
    written = load_profile(str(profile))
    assert written.is_fitted
    assert written.held_out_error == pytest.approx(report["held_out"]["error"], rel=0.01)
    assert written.fitted is not None
    assert written.fitted.standard_errors
    text = profile.read_text()
    assert text.startswith("# source: made up\n# licence: CC0-1.0\n# held-out error: ")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_error_above_the_threshold_is_exit_code_1(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("calibrate", trace, "--threshold", "0.001") == 1
    said = capsys.readouterr()
    assert said.out.startswith("FAIL  Held-out error of step time")
    assert "is above the threshold of 0.1%" in said.err


def test_rounds_alone_are_fitted_and_give_no_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rounds.csv"
    depth = np.array([1, 3, 5, 7])
    table = pd.DataFrame(
        {
            "k": depth,
            "acceptance_length": 1 + depth / 2,
            "tokens_per_s": (1 + depth / 2) / (6e-3 + 4e-4 * depth),
        }
    )
    write_trace(path, table, header={"device": "h200-sxm"})
    assert _run("calibrate", path) == 0
    assert "6 + 0.4·K + 0·(K+1)·B ms, K 1–7" in capsys.readouterr().out
    assert _run("calibrate", path, "-o", tmp_path / "x.yaml") == 2
    assert "there is no profile to fit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "none.csv: no such file"),
        ([EXAMPLE, "--prior", "rtx-pro-600"], "no accelerator profile 'rtx-pro-600'; did you mean"),
        ([EXAMPLE, "--device", "h100-sxm"], "no rows of 'h100-sxm' (devices: rtx-pro-6000)"),
        ([EXAMPLE, "--format", "csv"], "no trace importer 'csv'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("calibrate", *words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


def test_a_fit_starts_from_a_roofline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit = tmp_path / "unit.yaml"
    unit.write_text("name: u\nkind: unit\ntarget_step_s: 0.01\ndraft_cost_ratio: 0.1\n", encoding="utf-8")
    assert _run("calibrate", EXAMPLE, "--prior", unit) == 2
    assert "is of kind unit; a fit starts from a roofline" in capsys.readouterr().err


def test_the_shipped_example_runs_and_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("calibrate", EXAMPLE) == 0
    said = capsys.readouterr().out
    assert said.startswith("PASS  Held-out error of step time")
    assert "176 rows, 0 dropped" in said


@pytest.mark.parametrize(
    ("command", "option", "other"),
    [("calibrate", "--threshold", "calibrate capture"), ("record", "--temperature", "record train-draft")],
)
def test_help_is_that_of_the_default_command_and_names_the_other(
    command: str, option: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(command, "--help") == 0
    said = capsys.readouterr().out
    assert option in said
    assert f"specsim {other}" in said


def test_without_a_trace_one_line_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("calibrate") == 2
    assert "traces" in capsys.readouterr().err
