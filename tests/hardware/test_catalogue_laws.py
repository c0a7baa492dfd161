"""Laws that hold on every device of the catalogue: what grows costs no less, and what doubles halves."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.config import names
from specsim.hardware import Limit, ModelSpec, RooflineProfile, StepCosts, load_model, load_profile
from tests.hardware.shapes import decode

_LOADED = [load_profile(f"{name}.datasheet") for name in names("hardware_profiles")]
_PROFILES = [profile for profile in _LOADED if isinstance(profile, RooflineProfile)]
_MODELS = [load_model(name) for name in ("llama-3.2-1b", "llama-3.1-8b", "mixtral-8x7b", "gemma-2-2b")]

_profiles = st.sampled_from(_PROFILES)
_models = st.sampled_from(_MODELS)
_sequences = st.integers(1, 128)
_positions = st.integers(1, 32)
_context = st.integers(0, 30_000)


def _costs(profile: RooflineProfile, model: ModelSpec, **shape: Any) -> StepCosts:
    return profile.cost_model(model).steps(decode(**shape))


def _assert_no_less(few: StepCosts, many: StepCosts) -> None:
    # The clock under a cap is solved, to a relative error of this order.
    assert many.duration_ps[0] >= few.duration_ps[0] * (1 - 1e-7)
    assert many.energy_nj[0] >= few.energy_nj[0] * (1 - 1e-7)


@given(_profiles, _models, _sequences, _positions, _context, st.integers(1, 40))
def test_time_and_joules_never_fall_when_positions_grow(
    profile: RooflineProfile, model: ModelSpec, sequences: int, positions: int, context: int, more: int
) -> None:
    few = _costs(profile, model, sequences=sequences, positions=positions, context=context)
    many = _costs(profile, model, sequences=sequences, positions=positions + more, context=context)
    _assert_no_less(few, many)


@given(_profiles, _models, _sequences, _positions, _context, st.integers(1, 10_000))
def test_time_and_joules_never_fall_when_context_grows(
    profile: RooflineProfile, model: ModelSpec, sequences: int, positions: int, context: int, more: int
) -> None:
    few = _costs(profile, model, sequences=sequences, positions=positions, context=context)
    many = _costs(profile, model, sequences=sequences, positions=positions, context=context + more)
    _assert_no_less(few, many)


@given(_profiles, _sequences, _positions, _context)
def test_time_and_joules_never_fall_when_weights_take_more_bytes(
    profile: RooflineProfile, sequences: int, positions: int, context: int
) -> None:
    shape = decode(sequences=sequences, positions=positions, context=context)
    one_byte, two_bytes = (
        profile.cost_model(_MODELS[1], weight_dtype=dtype).steps(shape) for dtype in ("int8", "bfloat16")
    )
    assert two_bytes.bytes[0] > one_byte.bytes[0]
    assert two_bytes.flops[0] == one_byte.flops[0]
    _assert_no_less(one_byte, two_bytes)


@given(_profiles, _sequences, _positions, _context, st.integers(1, 64))
def test_time_and_joules_never_fall_when_a_model_has_more_to_read_and_compute(
    profile: RooflineProfile, sequences: int, positions: int, context: int, more: int
) -> None:
    small = _MODELS[0]
    large = small.model_copy(update={"intermediate_size": small.intermediate_size + 64 * more})
    shape = {"sequences": sequences, "positions": positions, "context": context}
    _assert_no_less(_costs(profile, small, **shape), _costs(profile, large, **shape))


@given(
    num_bytes=st.floats(0, 1e12),
    flops=st.floats(0, 1e16),
    more=st.floats(0, 1e12),
    more_flops=st.floats(0, 1e16),
)
def test_limits_never_fall_when_bytes_or_flops_grow(
    num_bytes: float, flops: float, more: float, more_flops: float
) -> None:
    h100 = Limit(
        bandwidth_bytes_per_s=3.35e12,
        peak_flops_per_s=989e12,
        energy_per_byte_j=140e-12,
        energy_per_flop_j=1e-12,
        idle_w=70.0,
    )
    few, many = (
        (np.array([num_bytes]), np.array([flops])),
        (np.array([num_bytes + more]), np.array([flops + more_flops])),
    )
    assert h100.time(*many) >= h100.time(*few)
    assert h100.energy(*many) >= h100.energy(*few)


@given(_profiles, _models, _sequences, _positions, _context)
def test_no_step_is_below_its_limit_and_the_chips_floor_is_below_that_of_the_board(
    profile: RooflineProfile, model: ModelSpec, sequences: int, positions: int, context: int
) -> None:
    costs = _costs(profile, model, sequences=sequences, positions=positions, context=context)
    assert costs.duration_ps[0] >= costs.limit_s[0] * 1e12 * (1 - 1e-9) - 1
    assert costs.energy_nj[0] >= costs.limit_j[0] * 1e9 * (1 - 1e-9) - 1
    assert (costs.device_limit_j[0] > 0) == (profile.device_energy is not None)
    assert costs.device_limit_j[0] <= costs.limit_j[0]


@given(_profiles, _models, _sequences, _positions, _context)
def test_the_cap_is_never_exceeded(
    profile: RooflineProfile, model: ModelSpec, sequences: int, positions: int, context: int
) -> None:
    costs = _costs(profile, model, sequences=sequences, positions=positions, context=context)
    if profile.power is not None:
        assert costs.energy_nj[0] * 1e-9 <= profile.power.cap_w * costs.duration_ps[0] * 1e-12 * (1 + 1e-9)


@given(_profiles, _models, _sequences, _positions)
def test_doubling_bandwidth_halves_memory_time_only(
    profile: RooflineProfile, model: ModelSpec, sequences: int, positions: int
) -> None:
    # No cache and no power: attention reads at a bandwidth of its own, and a cap slows what is faster.
    data = profile.model_dump(exclude_unset=True) | {"power": None}
    # Parallel positions follow the bandwidth; the peak is what stays.
    data.pop("parallel_positions", None)
    data["peak_flops_per_s"] = {profile.plain_dtype: profile.peak(profile.plain_dtype)}
    once = RooflineProfile.model_validate(data)
    data["memory"] = data["memory"] | {"bandwidth_bytes_per_s": 2 * profile.memory.bandwidth_bytes_per_s}
    twice = RooflineProfile.model_validate(data)
    shape = {"sequences": sequences, "positions": positions, "context": 0}
    slow, fast = _costs(once, model, **shape), _costs(twice, model, **shape)
    assert slow.memory_s == pytest.approx(2.0 * fast.memory_s, rel=1e-12)
    timed = {"memory_s", "attention_s", "duration_ps", "limit_s", "limit_j", "device_limit_j"}
    for name in {field.name for field in fields(StepCosts)} - timed:
        assert getattr(slow, name).tolist() == getattr(fast, name).tolist(), name
    assert fast.duration_ps[0] <= slow.duration_ps[0] <= 2 * fast.duration_ps[0] + 1
