"""The roofline law: time and energy of steps by their shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError, DomainError
from specsim.hardware import Accelerator, ModelSpec, RooflineProfile, StepShape, load_model, load_profile
from tests.hardware.shapes import decode, row, seconds

_H100 = load_profile("h100-sxm.datasheet")
_RTX_3090 = load_profile("rtx-3090.datasheet")
_LLAMA = load_model("llama-3.1-8b")
_SMALL = load_model("llama-3.2-1b")
_MIXTRAL = load_model("mixtral-8x7b")
_WINDOWED = load_model("gemma-2-2b")
_PROFILES = [_H100, _RTX_3090, load_profile("ideal"), load_profile("core-i9-13900k")]


def _profile(base: Accelerator = _H100, **changes: Any) -> RooflineProfile:
    """Return a profile with some keys changed, dotted paths written with two underscores."""
    data = base.model_dump(exclude_unset=True)
    for key, value in changes.items():
        *parents, last = key.split("__")
        at = data
        for parent in parents:
            at = at[parent]
        at[last] = value
    return RooflineProfile.model_validate(data)


def test_llama_8b_on_h100_is_limited_by_15_3_gb_and_4_56_ms() -> None:
    costs = _H100.cost_model(_LLAMA).steps(decode(context=2048))
    assert costs.bytes[0] == pytest.approx(15.3e9, rel=0.003)
    assert costs.limit_s[0] == pytest.approx(4.56e-3, rel=0.001)


def test_bytes_are_weights_without_embedding_and_cache_read_and_written() -> None:
    costs = _H100.cost_model(_LLAMA).steps(decode(context=2048))
    weights = _LLAMA.params_total - _LLAMA.embedding_elements
    assert costs.bytes[0] == 2 * weights + 2 * _LLAMA.kv_elements_per_token * (2048 + 1)


def test_h100_decode_steps_follow_measured_inter_token_latency() -> None:
    # ML.ENERGY leaderboard@0cd52da: Llama-3.1-8B on H100, vLLM, batch 8, 16, 32 and 64.
    costs = _H100.cost_model(_LLAMA).steps(decode(sequences=[8, 16, 32, 64], context=500))
    assert costs.duration_ps / 1e9 == pytest.approx([7.316, 7.912, 8.907, 11.500], rel=0.05)


def test_a_step_without_prompts_and_overheads_is_free_on_the_ideal_device_but_for_weights() -> None:
    ideal = load_profile("ideal").cost_model(_LLAMA)
    one, many = ideal.steps(decode(context=1)), ideal.steps(decode(sequences=4, positions=8, context=9000))
    assert seconds(one) == pytest.approx(2 * (_LLAMA.params_total - _LLAMA.embedding_elements) / 1e12)
    assert many.duration_ps.tolist() == one.duration_ps.tolist()


def test_prefill_is_free_where_it_is_neglected() -> None:
    ideal = load_profile("ideal").cost_model(_LLAMA)
    costs = ideal.steps(decode(positions=[512, 512], prefill=[512, 511]))
    assert costs.duration_ps[0] == costs.energy_nj[0] == costs.flops[0] == costs.bytes[0] == 0
    assert costs.duration_ps[1] == ideal.steps(decode()).duration_ps[0]


def test_a_pass_without_positions_costs_nothing() -> None:
    costs = _H100.cost_model(_LLAMA).steps(decode(sequences=[0, 1]))
    assert costs.duration_ps[0] == costs.energy_nj[0] == costs.limit_s[0] == 0
    assert costs.duration_ps[1] > 0


def test_a_profile_without_power_has_no_energy() -> None:
    profile = _profile(power=None)
    costs = profile.cost_model(_LLAMA).steps(decode())
    assert not profile.has_power
    assert costs.energy_nj.tolist() == [0]
    assert costs.limit_j.tolist() == [0.0]


def test_positions_are_computed_in_whole_tiles() -> None:
    cost = _profile(overhead__tile_positions=64).cost_model(_LLAMA)
    costs = cost.steps(decode(positions=[1, 64, 65], context=0))
    assert costs.compute_s[0] == costs.compute_s[1] < costs.compute_s[2]


def test_a_share_of_the_arithmetic_may_grow_with_every_position() -> None:
    shape = decode(positions=[1, 64], context=0)
    tiled, whole, half = (
        _profile(overhead__tile_positions=tile, overhead__tile_fraction=share).cost_model(_LLAMA).steps(shape)
        for tile, share in ((64, 1.0), (1, 1.0), (64, 0.5))
    )
    assert half.compute_s == pytest.approx((tiled.compute_s + whole.compute_s) / 2)


def test_activations_pass_through_memory_for_every_position_on_every_device() -> None:
    plain, moved = (
        _profile(overhead__activation_passes=passes, power=None)
        .cost_model(_LLAMA, tensor_parallel_size=2)
        .steps(decode(positions=[1, 8]))
        for passes in (0, 10)
    )
    one_s = 10 * 32 * (4096 + 14336 / 2) * 2 / (0.88 * 3.35e12)
    added_s = (moved.duration_ps - plain.duration_ps) * 1e-12
    assert added_s == pytest.approx(one_s * np.array([1, 8]), rel=1e-5)
    assert moved.bytes.tolist() == plain.bytes.tolist()


def test_the_output_head_is_read_only_for_logits() -> None:
    cost = _H100.cost_model(_LLAMA)
    with_logits, without = cost.steps(decode(positions=8)), cost.steps(decode(positions=8, prefill=8))
    assert with_logits.bytes[0] - without.bytes[0] == 2 * _LLAMA.head_elements
    assert with_logits.flops[0] - without.flops[0] == 8 * _LLAMA.flops_per_logit_position


def test_a_draft_pays_a_launch_and_not_the_hosts_work() -> None:
    shape = decode(sequences=32)
    target = _H100.cost_model(_SMALL, role="target").steps(shape)
    draft = _H100.cost_model(_SMALL, role="draft").steps(shape)
    host_s = 330e-6 + 32 * 63e-6
    assert seconds(target) - seconds(draft) == pytest.approx(host_s - 100e-6, rel=1e-6)


def test_four_bit_weights_are_less_to_read_and_cost_unpacking_that_positions_do_not_change() -> None:
    profile = _profile(overhead__unpack_s=5e-3)
    plain = profile.cost_model(_LLAMA).steps(decode(positions=[1, 8]))
    packed = profile.cost_model(_LLAMA, weight_dtype="int4").steps(decode(positions=[1, 8]))
    elements = _LLAMA.params_total - _LLAMA.embedding_elements
    assert plain.bytes[0] - packed.bytes[0] == pytest.approx((2 - 0.5625) * elements)
    assert packed.compute_s - plain.compute_s == pytest.approx([5e-3, 5e-3])


def test_a_format_may_have_kernels_of_its_own() -> None:
    own = {"int4": {"memory_efficiency": 0.44, "unpack_weights_per_s": 1e12}}
    cost = _profile(weight_formats=own).cost_model(_LLAMA, weight_dtype="int4")
    usual = _H100.cost_model(_LLAMA, weight_dtype="int4").steps(decode())
    costs = cost.steps(decode())
    elements = _LLAMA.params_total - _LLAMA.embedding_elements
    assert costs.memory_s == pytest.approx(2.0 * usual.memory_s)
    assert costs.compute_s - usual.compute_s == pytest.approx([elements / 1e12])


def test_rounds_of_a_four_bit_model_on_an_rtx_3090_follow_the_measured_ones_until_the_kernel_switch() -> None:
    # thc1006 (CC0): Qwen3.8-27B in 4 bits at 420 W: one step 24.06 ms; a round of 3 drafts 42.1 ms, of 7
    # 71.4 ms, its drafts 1.2 ms each and its verification the rest.
    # Its file takes 0.65 bytes a weight, int4 0.5625.
    profile = _profile(_RTX_3090, power__cap_w=420, overhead={}, attention={})
    model = _LLAMA.model_copy(update={"num_hidden_layers": 124})
    cost = profile.cost_model(model, weight_dtype="int4")
    costs = cost.steps(decode(positions=[1, 4, 8, 9], context=0))
    per_weight = costs.duration_ps[:3] / 1e9 / (model.params_total - model.embedding_elements) * 27e9
    assert per_weight == pytest.approx([24.06, 42.1 - 3 * 1.2, 71.4 - 7 * 1.2], rel=0.15)
    assert costs.duration_ps[3] < costs.duration_ps[2]


def test_arithmetic_is_plain_unless_another_is_asked_for() -> None:
    profile, shape = _profile(power=None), decode(positions=512)
    plain = profile.cost_model(_LLAMA, weight_dtype="float8").steps(shape)
    asked = profile.cost_model(_LLAMA, weight_dtype="float8", compute_dtype="float8").steps(shape)
    expected = (989e12 * 0.68) / (1978e12 * 0.56)
    assert asked.compute_s / plain.compute_s == pytest.approx([expected])


def test_arithmetic_that_the_device_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'h100-sxm' has no fp4 arithmetic .*bfloat16"):
        _H100.cost_model(_LLAMA, weight_dtype="fp4", compute_dtype="fp4")


def test_a_smaller_cache_format_halves_the_cache() -> None:
    shape = decode(sequences=64, context=8000)
    full = _H100.cost_model(_LLAMA).steps(shape).bytes[0]
    half = _H100.cost_model(_LLAMA, kv_dtype="float8").steps(shape).bytes[0]
    assert full - half == 64 * 8001 * _LLAMA.kv_elements_per_token


def test_cost_outside_the_checked_range_is_refused() -> None:
    cost = _profile(valid={"num_positions": [1, 4096], "context_tokens": [0, 131072]}).cost_model(_LLAMA)
    cost.steps(decode(sequences=64, positions=64, context=131072))
    with pytest.raises(DomainError, match=r"num_positions of 4097 is outside the checked range 1–4096"):
        cost.steps(decode(positions=[1, 4097]))
    with pytest.raises(DomainError, match="context_tokens of 131073"):
        cost.steps(decode(sequences=[1, 8], context=[0, 131073]))


def test_a_sliding_window_bounds_the_cache_read() -> None:
    assert _WINDOWED.sliding_window is not None
    cost = _H100.cost_model(_WINDOWED)
    costs = cost.steps(decode(context=[1000, 2000, 100_000, 101_000]))
    growth = np.diff(costs.bytes)
    assert growth[2] == pytest.approx(growth[0] / 2, rel=0.02)


def test_more_experts_are_read_by_more_positions() -> None:
    costs = _H100.cost_model(_MIXTRAL, tensor_parallel_size=4).steps(decode(positions=[1, 4, 64], context=0))
    per_expert = _MIXTRAL.expert_elements / 8
    cache = 2 * _MIXTRAL.kv_elements_per_token * np.array([1, 4, 64])
    common = _MIXTRAL.common_elements + _MIXTRAL.head_elements
    distinct = (costs.bytes - cache - 2 * common) / (2 * per_expert)
    assert distinct == pytest.approx([2.0, 5.469, 8.0], rel=1e-3)


def test_doubling_bandwidth_halves_memory_time_only() -> None:
    shape = decode(sequences=[1, 8, 256], positions=[1, 4, 4], context=0)
    once = _profile(attention__floor_s=0.0)
    twice = _profile(attention__floor_s=0.0, memory__bandwidth_bytes_per_s=6.7e12)
    slow, fast = once.cost_model(_LLAMA).steps(shape), twice.cost_model(_LLAMA).steps(shape)
    assert slow.memory_s == pytest.approx(2.0 * fast.memory_s)
    for unchanged in ("compute_s", "overhead_s", "communication_s", "flops", "bytes"):
        assert getattr(slow, unchanged).tolist() == getattr(fast, unchanged).tolist()
    assert (fast.duration_ps < slow.duration_ps).all()
    assert (2 * fast.duration_ps > slow.duration_ps).all()


_MODELS = [_LLAMA, _SMALL, _MIXTRAL, _WINDOWED]


@st.composite
def _blocks(draw: st.DrawFn) -> StepShape:
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return decode(
        sequences=random.integers(0, 200, 70),
        positions=random.integers(1, 40, 70),
        context=random.integers(0, 30_000, 70),
    )


@given(_blocks(), st.sampled_from(_PROFILES), st.sampled_from(_MODELS), st.integers(0, 69))
def test_a_block_of_steps_costs_what_its_steps_cost(
    block: StepShape, profile: Accelerator, model: ModelSpec, index: int
) -> None:
    cost = profile.cost_model(model)
    together, alone = cost.steps(block), cost.steps(row(block, index))
    for name in together.__slots__:
        assert getattr(alone, name)[0] == getattr(together, name)[index], name


@given(_blocks(), st.sampled_from(_PROFILES), st.sampled_from(_MODELS), st.sampled_from(["bfloat16", "int4"]))
def test_no_step_is_below_its_physical_limit(
    block: StepShape, profile: Accelerator, model: ModelSpec, dtype: Any
) -> None:
    costs = profile.cost_model(model, weight_dtype=dtype).steps(block)
    assert (costs.duration_ps >= costs.limit_s * 1e12 * (1 - 1e-9) - 1).all()
    if profile.has_power:
        assert (costs.energy_nj >= costs.limit_j * 1e9 * (1 - 1e-9) - 1).all()
        cap_nj = profile.power.cap_w * costs.duration_ps * 1e-3 if profile.power else 0.0
        assert (costs.energy_nj <= cap_nj * (1 + 1e-9) + 1).all()


@given(
    sequences=st.integers(1, 200),
    positions=st.integers(1, 64),
    context=st.integers(0, 60_000),
    more=st.tuples(st.integers(0, 50), st.integers(0, 64), st.integers(0, 20_000)),
    profile=st.sampled_from(_PROFILES),
    model=st.sampled_from(_MODELS),
)
def test_time_and_energy_never_fall_when_a_step_grows(
    sequences: int,
    positions: int,
    context: int,
    more: tuple[int, int, int],
    profile: Accelerator,
    model: ModelSpec,
) -> None:
    shape = decode(
        sequences=[sequences, sequences + more[0]],
        positions=[positions, positions + more[1]],
        context=[context, context + more[2]],
    )
    costs = profile.cost_model(model).steps(shape)
    assert costs.duration_ps[1] >= costs.duration_ps[0] * (1 - 1e-7)
    assert costs.energy_nj[1] >= costs.energy_nj[0] * (1 - 1e-7)


def test_the_cap_lowers_the_clock_of_compute_bound_steps() -> None:
    costs = _RTX_3090.cost_model(_LLAMA).steps(decode(sequences=[1, 64, 512], context=100))
    assert costs.clock_fraction[0] > costs.clock_fraction[2]
    assert costs.energy_nj[2] / costs.duration_ps[2] * 1e3 == pytest.approx(
        _RTX_3090.power.curve.allowed_w, rel=1e-6
    )
