"""What a fit predicts is what a simulation costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate import Measurements
from calibrate.components import components_of
from calibrate.parameters import PARAMETERS, value_of
from calibrate.predict import Predictor
from specsim.hardware import RooflineProfile, load_model
from tests.calibrate.synthetic import h100, measured, true_profile

_ROWS = Measurements.of(
    device="made-up",
    models=[load_model("llama-3.1-8b"), load_model("mixtral-8x7b")],
    model=[0, 0, 1, 1, 0, 0],
    num_positions=[1, 8, 3, 64, 512, 7],
    num_sequences=[1, 4, 3, 16, 2, 1],
    context_tokens=[100, 4096, 30000, 77, 0, 900],
    phase=["decode", "verify", "decode", "verify", "prefill", "verify"],
    tensor_parallel_size=[1, 2, 1, 4, 1, 1],
    dtype=["bfloat16", "bfloat16", "bfloat16", "float8", "bfloat16", "int4"],
)


def _values(profile: RooflineProfile) -> dict[str, float | None]:
    found = {path: value_of(profile, path) for path in PARAMETERS if not path.startswith("power.clock.")}
    return {**found, "overhead.tile_fraction": profile.overhead.tile_fraction}


def _profile(**overhead: float) -> RooflineProfile:
    profile = true_profile()
    changed = profile.overhead.model_copy(update=overhead)
    return profile.model_copy(update={"overhead": changed, "weight_formats": {}})


@given(
    st.sampled_from([1, 64, 128]),
    st.floats(0.0, 1.0),
    st.floats(0.0, 30.0),
    st.floats(0.0, 2e-3),
)
def test_parts_add_up_to_the_cost_model(tile: int, share: float, passes: float, unpack_s: float) -> None:
    profile = _profile(tile_positions=tile, tile_fraction=share, activation_passes=passes, unpack_s=unpack_s)
    parts = components_of(_ROWS, profile, tile_positions=tile)
    assert parts.time(_values(profile)) == pytest.approx(Predictor(_ROWS)(profile).time_s, rel=1e-8)


def test_parts_add_up_under_a_power_cap() -> None:
    profile = _profile()
    assert profile.power is not None
    profile = profile.model_copy(update={"power": profile.power.model_copy(update={"cap_w": 300.0})})
    parts = components_of(_ROWS, profile, tile_positions=64)
    assert profile.power is not None
    found = parts.operate(
        _values(profile),
        profile.power.curve,
        bandwidth=profile.memory.bandwidth_bytes_per_s,
        peak=profile.peak("bfloat16"),
    )
    said = Predictor(_ROWS)(profile, with_power=True)
    assert (said.clock_fraction < 1).any()
    assert found.clock_fraction == pytest.approx(said.clock_fraction)
    assert found.energy_j / found.time_s * parts.num_devices == pytest.approx(said.power_w, rel=1e-8)


@pytest.mark.parametrize(
    "excludes",
    ["attention", "launch", "communication", "attention+launch", "communication+head+launch+linear"],
)
def test_parts_left_out_are_left_out_of_the_prediction(excludes: str) -> None:
    profile = _profile()
    rows = _ROWS.with_columns({"excludes": np.full(len(_ROWS), excludes)})
    parts = components_of(rows, profile, tile_positions=64)
    said = Predictor(rows)(profile).time_s
    whole = Predictor(_ROWS)(profile).time_s
    assert parts.time(_values(profile)) == pytest.approx(said, rel=1e-8)
    assert (said <= whole + 1e-12).all()
    assert (said < whole).any()


def test_attention_alone_is_the_cost_models_attention() -> None:
    profile = _profile()
    rows = _ROWS.with_columns({"excludes": np.full(len(_ROWS), "communication+head+launch+linear")})
    predictor = Predictor(rows)
    assert predictor(profile).time_s == pytest.approx(predictor.costs(profile).attention_s)


def test_a_power_cap_does_not_touch_times_without_power() -> None:
    rows = measured(h100(), seed=1)
    capped = rows.with_columns({"power_cap_w": np.full(len(rows), 100.0)})
    assert Predictor(capped)(h100()).time_s == pytest.approx(Predictor(rows)(h100()).time_s)
