"""Importers on curated public measurements, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate import Defaults, read_trace

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="public measurements are not at hand")

EXPECTED = {
    "vidur_dense_layers/vidur_dense_layers.csv": ("vidur_layers", 6288, 0, 6288),
    "vidur_attention_a100/attention_llama2_70b_tp2.csv": ("vidur_attention", 3457, 0, 3457),
    "llmservingsim_steps/llmservingsim_steps.csv": ("llmservingsim_steps", 4360, 0, 4360),
    "llmservingsim_steps/attention_llama31_8b_rtx4090.csv": ("llmservingsim_attention", 195, 0, 8643),
    "aiconfigurator_gemm/gemm_bf16.csv": ("aiconfigurator_gemm", 7453, 0, 14013),
    "aiconfigurator_gemm/gemm_fp8_h100_nvfp4_b200.csv": ("aiconfigurator_gemm", 1248, 0, 2560),
    "mlenergy_v3/mlenergy_v3_llm.csv": ("ml_energy", 222, 0, 545),
    "specforge_h200/specforge_h200.csv": ("spec_forge", 0, 169, 472),
    "specbench_vicuna7b/turns.csv": ("spec_bench", 0, 760, 1164),
}


@pytest.mark.parametrize("file", EXPECTED)
def test_every_row_is_read_or_counted(file: str) -> None:
    kind, num_steps, num_rounds, num_rows = EXPECTED[file]
    defaults = Defaults(device="rtx-4090", model="llama-3.1-8b") if kind.endswith("attention") else None
    if kind == "vidur_attention":
        defaults = None
    trace = read_trace(DATA / file, defaults=defaults)
    assert trace.num_rows == num_rows
    assert num_rows - trace.num_dropped == num_steps + num_rounds
    assert (len(trace.steps or ()), len(trace.rounds or ())) == (num_steps, num_rounds)


def test_step_sums_are_those_of_the_file() -> None:
    trace = read_trace(DATA / "llmservingsim_steps/llmservingsim_steps.csv")
    assert trace.steps is not None
    # The file's own sum of its first row, A6000 at one position; its columns are rounded to 0.01 µs.
    assert trace.steps.gpu_s[0] == pytest.approx(23372.16e-6, rel=1e-5)
