"""Files that are wrong: every importer answers with one clear line, and nothing is dropped in silence."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from calibrate import Trace, importers, read_trace, trace_importers
from specsim.cli.app import main
from specsim.errors import ConfigError
from tests.calibrate.trace_files import CSV, JSON, KINDS, NUM_ROWS, STATED, csv_text, write_good, write_own

TEXT_KINDS = [kind for kind in KINDS if kind != "nsys"]
JSON_KINDS = [kind for kind in JSON if kind != "spec_bench_answers"]
TIME_OF = {
    "specsim": "t_gpu_us",
    "vidur_layers": "layer_us",
    "vidur_attention": "time_us",
    "vidur_mlp": "time_stats.mlp_up_proj.median",
    "vidur_attention_profile": "time_stats.attn_decode.median",
    "llmservingsim_steps": "layer_gemm_us",
    "llmservingsim_attention": "time_us",
    "aiconfigurator_gemm": "latency_us",
    "ml_energy": "median_itl_ms",
    "spec_forge": "output_tok_s",
    "spec_bench": "wall_s",
}
"""Column of each table without which a row says nothing."""


def _read(path: Path, kind: str) -> Trace | ConfigError:
    """Read a file, or return its refusal: one line a fault, each of which names the file."""
    try:
        trace = read_trace(path, defaults=STATED, importer=kind)
    except ConfigError as error:
        assert all(str(path) in str(fault) and "\n" not in str(fault) for fault in error.faults)  # noqa: PT017
        return error
    kept = len(trace.steps or ()) + len(trace.rounds or ())
    assert trace.num_rows - trace.num_dropped == kept
    assert bool(trace.num_dropped) <= bool(trace.warnings)
    return trace


def _refusal(path: Path, kind: str) -> str:
    answer = _read(path, kind)
    assert isinstance(answer, ConfigError)
    return str(answer)


def _with(kind: str, column: str, value: str) -> str:
    """Return a good table whose last row holds something else in one column."""
    names, row = (line.split(",") for line in CSV[kind])
    row[names.index(column)] = value
    return f"{csv_text(kind)}{','.join(row)}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_good_file_is_recognised_by_its_own_kind_alone_and_read_whole(tmp_path: Path, kind: str) -> None:
    path = write_good(tmp_path, kind)
    assert [one for one, spec in trace_importers if spec().recognises(path)] == [kind]  # type: ignore[attr-defined]
    trace = _read(path, kind)
    assert isinstance(trace, Trace)
    assert (trace.num_rows > 0, trace.num_dropped) == (True, 0)


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_mark_of_byte_order_and_windows_line_ends_change_nothing(tmp_path: Path, kind: str) -> None:
    path = write_good(tmp_path, kind)
    good = read_trace(path, defaults=STATED)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    again = read_trace(path, defaults=STATED)
    assert (again.num_rows, again.num_dropped, again.warnings) == (good.num_rows, 0, good.warnings)


SPOILT = {
    "empty": lambda good: b"",
    "blank": lambda good: b" \n\n\t",
    "binary": lambda good: bytes(range(256)) * 8,
    "two-byte text": lambda good: good.decode("latin-1").encode("utf-16"),
    "another tool's": lambda good: b"<html></html>\n" * 5,
    "one byte": lambda good: good[:1],
    "unpacked half way": lambda good: gzip.compress(good)[:40],
}


@pytest.mark.parametrize("fault", SPOILT)
@pytest.mark.parametrize("kind", KINDS)
def test_file_that_is_none_of_its_kind_is_refused(tmp_path: Path, kind: str, fault: str) -> None:
    path = write_good(tmp_path, kind)
    path.write_bytes(SPOILT[fault](path.read_bytes()))
    assert _refusal(path, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_file_is_refused_or_its_last_row_counted(tmp_path: Path, kind: str) -> None:
    path = write_good(tmp_path, kind)
    raw = path.read_bytes()
    cut = raw[: raw.rindex(b",")] if kind in CSV else raw[: len(raw) // 2]
    path.write_bytes(cut)
    answer = _read(path, kind)
    if kind in JSON and kind not in CSV:
        assert "the file is cut off" in str(answer)
    elif isinstance(answer, Trace):
        # Of the profiler's decode rows the last column is the model's width.
        assert answer.num_dropped == 1
        assert f"({NUM_ROWS + 1})" in str(answer.warnings[-1])


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_half_an_own_file_is_refused(tmp_path: Path, ending: str) -> None:
    path = write_own(tmp_path, ending)
    assert read_trace(path).num_dropped == 0
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2 + 3])
    assert "cut off" in _refusal(path, "specsim") or "not a Parquet file" in _refusal(path, "specsim")


@pytest.mark.parametrize("kind", KINDS)
def test_directory_is_refused(tmp_path: Path, kind: str) -> None:
    assert "is a directory, not a file" in _refusal(tmp_path, kind)


@pytest.mark.parametrize("kind", TIME_OF)
def test_column_that_stands_twice_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.csv"
    names = CSV[kind][0].split(",")
    path.write_text(csv_text(kind).replace(names[1], names[0], 1), encoding="utf-8")
    assert _refusal(path, kind) == f"{path}:1: {names[0]}: stands twice among the columns"


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("kind", TIME_OF)
def test_columns_that_no_comma_separates_are_refused(tmp_path: Path, kind: str, separator: str) -> None:
    path = tmp_path / "given.csv"
    path.write_text(csv_text(kind).replace(",", separator), encoding="utf-8")
    assert f"columns are separated by {separator!r}" in _refusal(path, kind)


@pytest.mark.parametrize("kind", TIME_OF)
def test_row_of_too_many_values_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.csv"
    path.write_text(f"{csv_text(kind)}{CSV[kind][1]},9,9\n", encoding="utf-8")
    count = len(CSV[kind][1].split(","))
    assert _refusal(path, kind) == f"{path}:{NUM_ROWS + 2}: has {count + 2} values; the columns are {count}"


@pytest.mark.parametrize("bad", ["-3", "nan", "inf", "1e400", "", "fast"])
@pytest.mark.parametrize("kind", TIME_OF)
def test_row_without_a_positive_finite_time_is_named(tmp_path: Path, kind: str, bad: str) -> None:
    path = tmp_path / "given.csv"
    path.write_text(_with(kind, TIME_OF[kind], bad), encoding="utf-8")
    trace = _read(path, kind)
    assert isinstance(trace, Trace)
    assert (trace.num_rows, trace.num_dropped) == (NUM_ROWS + 1, 1)
    line = NUM_ROWS + 2
    assert any(warning.line == line and f"({line})" in warning.message for warning in trace.warnings)


@pytest.mark.parametrize("kind", TIME_OF)
def test_table_of_bad_rows_only_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.csv"
    names, last = CSV[kind][0], _with(kind, TIME_OF[kind], "-1").splitlines()[-1]
    path.write_text(f"{names}\n{last}\n", encoding="utf-8")
    assert "can be used" in (said := _refusal(path, kind)) or "cannot be used" in said


@pytest.mark.parametrize("kind", TIME_OF)
def test_missing_column_is_named_with_the_nearest(tmp_path: Path, kind: str) -> None:
    # A step of ours may have either of two times; its positions it must have.
    column = "positions" if kind == "specsim" else TIME_OF[kind]
    path = tmp_path / "given.csv"
    path.write_text(csv_text(kind).replace(column, f"{column}2", 1), encoding="utf-8")
    assert f"{column}: " in (said := _refusal(path, kind))
    assert f"(did you mean '{column}2'?)" in said


@pytest.mark.parametrize("bad", ["", "x", "-1", "1e30", "true"])
@pytest.mark.parametrize("kind", TIME_OF)
def test_no_cell_breaks_a_table(tmp_path: Path, kind: str, bad: str) -> None:
    path = tmp_path / "given.csv"
    for column in CSV[kind][0].split(","):
        path.write_text(_with(kind, column, bad), encoding="utf-8")
        _read(path, kind)


def _places(document: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every value of a document, of lists to the first two."""
    yield place
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _places(value, (*place, key))
    elif isinstance(document, list):
        for index, value in enumerate(document[:2]):
            yield from _places(value, (*place, index))


def _spoilt(document: object, place: tuple[str | int, ...], value: object) -> object:
    if not place:
        return value
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return copy


JUNK = [None, "x", -1, float("nan"), 10**400, [], [None]]


@pytest.mark.parametrize("value", JUNK, ids=lambda value: repr(value)[:9])
@pytest.mark.parametrize("kind", JSON)
def test_no_value_breaks_a_document(tmp_path: Path, kind: str, value: object) -> None:
    path = tmp_path / f"given.json{'l' * (kind == 'spec_bench_answers')}"
    for place in _places(JSON[kind]):
        path.write_text(json.dumps(_spoilt(JSON[kind], place, value)), encoding="utf-8")
        _read(path, kind)


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_json_of_another_shape_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps("hello"), encoding="utf-8")
    assert "is not a" in _refusal(path, kind)


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_json_beyond_what_can_be_parsed_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    assert "nested too deeply" in _refusal(path, kind)
    path.write_text("9" * 5000, encoding="utf-8")
    assert "cannot be read as JSON" in _refusal(path, kind)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"k": 1, "k": 2}', "'k' stands twice"),
        ("[1]", "is not a JSON object"),
        ('{"t_gpu_us": ' + "9" * 5000 + "}", "cannot be read as JSON"),
    ],
)
def test_bad_line_of_json_lines_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write_own(tmp_path, "jsonl")
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    said = _refusal(path, "specsim")
    assert said.startswith(f"{path}:{NUM_ROWS + 2}: ")
    assert message in said


def test_truth_is_no_time(tmp_path: Path) -> None:
    path = write_own(tmp_path, "jsonl")
    path.write_text(path.read_text(encoding="utf-8").replace("20000.0", "true", 1), encoding="utf-8")
    trace = _read(path, "specsim")
    assert isinstance(trace, Trace)
    assert trace.num_dropped == 1
    assert "t_gpu_us: is not a finite number" in str(trace.warnings[0])


def test_gemm_time_in_another_unit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text(_with("aiconfigurator_gemm", "latency_us", "0.08"), encoding="utf-8")
    assert "is the time in µs" in _refusal(path, "aiconfigurator_gemm")


def test_time_in_nanoseconds_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text(csv_text("aiconfigurator_gemm").replace(",2000\n", ",8e7\n"), encoding="utf-8")
    assert any("not in ns" in str(warning) for warning in read_trace(path).warnings)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"\x93NUMPY\x01", "no trace importer"), (b"a,b\n1,2\n", "no trace importer")],
)
def test_file_of_no_known_kind_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "given.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        read_trace(path)


def test_sqlite_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE people (name TEXT)")
        database.commit()
    assert "holds no kernels" in _refusal(path, "nsys")


def test_sqlite_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.sqlite"
    path.write_bytes(b"SQLite format 3\x00" + b"\x10\x00" * 50)
    assert "cannot be read as an nsys export" in _refusal(path, "nsys")


def test_every_importer_is_entered_and_has_a_good_file() -> None:
    entered = {spec.__name__ for _, spec in trace_importers}
    assert set(importers.__all__) <= entered
    assert set(KINDS) == set(trace_importers.kinds())


@pytest.mark.parametrize("fault", ["two-byte text", "binary", "one byte"])
@pytest.mark.parametrize("kind", KINDS)
def test_command_line_says_one_line_and_exits_with_2(
    tmp_path: Path, kind: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_good(tmp_path, kind)
    path.write_bytes(SPOILT[fault](path.read_bytes()))
    words = ["calibrate", str(path), "--format", kind, "--device", "a100-sxm-80g", "--model", "llama-3.1-8b"]
    with pytest.raises(SystemExit) as raised:
        main(words)
    assert raised.value.code == 2
    said = capsys.readouterr().err
    assert str(path) in said
    assert len(said.splitlines()) == 1
