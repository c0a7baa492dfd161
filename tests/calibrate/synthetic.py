"""Traces made from known figures: three models, verification, decoding and long contexts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrate import Measurements
from calibrate.parameters import with_values
from calibrate.predict import Predictor
from specsim.hardware import ModelSpec, RooflineProfile, load_model, load_profile
from specsim.hardware.roofline_figures import EfficiencyValue
from specsim.streams import Purpose, RandomStreams

FIGURES: Mapping[str, float] = {
    "efficiency.memory": 0.82,
    "efficiency.compute": 0.63,
    "overhead.step_s": 4e-4,
    "overhead.layer_s": 2.2e-5,
    "overhead.sequence_s": 2e-5,
    "overhead.smooth_exponent": 2.6,
    "overhead.activation_passes": 6.0,
    "attention.floor_s": 8e-6,
    "attention.bandwidth_efficiency": 0.6,
}
TILE = 64
MODELS = tuple(load_model(name) for name in ("llama-3.2-1b", "llama-3.1-8b", "qwen2.5-0.5b"))


def h100() -> RooflineProfile:
    """Return the datasheet profile that the made-up device is like."""
    profile = load_profile("h100-sxm.datasheet")
    assert isinstance(profile, RooflineProfile)
    return profile


def true_profile(figures: Mapping[str, float] = FIGURES, *, tile: int = TILE) -> RooflineProfile:
    """Return an H100 with known figures."""
    base = h100()
    attention = base.attention.model_copy(update={"bandwidth_efficiency": EfficiencyValue(value=0.5)})
    profile = with_values(base.model_copy(update={"attention": attention}), figures)
    overhead = profile.overhead.model_copy(update={"tile_positions": tile})
    return profile.model_copy(update={"overhead": overhead})


def cells(models: tuple[ModelSpec, ...] = MODELS) -> Measurements:
    """Return the cells: positions at batch 1, batches, and contexts."""
    rows = [
        (model, *cell)
        for model in range(len(models))
        for cell in (
            *((positions, 1, 0) for positions in (1, 2, 3, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512)),
            *((batch, batch, ctx) for batch in (1, 4, 16, 64) for ctx in (128, 1024, 4096)),
            *((8 * batch, batch, ctx) for batch in (1, 4, 16) for ctx in (1024, 8192)),
        )
    ]
    model, positions, sequences, context = np.array(rows).T
    return Measurements.of(
        device="made-up",
        models=models,
        model=model,
        num_positions=positions,
        num_sequences=sequences,
        context_tokens=context,
        phase=np.where(positions == sequences, "decode", "verify"),
        wall_s=1.0,
    )


def measured(
    profile: RooflineProfile,
    *,
    seed: int,
    noise: float = 0.02,
    outliers: float = 0.0,
    models: tuple[ModelSpec, ...] = MODELS,
) -> Measurements:
    """Return the cells as a device with this profile would be timed.

    ``noise`` is the relative spread; ``outliers`` the share of rows that are off by 20–170 % either way.
    """
    rows = cells(models)
    draw = RandomStreams(seed).generator(Purpose.BOOTSTRAP)
    error = draw.normal(0.0, noise, len(rows))
    is_off = draw.random(len(rows)) < outliers
    error += is_off * draw.choice([-1.0, 1.0], len(rows)) * draw.uniform(0.2, 1.0, len(rows))
    return rows.with_columns({"wall_s": Predictor(rows)(profile).time_s * np.exp(error)})
