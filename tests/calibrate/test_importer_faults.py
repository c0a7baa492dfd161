"""Files that are wrong: every importer answers with one clear line, and nothing is dropped in silence."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from calibrate import Defaults, importers, read_trace, trace_importers
from specsim.errors import ConfigError

STATED = Defaults(device="a100", model="llama-3.1-8b")
TABLES = {
    "vidur_layers": "gpu,model,tp,num_tokens,layer_us\nA40,Llama-2-7b-hf,1,{},{}\n",
    "vidur_attention": "gpu,phase,batch_size,chunk,kv_cache,time_us\nA100,decode,{},0,8,{}\n",
    "llmservingsim_attention": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,{},8,{}\n",
    "aiconfigurator_gemm": "gpu,m,n,k,latency_us\nA100,{},8192,8192,{}\n",
    "spec_forge": (
        "model,bench,batch_size,spec_steps,topk,output_tok_s,accept_length\nLlama-3.1-8B,b,{},3,1,{},2.5\n"
    ),
    "spec_bench": ("method,category,new_tokens,decoding_steps,wall_s,gamma_sum\nsps,qa,{0},{0},{1},5\n"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_table_of_its_kind_is_recognised_by_it_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.csv"
    path.write_text(TABLES[kind].format(8, 20000), encoding="utf-8")
    assert [one for one, spec in trace_importers if spec().recognises(path)] == [kind]  # type: ignore[attr-defined]


@pytest.mark.parametrize("bad", ["0", "-3", "nan", "inf", "", "fast"])
@pytest.mark.parametrize("kind", TABLES)
def test_row_without_a_positive_finite_time_is_named(tmp_path: Path, kind: str, bad: str) -> None:
    path = tmp_path / "given.csv"
    header, row = TABLES[kind].format(8, 20000).splitlines()
    wrong = TABLES[kind].format(8, bad).splitlines()[1]
    path.write_text("\n".join([header, *[row] * 20, wrong]), encoding="utf-8")
    trace = read_trace(path, defaults=STATED, importer=kind)
    assert (trace.num_rows, trace.num_dropped) == (21, 1)
    assert any(warning.line == 22 and "(22)" in warning.message for warning in trace.warnings)


@pytest.mark.parametrize("kind", TABLES)
def test_table_of_bad_rows_only_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.csv"
    path.write_text(TABLES[kind].format(8, -1), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"rows can(not)? be used"):
        read_trace(path, defaults=STATED, importer=kind)


@pytest.mark.parametrize("kind", TABLES)
def test_missing_column_is_named_with_the_nearest(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.csv"
    header, row = TABLES[kind].format(8, 20000).splitlines()
    last = header.split(",")[-1]
    if kind == "spec_bench":  # its last column may be missing; the time may not
        last = "wall_s"
    path.write_text(f"{header.replace(last, last + '2')}\n{row}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{last}: no such column .did you mean '{last}2'"):
        read_trace(path, defaults=STATED, importer=kind)


def test_gemm_time_in_another_unit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text(TABLES["aiconfigurator_gemm"].format(8, 0.08), encoding="utf-8")
    with pytest.raises(ConfigError, match="is the time in µs"):
        read_trace(path)


def test_time_in_nanoseconds_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text(TABLES["aiconfigurator_gemm"].format(8, 80e6), encoding="utf-8")
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


JSON_KINDS = [
    kind for kind, spec in trace_importers if kind in ("llama_bench", "kineto", "vllm_serve", "vllm_latency")
]


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_truncated_json_is_called_cut_off(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.json"
    path.write_text('[{"avg_ns": 12, "samples_ns": [1, 2', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"is not JSON: .*the file is cut off"):
        read_trace(path, defaults=STATED, importer=kind)


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_json_of_another_shape_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps("hello"), encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a"):
        read_trace(path, defaults=STATED, importer=kind)


def test_sqlite_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE people (name TEXT)")
        database.commit()
    with pytest.raises(ConfigError, match="holds no kernels"):
        read_trace(path, defaults=STATED)


def test_sqlite_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.sqlite"
    path.write_bytes(b"SQLite format 3\x00" + b"\x10\x00" * 50)
    with pytest.raises(ConfigError, match="cannot be read as an nsys export"):
        read_trace(path, defaults=STATED)


def test_every_importer_is_entered() -> None:
    entered = {spec.__name__ for _, spec in trace_importers}
    assert set(importers.__all__) <= entered
