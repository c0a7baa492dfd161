"""Columns in print: one line a row in a pipe, folded to the width of a terminal."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.report.columns import print_columns
from specsim.report.sweep_print import print_sweep
from specsim.sweep import SweepTable


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 24)))


def _printed(titles: list[str], rows: list[list[str]], stream: io.StringIO) -> list[str]:
    print_columns(titles, rows, stream)
    return stream.getvalue().splitlines()


_TITLES = ["point", *(f"column {number}" for number in range(12))]
_ROWS = [[str(row), *(f"{row}.{number}" for number in range(12))] for row in range(3)]


def test_a_pipe_gets_one_line_a_row() -> None:
    assert len(_printed(_TITLES, _ROWS, io.StringIO())) == 4


def test_a_terminal_gets_blocks_that_fit_each_with_the_first_column() -> None:
    lines = _printed(_TITLES, _ROWS, _Terminal())
    assert max(map(len, lines)) <= 40
    assert [line.split()[0] for line in lines if line].count("point") == lines.count("") + 1
    for number in range(12):
        assert sum(f"2.{number}" in line.split() for line in lines) == 1


def test_a_table_that_fits_is_the_same_in_both() -> None:
    few = _TITLES[:3], [row[:3] for row in _ROWS]
    assert _printed(*few, _Terminal()) == _printed(*few, io.StringIO())


def test_a_sentence_beside_a_name_stays_on_its_line() -> None:
    assert len(_printed(["", ""], [["name", "word " * 30]], _Terminal())) == 1


@given(widths=st.lists(st.integers(1, 60), min_size=3, max_size=30))
def test_no_cell_is_lost_and_only_one_too_wide_for_the_terminal_sticks_out(widths: list[int]) -> None:
    cells = [chr(ord("a") + number % 26) * width for number, width in enumerate(widths)]
    stream = _Terminal()
    lines = _printed(["t"] * len(widths), [cells], stream)
    for number, cell in enumerate(cells[1:], start=1):
        assert cell in " ".join(lines).split(), number
    for line in lines:
        assert len(line) <= 40 or len(line.split()) <= 2


def test_an_axis_with_one_value_is_said_once() -> None:
    columns = {
        "point": [0, 1],
        "replication": [0, 0],
        "status": ["ok", "ok"],
        "a.k": [1, 2],
        "a.fixed": [7, 7],
        "speedup.tpot": [1.5, 1.2],
        "verdict.pays": [True, True],
    }
    stream = io.StringIO()
    print_sweep(SweepTable(("a.k", "a.fixed"), columns, {}), stream)
    head = next(line for line in stream.getvalue().splitlines() if line.startswith("point"))
    assert head.split()[:3] == ["point", "k", "verdict"]
    assert "At every point: fixed=7." in stream.getvalue()
