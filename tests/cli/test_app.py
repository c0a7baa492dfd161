"""The command line: exit codes, and one line for every error."""

from __future__ import annotations

import pytest

from specsim.cli import app
from specsim.errors import CapacityError, ConfigError, DomainError, Fault, GateError
from tests.cli.command import exit_code


@pytest.mark.parametrize(
    "arguments", [("--help",), ("check", "--help"), ("list", "--help"), ("schema", "--help")]
)
def test_help_is_not_an_error(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*arguments) == 0
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
    assert exit_code(*arguments) == 2
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
    assert exit_code() == code
    assert capsys.readouterr().err.splitlines() == lines


def test_bug_of_ours_exits_70_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "app", _Raising(ZeroDivisionError("oops")))
    assert exit_code() == 70
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "specsim: internal error, a bug of ours: ZeroDivisionError: oops"
    assert "Traceback (most recent call last):" in lines


def test_lack_of_memory_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "app", _Raising(MemoryError("Unable to allocate")))
    assert exit_code() == 2
    assert capsys.readouterr().err == "specsim: out of memory; ask for fewer prompts, tokens or steps\n"
