"""Streams of the command line that are closed, full or narrow; each test is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("arguments", [("schema",), ("--help",), ("--version",)])
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
