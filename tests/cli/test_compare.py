"""``specsim compare`` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from specsim.report.comparison_print import print_comparison, print_markdown
from specsim.sweep.changes import Change
from specsim.sweep.compare import Comparison, Delta
from tests.cli.command import exit_code
from tests.sweep.small import SMALL


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two runs and two sweeps of a small scenario and of one with a cheaper draft."""
    base = tmp_path_factory.mktemp("compare")
    scenario = base / "small.yaml"
    scenario.write_text(SMALL)
    found = {}
    for name, cost in (("a", "0.1"), ("b", "0.05")):
        setting = ("--set", f"hardware.target.draft_cost_ratio={cost}")
        assert exit_code("run", str(scenario), *setting, "-o", str(base / "runs" / name)) == 0
        vary = ("--vary", "K=1,2", "-j", "1", "-o", str(base / "sweeps" / name))
        assert exit_code("sweep", str(scenario), *setting, *vary) == 0
        found[f"run_{name}"] = str(base / "runs" / name)
        found[f"sweep_{name}"] = str(base / "sweeps" / name)
    return found


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_a_comparison_says_what_changed_and_by_how_much(
    kind: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("compare", folders[f"{kind}_a"], folders[f"{kind}_b"]) == 0
    out = capsys.readouterr().out
    assert "  hardware.target.draft_cost_ratio: 0.1 -> 0.05\n" in out
    (line,) = (line for line in out.splitlines() if line.startswith("speculation.mean_tpot_ms"))
    assert line.split()[3].startswith("-")
    assert "Speculation: " in out.splitlines()[1]
    assert (", paired" in out) is (kind == "run")


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_markdown_is_a_table_for_a_pull_request(
    kind: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("compare", folders[f"{kind}_a"], folders[f"{kind}_b"], "--markdown") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"### `{folders[f'{kind}_a']}` → `{folders[f'{kind}_b']}`"
    assert "| `hardware.target.draft_cost_ratio` | `0.1` | `0.05` |" in lines
    assert lines[2].startswith("Speculation: ")
    tables = [line for line in lines if line.startswith("| ")]
    assert {line.count("|") for line in tables} <= {4, 6, 8}


def test_json_has_every_metric(folders: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("compare", folders["run_a"], folders["run_b"], folders["run_a"], "--json") == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["after"] == folders["run_b"]
    assert "baseline.request_throughput" in {delta["metric"] for delta in first["deltas"]}
    assert second["changes"] == []


def test_a_gate_that_holds_exits_1(folders: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    pair = (folders["run_b"], folders["run_a"])
    assert exit_code("compare", *pair, "--fail-if", "p99_tpot_ms>+1%") == 1
    captured = capsys.readouterr()
    assert "FAILED  p99_tpot_ms>+1%: speculation.p99_tpot_ms went from" in captured.out
    assert captured.err.count("\n") == 1
    assert captured.out.endswith("\n0 of 1 gates passed\n")
    assert exit_code("compare", *pair, "--fail-if", "p99_tpot_ms>+50%", "--markdown") == 0
    assert "- ✅ 1 of 1 gates passed\n" in capsys.readouterr().out


def test_a_name_with_marks_of_markdown_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    changes = (Change("a|b", "x`y", None),)
    print_markdown(Comparison("a`b", "c", ("pays", "pays"), changes, (), None, "basis", 0, ()), sys.stdout)
    out = capsys.readouterr().out
    assert "### ``a`b`` → `c`\n" in out
    assert "| `a\\|b` | ``x`y`` | `(absent)` |\n" in out


def test_what_moves_by_less_than_is_shown_is_counted_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    deltas = tuple(
        Delta(f"speculation.{name}", 1.0, 1.0 + change, change, None, None)
        for name, change in (("mean_tpot_ms", 1e-9), ("mean_ttft_ms", -0.00011), ("p99_tpot_ms", 0.0))
    )
    print_comparison(Comparison("a", "b", ("pays", "pays"), (), deltas, None, "basis", 0, ()), sys.stdout)
    out = capsys.readouterr().out
    assert "2 of 3 metrics moved by less than 0.01%. basis.\n" in out
    assert "-0.01%" in out
    assert "0.00%" not in out


def test_figures_of_the_configuration_are_rounded_and_long_ones_cut_but_not_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = (
        Change("bandwidth", "3350000000000.0", "3123456789012.5"),
        Change("close", "1.00000001", "1.00000002"),
        Change("fit", "x" * 200, None),
    )
    print_markdown(Comparison("a", "b", ("pays", "pays"), changes, (), None, "basis", 0, ()), sys.stdout)
    out = capsys.readouterr().out
    assert "| `bandwidth` | `3.35e+12` | `3.12346e+12` |" in out
    assert "| `close` | `1.00000001` | `1.00000002` |" in out
    assert "(200 characters)" in out
    assert max(map(len, out.splitlines())) < 140


def test_profiles_that_are_not_known_alike_are_told_beside_the_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--set", "workload.num_prompts=2", "--set", "workload.output_tokens=8")
    for name in ("h100-sxm", "a100-sxm-80g", "rtx-5090", "l40s"):
        assert exit_code("run", "chat_8b", "--hardware", name, *few, "-o", str(tmp_path / name)) == 0
    capsys.readouterr()

    def told(*names: str) -> str:
        assert exit_code("compare", *(str(tmp_path / name) for name in names)) == 0
        return capsys.readouterr().out.partition("They leave out how far off step times are: ")[2]

    measured, usual = "h100-sxm's 5.9 % on measured runs", "rtx-5090's 10–30 %, as is usual of a datasheet"
    assert told("h100-sxm", "rtx-5090").startswith(f"{measured}; {usual}")
    assert told("h100-sxm", "a100-sxm-80g").startswith(f"{measured}; a100-sxm-80g's 4.9 % on measured runs.")
    assert told("l40s", "rtx-5090") == ""


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_what_only_one_side_knows_is_said_with_the_reason(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--set", "workload.num_prompts=2", "--set", "workload.output_tokens=8")
    vary = ("--vary", "K=1,2", "-j", "1") if kind == "sweep" else ()
    for name, device in (("known", "rtx-3090"), ("guessed", "l4.datasheet")):
        hardware = ("--set", f"hardware.target={device}", "--set", "workload.max_concurrency=1")
        words = ("chat_8b", *few, *hardware, "--set", "slo={}", *vary, "-o", str(tmp_path / name))
        assert exit_code(kind, *words) == 0
    folders = [str(tmp_path / name) for name in ("known", "guessed")]
    capsys.readouterr()
    for words in (folders, folders[::-1], [*folders, "--markdown"]):
        assert exit_code("compare", *words) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("No joules"))
        assert line.startswith(f"No joules are compared: {folders[1]} has none")
        assert kind == "sweep" or "100 % of its joules come from guessed watts" in line
    assert exit_code("compare", *folders, "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["one_sided"] == [line.removesuffix(".")]


def test_the_source_of_a_figure_that_a_flag_changed_is_no_change_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--set", "workload.num_prompts=2", "--set", "workload.output_tokens=8")
    for name, price in (("a", ()), ("b", ("--set", "hardware.target.price.usd_per_hour=9"))):
        assert exit_code("run", "chat_8b", *few, *price, "--set", "slo={}", "-o", str(tmp_path / name)) == 0
    capsys.readouterr()
    assert exit_code("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [change["key"] for change in found["changes"]] == ["hardware.target.price.usd_per_hour"]


def test_bad_input_is_a_line_and_exits_2(
    folders: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, message in (
        ((folders["run_a"],), "two folders or more"),
        ((folders["run_a"], str(tmp_path)), "neither a run"),
        ((folders["run_a"], folders["sweep_a"]), "cannot be compared with a sweep"),
        ((folders["run_a"], folders["run_b"], "--fail-if", "x=3"), "is not a condition"),
        ((folders["run_a"], folders["run_b"], "--fail-if", "nosuch>3"), "cannot be judged"),
    ):
        assert exit_code("compare", *arguments) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
