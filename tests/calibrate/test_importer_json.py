"""Importers of JSON and of profiles: what a record becomes, by hand."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from calibrate import Defaults, Trace, read_trace
from calibrate.importers import VllmLatency
from specsim.errors import ConfigError
from tests.calibrate.trace_files import JSON, STATED

(BENCH,) = cast("list[dict[str, object]]", JSON["llama_bench"])


def _read(folder: Path, document: object, defaults: Defaults = STATED) -> Trace:
    path = folder / "given.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return read_trace(path, defaults=defaults)


def _bench(**changed: object) -> dict[str, object]:
    return {"build_commit": "abc", **BENCH} | changed


def test_llama_bench_prompt_is_one_pass_over_its_depth(tmp_path: Path) -> None:
    steps = _read(tmp_path, [_bench()], Defaults()).steps
    assert steps is not None
    assert steps.wall_s.tolist() == pytest.approx([0.039, 0.041])
    assert steps.num_positions.tolist() == [8, 8]
    assert steps.context_tokens.tolist() == [1024, 1024]
    assert (steps.phase[0], steps.device[0], steps.dtype[0]) == ("prefill", "RTX 3090", "float16")


def test_llama_bench_generation_is_steps_of_one_at_the_mean_context(tmp_path: Path) -> None:
    steps = _read(tmp_path, [_bench(n_prompt=0, n_gen=128, samples_ns=[128 * 20e6])], Defaults()).steps
    assert steps is not None
    assert steps.wall_s.tolist() == pytest.approx([0.020])
    assert steps.context_tokens.tolist() == [1024 + 64]


def test_llama_bench_prompt_of_many_micro_batches_is_left_out(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_bench(), _bench(n_prompt=2048)], Defaults())
    assert trace.num_dropped == 2
    assert any("micro-batch" in str(warning) for warning in trace.warnings)


def test_llama_bench_model_of_another_size_than_stated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has 8.03e\+09 parameters, llama-3.2-1b"):
        _read(tmp_path, [_bench()], Defaults(model="llama-3.2-1b"))


def test_llama_bench_model_of_unknown_size_must_be_stated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no preset; state it"):
        _read(tmp_path, [_bench(model_n_params=5e9)], Defaults())


def test_llama_bench_mixed_format_is_warned_of(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_bench(model_type="llama 8B Q4_K - Medium")], Defaults())
    assert any("'Q4_K' is read as int4" in str(warning) for warning in trace.warnings)


def _served(**changed: object) -> dict[str, object]:
    return {
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "duration": 2.0,
        "completed": 4,
        "request_throughput": 2.0,
        "input_lens": [100] * 4,
        "output_lens": [101] * 4,
        "itls": [[0.02] * 100] * 4,
    } | changed


def test_vllm_serve_batch_is_that_of_littles_law(tmp_path: Path) -> None:
    steps = _read(tmp_path, _served(), Defaults(device="a100")).steps
    assert steps is not None
    assert steps.num_sequences.tolist() == [4]
    assert steps.wall_s.tolist() == pytest.approx([0.02])
    assert steps.context_tokens.tolist() == [150]


def test_vllm_serve_with_speculation_is_a_round_of_the_median_gap(tmp_path: Path) -> None:
    drafted = {
        "spec_decode_num_drafts": 100,
        "spec_decode_num_draft_tokens": 300,
        "spec_decode_acceptance_length": 2.5,
    }
    rounds = _read(tmp_path, _served(**drafted)).rounds
    assert rounds is not None
    assert rounds.num_speculative_tokens.tolist() == [3.0]
    assert rounds.round_s.tolist() == pytest.approx([0.02])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"itls": None}, "--save-detailed"),
        ({"itls": [[0.0], [-1.0]]}, "holds no positive time"),
        ({"itls": [[20000.0]]}, "are they seconds"),
        ({"duration": 0}, "zero or negative"),
        ({"duration": float("nan")}, "is not a finite number"),
    ],
)
def test_vllm_serve_without_usable_times_is_refused(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        _read(tmp_path, _served(**changed))


def test_vllm_latency_needs_the_batch_and_the_lengths(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="batch_size: not in the file"):
        _read(tmp_path, {"avg_latency": 1.0, "latencies": [1.0]})


def test_vllm_latency_is_the_mean_step(tmp_path: Path) -> None:
    path = tmp_path / "latency.json"
    path.write_text(json.dumps({"avg_latency": 2.0, "latencies": [1.9, 2.1], "percentiles": {}}))
    reader = VllmLatency(batch_size=8, input_len=32, output_len=100)
    steps = reader.read(path, defaults=STATED).steps
    assert steps is not None
    assert steps.wall_s.tolist() == pytest.approx([0.019, 0.021])
    assert (steps.num_positions[0], steps.context_tokens[0]) == (8, 82)


NAME = "positions=4 batch=1 ctx=512 phase=verify"


def _kineto(name: str = NAME) -> dict[str, object]:
    def event(category: str, label: str, begin_us: float, duration_us: float) -> dict[str, object]:
        return {"ph": "X", "cat": category, "name": label, "ts": begin_us, "dur": duration_us}

    return {
        "schemaVersion": 1,
        "deviceProperties": [{"name": "NVIDIA A100"}],
        "traceEvents": [
            event("user_annotation", name, 0, 9000),
            event("gpu_user_annotation", name, 1000, 8000),
            event("kernel", "gemm", 1000, 3000),
            event("kernel", "gemm", 5000, 4000),
            event("kernel", "gemm", 9500, 100),
        ],
    }


def test_kineto_step_runs_from_its_first_kernel_to_its_last(tmp_path: Path) -> None:
    steps = _read(tmp_path, _kineto(), Defaults(model="llama-3.1-8b")).steps
    assert steps is not None
    assert steps.gpu_s.tolist() == pytest.approx([8e-3])
    assert steps.wall_s.tolist() == pytest.approx([9e-3])
    assert (steps.device[0], steps.context_tokens[0], steps.phase[0]) == ("NVIDIA A100", 512, "verify")


def test_kineto_trace_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(_kineto()).encode()))
    assert read_trace(path, defaults=STATED).steps is not None


def test_kineto_trace_without_named_steps_says_how_to_name_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no range states its shape; name ranges"):
        _read(tmp_path, _kineto("forward"))


def test_vllm_annotation_gives_sequences_and_positions_and_warns_of_the_context(tmp_path: Path) -> None:
    trace = _read(tmp_path, _kineto("execute_context_0(0)_generation_2(8)"))
    assert trace.steps is not None
    assert (trace.steps.num_positions[0], trace.steps.num_sequences[0]) == (8, 2)
    assert any("without cached tokens" in str(warning) for warning in trace.warnings)


@pytest.mark.parametrize("is_graph", [False, True])
def test_nsys_step_holds_what_its_thread_launched(tmp_path: Path, is_graph: bool) -> None:
    path = tmp_path / "profile.sqlite"
    work = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE" if is_graph else "CUPTI_ACTIVITY_KIND_KERNEL"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            f"""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, textId INT, globalTid INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, correlationId INT, globalTid INT);
            CREATE TABLE {work} (start INT, end INT, correlationId INT);
            CREATE TABLE TARGET_INFO_GPU (name TEXT);
            INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H100');
            INSERT INTO StringIds VALUES (7, '{NAME}');
            INSERT INTO NVTX_EVENTS VALUES (0, 9000000, NULL, 7, 1);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 1, 1), (200, 2, 1),
                (300, 3, 2), (9000001, 4, 1);
            INSERT INTO {work} VALUES (1000000, 2000000, 1), (2000000, 8000000, 2),
                (0, 99000000, 3), (8000000, 99000000, 4);
            """
        )
        database.commit()
    steps = read_trace(path, defaults=Defaults(model="llama-3.1-8b")).steps
    assert steps is not None
    assert steps.gpu_s.tolist() == pytest.approx([7e-3])
    assert steps.wall_s.tolist() == pytest.approx([9e-3])
    assert steps.device.tolist() == ["NVIDIA H100"]


def test_ml_energy_leaderboard_json_reads_as_its_table(tmp_path: Path) -> None:
    record = {
        "model_id": "Qwen/Qwen3-8B",
        "weight_precision": "bfloat16",
        "gpu_model": "B200",
        "num_gpus": 1,
        "tensor_parallel": 1,
        "avg_batch_size": 16.01,
        "avg_output_len": 700.0,
        "median_itl_ms": 6.0,
        "avg_power_watts": 700.0,
    }
    steps = _read(tmp_path, {"configurations": [record]}, Defaults()).steps
    assert steps is not None
    assert (steps.num_positions[0], steps.power_w[0]) == (16, pytest.approx(700.0))
