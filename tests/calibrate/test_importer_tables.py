"""Importers of tables: what a row becomes, by hand, and what is left out is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrate import Defaults, Trace, read_trace
from calibrate.importers.aiconfigurator import linear_layer
from calibrate.importers.model_names import known_model
from calibrate.importers.spec_bench_answers import heuristic_lengths
from specsim.errors import ConfigError


def _read(folder: Path, text: str, name: str = "given.csv", **stated: str) -> Trace:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_trace(path, defaults=Defaults(**stated))  # type: ignore[arg-type]


VIDUR = "gpu,model,tp,num_tokens,n_embd,n_ff,n_head,layer_us\n"


def test_vidur_step_is_all_layers_of_the_published_model(tmp_path: Path) -> None:
    trace = _read(tmp_path, VIDUR + "A40,Llama-2-7b-hf,2,8,4096.0,11008.0,32.0,300\n")
    assert trace.steps is not None
    assert trace.steps.gpu_s.tolist() == pytest.approx([32 * 300e-6])
    assert trace.steps.num_positions.tolist() == [8]
    assert trace.steps.tensor_parallel_size.tolist() == [2]
    assert trace.steps.excludes.tolist() == ["attention+communication+head+launch"]


def test_vidur_row_of_another_shape_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = ["A40,Llama-2-7b-hf,1,8,4096,11008,32,300", "A40,Llama-2-7b-hf,1,8,4096,99,32,300"]
    trace = _read(tmp_path, VIDUR + "\n".join(rows))
    assert trace.steps is not None
    assert (len(trace.steps), trace.num_rows, trace.num_dropped) == (1, 2, 1)
    assert "left out 1 row (3)" in str(trace.warnings[0])


def test_vidur_attention_is_read_as_attention_alone(tmp_path: Path) -> None:
    header = "gpu,phase,batch_size,chunk,kv_cache,time_us\n"
    steps = _read(tmp_path, header + "A100,decode,4,0,1024,13\nA100,prefill_chunk,1,64,512,20\n").steps
    assert steps is not None
    assert steps.num_positions.tolist() == [4, 64]
    assert steps.num_sequences.tolist() == [4, 1]
    assert steps.gpu_s.tolist() == pytest.approx([80 * 13e-6, 80 * 20e-6])
    assert "linear" in steps.excludes[0]


def test_vidur_profiler_medians_are_milliseconds_with_two_residual_adds(tmp_path: Path) -> None:
    operators = (
        "input_layernorm",
        "attn_pre_proj",
        "attn_rope",
        "attn_post_proj",
        "post_attention_layernorm",
        "mlp_up_proj",
        "mlp_act",
        "mlp_down_proj",
        "add",
    )
    names = [f"time_stats.{name}.median" for name in operators]
    header = ",".join([*names, "n_embd,n_expanded_embd,num_tokens,num_tensor_parallel_workers"])
    row = ",".join(["0.01"] * 9) + ",4096,11008,16,1"
    steps = _read(tmp_path, f"{header}\n{row}\n", device="a100", model="llama-2-7b").steps
    assert steps is not None
    assert steps.gpu_s.tolist() == pytest.approx([32 * 10 * 0.01e-3])


def test_llmservingsim_step_without_head_says_so(tmp_path: Path) -> None:
    header = "gpu,model,tp,num_tokens,layer_gemm_us,layer_other_us,lm_head_us,embed_norm_us,layers,step_us\n"
    trace = _read(
        tmp_path,
        header + "H100,Llama-3.1-8B,1,4,500,50,1400,20,32,19020\nH100,Llama-3.1-8B,1,512,900,50,,20,32,\n",
    )
    assert trace.steps is not None
    assert trace.steps.gpu_s.tolist() == pytest.approx([19020e-6, (32 * 950 + 20) * 1e-6])
    assert trace.steps.excludes.tolist() == [
        "attention+communication+launch",
        "attention+communication+head+launch",
    ]
    assert "1 rows have no time of the output head" in str(trace.warnings[0])


def test_llmservingsim_mixed_steps_are_left_out_and_counted(tmp_path: Path) -> None:
    text = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,2,64,9.5\n16,0,2,64,12\n16,128,0,0,11\n"
    trace = _read(tmp_path, text, device="rtx-4090", model="llama-3.1-8b")
    assert trace.steps is not None
    assert trace.num_dropped == 1
    assert trace.steps.context_tokens.tolist() == [64, 128]
    assert trace.steps.num_sequences.tolist() == [2, 1]


@pytest.mark.parametrize(("height", "width"), [(2048, 8192), (4096, 4096), (65536, 2048), (6144, 5120)])
def test_linear_layer_has_its_weights_to_one_and_a_half_parts_in_its_height(height: int, width: int) -> None:
    model = linear_layer(height, width)
    assert abs(model.common_elements / (height * width) - 1.0) <= 1.5 / height


def test_gemm_whose_weights_fit_the_cache_is_left_out(tmp_path: Path) -> None:
    text = "gpu,m,n,k,latency_us\nA100-SXM4-80GB,8,8192,8192,80\nA100-SXM4-80GB,8,2048,8192,31\n"
    trace = _read(tmp_path, text)
    assert trace.steps is not None
    assert trace.steps.models[0].name == "gemm-8192x8192"
    assert trace.num_dropped == 1
    assert "L2 cache" in str(trace.warnings[0])


ML_ENERGY = (
    "model_id,weight_precision,gpu_model,num_gpus,tensor_parallel,expert_parallel,data_parallel,"
    "avg_batch_size,avg_output_len,median_itl_ms,avg_power_watts\n"
)


def test_ml_energy_record_is_a_decode_step_with_its_mean_power(tmp_path: Path) -> None:
    steps = _read(
        tmp_path, ML_ENERGY + "meta-llama/Llama-3.1-8B-Instruct,bfloat16,H100,1,1,1,1,7.99,600,9.5,486\n"
    ).steps
    assert steps is not None
    assert steps.wall_s.tolist() == pytest.approx([9.5e-3])
    assert steps.power_w.tolist() == pytest.approx([486.0])
    assert (steps.num_sequences[0], steps.context_tokens[0]) == (8, 300)


def test_ml_energy_experts_spread_over_devices_are_left_out(tmp_path: Path) -> None:
    good = "Qwen/Qwen3-8B,bfloat16,H100,1,1,1,1,8,600,9.5,486\n"
    spread = "Qwen/Qwen3-30B-A3B-Instruct-2507,bfloat16,H100,2,1,2,1,8,600,9.5,486\n"
    trace = _read(tmp_path, ML_ENERGY + good + spread)
    assert trace.num_dropped == 1
    assert "expert_parallel" in str(trace.warnings[0])


def test_spec_forge_tree_is_left_out_and_chain_is_a_round(tmp_path: Path) -> None:
    text = (
        "model,bench,batch_size,spec_steps,topk,output_tok_s,accept_length\n"
        "Llama-3.1-8B-Instruct,gsm8k,1,3,1,400,2.9\nLlama-3.1-8B-Instruct,gsm8k,1,3,4,420,3.1\n"
    )
    trace = _read(tmp_path, text)
    assert trace.rounds is not None
    assert trace.rounds.round_s.tolist() == pytest.approx([2.9 / 400])
    assert trace.num_dropped == 1


def test_spec_bench_turn_drafts_its_mean_length(tmp_path: Path) -> None:
    text = (
        "method,category,new_tokens,decoding_steps,wall_s,gamma_sum\n"
        "vanilla,qa,100,100,2.5,\nsps_68m,qa,90,40,1.2,210\nmedusa,qa,90,40,1.2,\n"
    )
    trace = _read(tmp_path, text)
    assert trace.rounds is not None
    assert trace.rounds.num_speculative_tokens.tolist() == pytest.approx([0.0, 5.25])
    assert trace.rounds.acceptance_length.tolist() == pytest.approx([1.0, 2.25])
    assert trace.num_dropped == 1


def test_heuristic_schedule_rises_by_two_and_falls_by_one() -> None:
    assert heuristic_lengths([6, 8, 1, 1, 1]) == [5, 7, 9, 8, 7]


def test_heuristic_schedule_that_accepts_more_than_it_drafts_is_refuted() -> None:
    assert heuristic_lengths([7]) is None


def _answer(model: str, lengths: str) -> str:
    return (
        f'{{"question_id": 81, "category": "qa", "model_id": "{model}", "choices": [{{"index": 0,'
        f' "decoding_steps": [3, 1], "new_tokens": [10, 2], "wall_time": [0.5, 0.1],'
        f' "accept_lengths": {lengths}}}]}}\n'
    )


def test_spec_bench_answers_tell_draft_lengths_of_each_turn_anew(tmp_path: Path) -> None:
    trace = _read(tmp_path, _answer("vicuna-7b-sps", "[6, 3, 1, 2]"), "answers.jsonl")
    assert trace.rounds is not None
    assert trace.rounds.num_speculative_tokens.tolist() == pytest.approx([6.0, 5.0])
    assert trace.rounds.tokens_per_s.tolist() == pytest.approx([20.0, 20.0])


def test_spec_bench_answers_of_a_tree_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="draft lengths of 'vicuna-7b-eagle' are not in the file"):
        _read(tmp_path, _answer("vicuna-7b-eagle", "[4, 3, 3, 2]"), "answers.jsonl")


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Qwen/Qwen3-14B", 14.8),
        ("google/gemma-3-12b-it", 11.8),  # the published 12.2 less the vision tower's 0.4
        ("google/gemma-3-27b-it", 27.0),
        ("Qwen-72B", 72.3),
        ("internlm-20b", 20.1),
        ("codellama/CodeLlama-34b-hf", 33.7),
        ("meta-llama/Llama-3.3-70B-Instruct", 70.6),
    ],
)
def test_known_shape_has_the_published_number_of_parameters(name: str, billions: float) -> None:
    model = known_model(name)
    assert model is not None
    assert round(model.params_total / 1e9, 1) == billions


@pytest.mark.parametrize("num_rows", [50_000, pytest.param(1_000_000, marks=pytest.mark.verification)])
def test_one_bad_row_among_very_many_is_named(tmp_path: Path, num_rows: int) -> None:
    path = tmp_path / "big.csv"
    row = "A40,Llama-2-7b-hf,1,8,4096,11008,32,300\n"
    path.write_text(VIDUR + row * (num_rows - 1) + row.replace("300", "nan"), encoding="utf-8")
    trace = read_trace(path)
    assert trace.steps is not None
    assert len(trace.steps) == num_rows - 1
    assert np.unique(trace.steps.gpu_s).size == 1
    assert f"left out 1 row ({num_rows + 1})" in str(trace.warnings[0])
