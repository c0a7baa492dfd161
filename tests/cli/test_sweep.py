"""``specsim sweep`` on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from specsim.cli import progress as progress_line
from specsim.cli import sweep as command
from specsim.sweep import Progress
from tests.cli.command import exit_code
from tests.sweep.small import SMALL


@pytest.fixture
def small(tmp_path: Path) -> str:
    """Return the path of a scenario that takes milliseconds."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


def _run(*arguments: str) -> int | str | None:
    return exit_code("sweep", *arguments)


def test_a_sweep_prints_a_headline_and_a_row_a_point(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(small, "--vary", "K=0..3", "-j", "1") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[0].startswith("Speculation pays in 3 of 4 runs. Largest speed-up per user ")
    assert lines[2].split()[:4] == ["point", "num_speculative_tokens", "verdict", "TPOT"]
    assert [line.split()[:3] for line in lines[4:7]] == [[str(k), str(k), "pays"] for k in (1, 2, 3)]


def test_json_is_the_whole_table(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(small, "--vary", "K=1,2", "-j", "1", "--json", "--replications", "2") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["columns"]["speculative_config.num_speculative_tokens"] == [1, 1, 2, 2]
    assert found["about"]["num_runs"] == 4


def test_failed_points_are_counted_on_stderr(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (small, "--vary", "distributions.acceptance_rate=0.5,7,8", "-j", "1")
    assert _run(*arguments) == 0
    captured = capsys.readouterr()
    assert "failed" in captured.out
    assert captured.err.splitlines()[0] == "specsim: 2 of 3 runs failed"
    assert _run(*arguments, "--strict") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing is varied"),
        (("--vary", "K"), "not of the form"),
        (("--vary", "Kx=1"), "unknown key"),
        (("--vary", "K=1", "--keep-runs"), "--keep-runs needs -o"),
        (("--vary", "K=1", "--until", "x"), "not of the form"),
        (("--vary", "K=1", "--design", "nosuch"), "nosuch"),
        (("--vary", "K=1,2", "--design", "sobol", "--samples", "3"), "power of two"),
        (("--vary", "K=1", "--set", "nosuch=1"), "unknown key"),
    ],
)
def test_bad_input_is_a_line_and_exits_2(
    small: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "sobol" in arguments:
        pytest.importorskip("SALib")
    assert _run(small, *arguments, "-j", "1") == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_a_folder_that_is_no_sweep_is_left_alone(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(small, "--vary", "K=1", "-o", str(tmp_path)) == 2
    assert "'small.yaml', which is no file of a sweep" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


def test_a_dry_run_prints_the_points_and_a_time(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (small, "--vary", "K=0..3", "--replications", "2", "-j", "2", "--dry-run")
    assert _run(*arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:5]] == [[str(k), str(k)] for k in range(4)]
    assert lines[-2] == "4 points, 8 runs."
    assert "on 2 workers" in lines[-1]
    assert _run(small, "--vary", "K=0..1", "-j", "1", "-o", str(tmp_path / "out")) == 0
    capsys.readouterr()
    assert _run(*arguments, "-o", str(tmp_path / "out")) == 0
    assert "4 points, 8 runs, 2 of them done." in capsys.readouterr().out


def test_break_even_is_printed_with_its_interval(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    rates = "distributions.acceptance_rate=0.01..0.9:lin:3"
    assert _run(small, "--vary", rates, "--set", "workload.num_prompts=20", "--break-even", "-j", "1") == 0
    out = capsys.readouterr().out
    assert "Where speedup.tpot crosses 1 along distributions.acceptance_rate" in out
    assert "above 1 on the upper side" in out


def test_a_tornado_is_printed_widest_first(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    vary = ("--vary", "K=2,3", "--vary", "hardware.target.draft_cost_ratio=0.05..0.9")
    assert _run(small, *vary, "--design", "tornado", "-j", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("What moves speedup.tpot from"))
    assert lines[at + 1].startswith("  hardware.target.draft_cost_ratio: 0.05: ")
    assert lines[at + 1].endswith("(turns the verdict)")
    assert lines[at + 2].startswith("  speculative_config.num_speculative_tokens: 2: ")


class _Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_with_the_time_left_goes_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress_line, "_QUIET_S", -1.0)
    with command._progress() as update:
        assert update is not None
        update(Progress(num_done=3, num_cases=12, num_failed=1, num_simulated=2))
    assert "3 of 12 runs, 1 failed, " in stream.getvalue()
    assert " left" in stream.getvalue()


def test_without_a_terminal_there_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with command._progress() as update:
        assert update is None
