"""``specsim calibrate`` from a trace file to a profile, a report and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrate import Measurements, RoundMeasurements, write_trace
from specsim.cli.app import main
from specsim.hardware import load_profile
from tests.calibrate.made_up_rounds import FIGURES, grid, made_up
from tests.calibrate.public_data import needs_data, rms, rtx_5090_rounds
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


def _write_cells(path: Path, **columns: object) -> Path:
    write_trace(path, pd.DataFrame(columns), header={})
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
    rounds = _write_cells(
        tmp_path / "rounds.csv",
        device="h100-sxm",
        k=[1, 3, 5],
        acceptance_length=1.0,
        tokens_per_s=[98, 91, 83],
    )
    cells = _write_cells(
        tmp_path / "cells.csv",
        k=[None, 2, None],
        positions=[4, None, 5000],
        ctx=[1000, None, 0],
        model=["llama-3.1-8b", None, "llama-3.1-8b"],
    )
    words = ("-o", profile, "--plot", picture, "--json", "--predict", cells)
    assert _run("calibrate", trace, rounds, *words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"]
    assert 0 < report["held_out"]["error"] < 0.1
    assert {part["name"] for part in report["held_out"]["by_phase"]} == {"decode", "verify"}
    inside, round_, outside = report["predictions"]
    assert (round_["k"], round_["power_w"], round_["is_outside"]) == (2.0, None, False)
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
    said = capsys.readouterr().out
    assert said.startswith("PASS  Held-out error of rounds of an unnamed target: tokens/s 0.0% rms")
    assert "6 + 0.4·K + 0·(K+1)·B ms, K 1–7" in said
    for option in ("-o", "--plot"):
        assert _run("calibrate", path, option, tmp_path / "x.yaml") == 2
        assert "there is no profile to fit" in capsys.readouterr().err


def test_rounds_that_no_line_in_depth_follows_are_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rounds.csv"
    table = pd.DataFrame({"k": [1, 3, 5, 7], "acceptance_length": 1.5, "tokens_per_s": [250, 240, 90, 200]})
    write_trace(path, table, header={"device": "h200-sxm"})
    assert _run("calibrate", path, "--json") == 1
    said = capsys.readouterr()
    assert "is above the threshold of 10.0%" in said.err
    verdict = json.loads(said.out)["round_verdicts"][""]
    assert not verdict["passed"]
    assert verdict["error"] > verdict["threshold"] == 0.1


def _write_rounds(path: Path, rounds: RoundMeasurements) -> Path:
    """Write rounds with watts, caps and clocks, as far as they have them."""
    columns = {
        "k": rounds.num_speculative_tokens,
        "acceptance_length": rounds.acceptance_length,
        "tokens_per_s": rounds.tokens_per_s,
        "mean_power_w": rounds.power_w,
        "power_cap_w": rounds.power_cap_w,
        "sm_mhz": rounds.sm_clock_hz / 1e6,
        "sm_lock_mhz": rounds.sm_lock_hz / 1e6,
        "mem_mhz": rounds.memory_clock_hz / 1e6,
    }
    write_trace(path, pd.DataFrame(columns), header={"device": str(rounds.device[0])})
    return path


def test_rounds_with_watts_give_their_law_under_caps_and_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ((420, None), (250, None), (420, 1200))
    path = _write_rounds(tmp_path / "rounds.csv", made_up(grid(depths=(0, 3, 6), settings=settings)))
    cells = _write_cells(
        tmp_path / "cells.csv", k=[3, 4, 9], power_cap_w=300, acceptance_length=[None, 3.0, 3.0]
    )
    cells.write_text(cells.read_text().replace("power_cap_w", "power_cap_w,lenght").replace("300", "300,1"))
    assert _run("calibrate", path, "--predict", cells, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rounds"][""]["depths"] == [3.0, 6.0]
    power = report["round_power"][""]
    figures = {one["path"]: one for one in power["figures"]}
    assert abs(figures["memory_s"]["value"] - FIGURES["memory_s"]) < 4 * figures["memory_s"]["standard_error"]
    assert {one["path"] for one in power["not_identified"]} >= {"host_s", "host_s_per_draft"}
    depths, caps = power["held_out"]
    assert (depths["left_out"], caps["left_out"], caps["kept"]) == ("k", "power_cap_w", [420.0])
    assert [one["value"] for one in depths["by_value"]] == [0.0, 3.0, 6.0]
    assert depths["power_w"]["rms"] < 0.05
    plain, with_tokens, outside = report["predictions"]
    assert plain["low"] < plain["t_gpu_us"] < plain["high"]
    assert (plain["tokens_per_s"], plain["energy_mj"], plain["outside"]) == (None, None, [])
    rate = 1e6 * 3.0 / with_tokens["t_gpu_us"]
    assert with_tokens["tokens_per_s"] == pytest.approx(rate)
    assert with_tokens["energy_mj"] == pytest.approx(1e3 * with_tokens["power_w"] / rate)
    assert (outside["is_outside"], outside["outside"]) == (True, ["k"])
    assert any("lenght: unknown column, not used" in one for one in report["warnings"])


def test_the_report_says_in_words_what_rounds_gave_and_what_cells_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ((420, None), (420, 1200))
    path = _write_rounds(tmp_path / "rounds.csv", made_up(grid(depths=(0, 3, 6), settings=settings)))
    cells = _write_cells(tmp_path / "cells.csv", k=[3, 9], power_cap_w=420)
    assert _run("calibrate", path, "--predict", cells) == 0
    said = capsys.readouterr().out
    assert "rounds of an unnamed target under caps: 6 rounds with watts, spread of times" in said
    assert "not told by these rounds: host_s, host_s_per_draft" in said
    assert "depth of 0, 3, 6 was not left out: the other rounds are too few" in said
    first, second = said.splitlines()[-2:]
    assert first.split()[:4] == ["2", "3", "1", "420"]
    assert "outside" not in first
    assert second.endswith("outside what was measured: k")


def test_rounds_are_not_predicted_by_steps(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = _write_cells(tmp_path / "cells.csv", k=[2])
    assert _run("calibrate", trace, "--predict", cells) == 2
    assert f"{cells}: holds rounds, but {trace} has no rounds to fit" in capsys.readouterr().err


def test_cells_that_rounds_cannot_answer_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one_depth = _write_cells(
        tmp_path / "one.csv", device="rtx-3090", k=[3, 3], acceptance_length=2.0, tokens_per_s=[90, 91]
    )
    steps = _write_cells(tmp_path / "steps.csv", positions=[4], ctx=[0], model="llama-3.1-8b")
    for cells, message in (
        (steps, f"{steps}: holds steps, but {one_depth} has no steps to fit"),
        (
            _write_cells(tmp_path / "round.csv", k=[3]),
            "the cost of a draft token needs rounds of at least two",
        ),
        (
            _write_cells(tmp_path / "other.csv", k=[3], device="h100"),
            "device: no rounds on 'h100' were measured",
        ),
        (tmp_path / "none.csv", "none.csv: no such file"),
    ):
        assert _run("calibrate", one_depth, "--predict", cells) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.splitlines()) == 1


@needs_data
@pytest.mark.verification
def test_an_rtx_5090_under_a_cap_left_out_is_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = rtx_5090_rounds()
    is_test = rounds.power_cap_w == 550.0
    test = rounds.take(is_test)
    path = _write_rounds(tmp_path / "rounds.csv", rounds.take(~is_test))
    cells = _write_cells(
        tmp_path / "cells.csv",
        k=test.num_speculative_tokens,
        power_cap_w=test.power_cap_w,
        acceptance_length=test.acceptance_length,
    )
    assert _run("calibrate", path, "--predict", cells, "--json") == 0
    found = pd.DataFrame(json.loads(capsys.readouterr().out)["predictions"])
    drafts = test.num_speculative_tokens > 0
    assert rms((found["tokens_per_s"].to_numpy() / test.tokens_per_s - 1)[drafts]) <= 0.04
    assert rms(found["power_w"].to_numpy() / test.power_w - 1) <= 0.03
    time_us = 1e6 * test.round_s
    assert ((found["low"] < time_us) & (time_us < found["high"])).mean() >= 0.8
    assert not found["is_outside"].any()


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
