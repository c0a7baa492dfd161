"""What fits on a device and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import CapacityError
from specsim.hardware import (
    MemoryPlan,
    Placement,
    Resident,
    UnitProfile,
    check_fit,
    load_model,
    load_profile,
    plan_memory,
)

_H100 = load_profile("h100-sxm.datasheet")
_LLAMA_8B = Resident(load_model("llama-3.1-8b"), Placement())
_LLAMA_1B = Resident(load_model("llama-3.2-1b"), Placement(role="draft"))


def _plan(context_tokens: int = 2048, lookahead_tokens: int = 0, *, block_size: int = 1) -> MemoryPlan:
    return plan_memory(
        _H100,
        [_LLAMA_8B, _LLAMA_1B],
        context_tokens=context_tokens,
        lookahead_tokens=lookahead_tokens,
        block_size=block_size,
    )


def test_weights_and_cache_are_counted_for_target_and_draft() -> None:
    plan = _plan()
    assert plan.weight_bytes == 2 * (8030261248 + 1235814400)
    assert plan.cache_bytes_per_token == 2 * (65536 + 16384)
    assert plan.sequence_bytes == 2048 * plan.cache_bytes_per_token


def test_lookahead_slots_and_whole_blocks_are_reserved() -> None:
    assert _plan(100, 5, block_size=16).sequence_bytes == 112 * _plan().cache_bytes_per_token


def test_formats_and_devices_divide_weights_and_cache() -> None:
    resident = Resident(
        load_model("llama-3.1-70b"),
        Placement(tensor_parallel_size=4, weight_dtype="int4", kv_dtype="float8"),
    )
    assert resident.weight_bytes == 70553706496 * 0.5625 / 4
    assert resident.cache_bytes_per_token == 163840 / 4


def test_what_does_not_fit_is_refused_with_the_bytes_lacking() -> None:
    plan = _plan(8192, 5)
    most = plan.max_sequences
    assert most is not None
    check_fit(plan, most)
    with pytest.raises(
        CapacityError, match=rf"'h100-sxm' lacks .*lookahead slots \(5 a sequence\).*at most {most} seq"
    ) as caught:
        check_fit(plan, most + 1)
    assert caught.value.lacking_bytes == plan.lacking_bytes(most + 1) > 0
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


def test_weights_alone_may_not_fit() -> None:
    plan = plan_memory(_H100, [Resident(load_model("llama-3.1-70b"), Placement())], context_tokens=128)
    assert plan.max_sequences == 0
    with pytest.raises(CapacityError, match=r"141 GB weights of llama-3\.1-70b.*not one sequence fits"):
        check_fit(plan, 1)


def test_a_profile_without_memory_holds_everything() -> None:
    unit = UnitProfile(kind="unit", name="u", target_step_s=1.0, draft_cost_ratio=0.1)
    plan = plan_memory(unit, [_LLAMA_8B], context_tokens=10**9)
    assert plan.max_sequences is None
    check_fit(plan, 10**9)


@given(st.integers(1, 60_000), st.integers(0, 40), st.sampled_from([1, 16, 64]))
def test_the_largest_number_of_sequences_fits_and_one_more_does_not(
    context: int, slots: int, block: int
) -> None:
    plan = _plan(context, slots, block_size=block)
    assert plan.max_sequences is not None
    assert plan.lacking_bytes(plan.max_sequences) == 0
    assert plan.lacking_bytes(plan.max_sequences + 1) > 0
