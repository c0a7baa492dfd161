"""Public measurements, where they are at hand, and the cuts of them that targets are stated on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrate import Measurements, RoundMeasurements, read_trace, trace_of
from specsim.arrays import Floats
from specsim.hardware import RooflineProfile, load_profile

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="public measurements are not at hand")

SPARSE = (1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 256, 512)
"""Positions that a sparse trace holds."""


def datasheet(name: str) -> RooflineProfile:
    """Return a datasheet profile."""
    profile = load_profile(f"{name}.datasheet")
    assert isinstance(profile, RooflineProfile)
    return profile


def steps(file: str, device: str, *, most_positions: int = 512) -> Measurements:
    """Return the steps of one device of a file."""
    rows = read_trace(DATA / file).steps
    assert rows is not None
    return rows.take((rows.device == device) & (rows.num_positions <= most_positions))


def operator_steps(device: str, model: str, tensor_parallel_size: int) -> Measurements:
    """Return one curve of LLMServingSim's steps, up to 512 positions, output head included."""
    rows = steps("llmservingsim_steps/llmservingsim_steps.csv", device)
    names = np.array([one.name for one in rows.models])[rows.model]
    kept = (np.char.lower(names) == model) & (rows.tensor_parallel_size == tensor_parallel_size)
    return rows.take(kept & (np.char.find(rows.excludes, "head") < 0))


def mlenergy(device: str) -> Measurements:
    """Return ML.ENERGY v3's dense bfloat16 models on one GPU, without rows noted as launch-bound."""
    file = DATA / "mlenergy_v3" / "mlenergy_v3_llm.csv"
    rows = read_trace(file).steps
    assert rows is not None
    raw = pd.read_csv(file).iloc[rows.row - 2]
    kept = (rows.device == device) & (rows.dtype == "bfloat16") & (rows.tensor_parallel_size == 1)
    kept &= raw["architecture"].str.contains("Dense").to_numpy()
    if device == "B200":
        is_small = (raw["model_id"] == "meta-llama/Llama-3.1-8B-Instruct").to_numpy()
        kept &= (raw["task"] != "gpqa").to_numpy() & ~(is_small & (rows.num_sequences >= 128))
    return rows.take(kept)


def rtx_3090_rounds() -> RoundMeasurements:
    """Return thc1006's 27B rounds with the model's own heads: short contexts, K up to 7, one board."""
    raw = pd.read_csv(DATA / "thc1006_qwen38_rtx3090" / "rtx3090_energy.csv")
    kept = raw[
        (raw["model"] == "Qwen3.8-27B")
        & raw["method"].isin(["none", "draft-mtp"])
        & (raw["quantisation"] == "UD-Q4_K_XL")
        & (raw["k_max"] <= 7)
        & raw["p_min"].isna()
        & raw["context_filled_tokens"].isna()
        & raw["power_cap_w"].notna()
        & ~raw["row_id"].str.startswith("L")
    ]
    return _rounds(
        kept,
        {
            "k": "k_max",
            "acceptance_length": "mean_tokens_per_round",
            "tokens_per_s": "tok_s",
            "mean_power_w": "mean_power_w",
            "power_cap_w": "power_cap_w",
            "sm_mhz": "sm_clock_mean_mhz",
            "sm_lock_mhz": "sm_lock_mhz",
            "mem_mhz": "mem_clock_mhz",
        },
        "rtx-3090",
    )


def rtx_5090_rounds() -> RoundMeasurements:
    """Return sudoingX's rounds: caps by depth; power is the 95th percentile of one-second samples."""
    raw = pd.read_csv(DATA / "sudoingX_qwen38_mtp" / "rtx5090_cap_depth.csv")
    names = {
        "k": "k_max",
        "acceptance_length": "tokens_per_round_est",
        "tokens_per_s": "tok_s",
        "mean_power_w": "p95_power_w",
        "power_cap_w": "power_cap_w",
    }
    return _rounds(raw, names, "rtx-5090")


def rms(relative: Floats) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(np.square(relative))))


def _rounds(raw: pd.DataFrame, names: dict[str, str], device: str) -> RoundMeasurements:
    table = pd.DataFrame({ours: raw[theirs].to_numpy() for ours, theirs in names.items()})
    rounds = trace_of(table, file=device, header={"device": device}).rounds
    assert rounds is not None
    return rounds
