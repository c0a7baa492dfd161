"""One small good file of every kind that an importer reads, and how it is spoilt."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pandas as pd

from calibrate import Defaults, write_trace

STATED = Defaults(device="a100", model="llama-3.1-8b")
NUM_ROWS = 20
"""Rows of a good table: one bad row in so many is dropped, not the file refused."""

CSV: Mapping[str, tuple[str, str]] = {
    "specsim": (
        "device,model,phase,positions,batch,ctx,t_gpu_us,energy_mj,window_s",
        "a100,llama-3.1-8b,verify,8,1,128,20000,5000,1",
    ),
    "vidur_layers": ("gpu,model,tp,num_tokens,layer_us", "A40,Llama-2-7b-hf,1,8,2000"),
    "vidur_attention": ("gpu,phase,batch_size,chunk,kv_cache,time_us", "A100,decode,8,0,8,2000"),
    "vidur_mlp": (
        "time_stats.input_layernorm.median,time_stats.attn_pre_proj.median,time_stats.attn_rope.median,"
        "time_stats.attn_post_proj.median,time_stats.post_attention_layernorm.median,"
        "time_stats.mlp_up_proj.median,time_stats.mlp_act.median,time_stats.mlp_down_proj.median,"
        "time_stats.add.median,n_embd,n_expanded_embd,num_tokens,num_tensor_parallel_workers",
        "0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,4096,14336,8,1",
    ),
    "vidur_attention_profile": (
        "time_stats.attn_prefill.median,time_stats.attn_decode.median,batch_size,prefill_chunk_size,"
        "kv_cache_size,is_prefill,num_tensor_parallel_workers,n_embd",
        "0.0,0.5,8,0,128,False,1,4096",
    ),
    "llmservingsim_steps": (
        "gpu,model,tp,num_tokens,layer_gemm_us,layer_other_us,lm_head_us,embed_norm_us,layers",
        "H100,Llama-3.1-8B,1,4,500,50,1400,20,32",
    ),
    "llmservingsim_attention": ("prefill_chunk,kv_prefill,n_decode,kv_decode,time_us", "0,0,8,8,2000"),
    "aiconfigurator_gemm": ("gpu,m,n,k,latency_us", "A100,8,8192,8192,2000"),
    "ml_energy": (
        "model_id,weight_precision,gpu_model,num_gpus,tensor_parallel,avg_batch_size,avg_output_len,"
        "median_itl_ms,avg_power_watts",
        "Qwen/Qwen3-8B,bfloat16,B200,1,1,16,700,6,700",
    ),
    "spec_forge": (
        "model,bench,batch_size,spec_steps,topk,output_tok_s,accept_length",
        "Llama-3.1-8B,gsm8k,1,3,1,400,2.5",
    ),
    "spec_bench": (
        "method,category,new_tokens,decoding_steps,wall_s,gamma_sum",
        "sps_68m,qa,90,40,1.2,210",
    ),
}
"""Columns and a row of each kind of CSV file."""

RANGE = "positions=4 batch=1 ctx=512 phase=verify"


def _event(category: str, name: str, begin_us: float, duration_us: float) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "ts": begin_us, "dur": duration_us}


JSON: Mapping[str, object] = {
    "llama_bench": [
        {
            "gpu_info": "RTX 3090",
            "model_type": "llama 8B F16",
            "model_n_params": 8030261248,
            "n_ubatch": 512,
            "n_prompt": 8,
            "n_gen": 0,
            "n_depth": 1024,
            "avg_ns": 40e6,
            "samples_ns": [39e6, 41e6],
        }
    ],
    "vllm_serve": {
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "duration": 2.0,
        "completed": 4,
        "request_throughput": 2.0,
        "input_lens": [100] * 4,
        "output_lens": [101] * 4,
        "itls": [[0.02] * 100] * 4,
        "spec_decode_num_drafts": 100,
        "spec_decode_num_draft_tokens": 300,
        "spec_decode_acceptance_length": 2.5,
    },
    "vllm_latency": {
        "avg_latency": 2.0,
        "latencies": [1.9, 2.1],
        "batch_size": 8,
        "input_len": 32,
        "output_len": 100,
    },
    "kineto": {
        "schemaVersion": 1,
        "deviceProperties": [{"name": "NVIDIA A100"}],
        "traceEvents": [
            _event("user_annotation", RANGE, 0, 9000),
            _event("gpu_user_annotation", RANGE, 1000, 8000),
            _event("kernel", "gemm", 1000, 3000),
            _event("kernel", "gemm", 5000, 4000),
        ],
    },
    "ml_energy": {
        "configurations": [
            {
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
        ]
    },
    "spec_bench_answers": {
        "question_id": 81,
        "category": "qa",
        "model_id": "vicuna-7b-sps",
        "choices": [
            {
                "index": 0,
                "decoding_steps": [3, 1],
                "new_tokens": [10, 2],
                "wall_time": [0.5, 0.1],
                "accept_lengths": [6, 3, 1, 2],
            }
        ],
    },
}
"""The document of each kind of JSON file; Spec-Bench's answers are one line of many."""

KINDS = tuple(dict.fromkeys([*CSV, *JSON, "nsys", "specsim"]))


def csv_text(kind: str, *, rows: int = NUM_ROWS) -> str:
    """Return a good CSV file."""
    names, row = CSV[kind]
    return "\n".join([names, *[row] * rows]) + "\n"


def write_good(folder: Path, kind: str) -> Path:
    """Write a good file of a kind: CSV where there is one, else JSON or SQLite."""
    if kind == "nsys":
        return _write_nsys(folder / "good.sqlite")
    path = folder / ("good.csv" if kind in CSV else f"good.json{'l' * (kind == 'spec_bench_answers')}")
    path.write_text(csv_text(kind) if kind in CSV else json.dumps(JSON[kind]), encoding="utf-8")
    return path


def write_own(folder: Path, ending: str) -> Path:
    """Write a good file in the project's own columns."""
    path = folder / f"own.{ending}"
    names, row = (line.split(",") for line in CSV["specsim"])
    table = pd.DataFrame([row] * NUM_ROWS, columns=names)
    numbers = names[3:]
    write_trace(path, table.astype(dict.fromkeys(numbers, float)), header={"source": "made up"})
    return path


def _write_nsys(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            f"""
            CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, globalTid INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, correlationId INT, globalTid INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, correlationId INT);
            INSERT INTO NVTX_EVENTS VALUES (0, 9000000, '{RANGE}', 1);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 1, 1);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000000, 8000000, 1);
            """
        )
        database.commit()
    return path
