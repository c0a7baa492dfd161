"""Measured tables and the unit cost of the closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError, DomainError
from specsim.hardware import TableProfile, UnitProfile, load_model
from tests.hardware.shapes import decode, row

_MODEL = load_model("llama-3.1-8b")
_GRID: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "num_positions": [1, 8, 64],
    "context_tokens": [0, 1000, 10_000],
    "step_s": ["8 ms", "9 ms", "12 ms", "9 ms", "10 ms", "14 ms", "16 ms", "18 ms", "26 ms"],
}


def _table(**changes: Any) -> TableProfile:
    return TableProfile.model_validate({"kind": "table", "name": "measured", "grids": [_GRID | changes]})


def test_measured_points_come_back_exactly() -> None:
    costs = (
        _table()
        .cost_model(_MODEL)
        .steps(decode(positions=[1, 1, 1, 8, 8, 8, 64, 64, 64], context=[0, 1000, 10_000] * 3))
    )
    assert costs.duration_ps / 1e9 == pytest.approx([8, 9, 12, 9, 10, 14, 16, 18, 26], abs=1e-8)


def test_a_power_law_is_interpolated_exactly() -> None:
    axis = np.array([1, 8, 64])
    times = [float(1e-3 * np.sqrt(1.0 + n)) for n in axis for _ in range(3)]
    costs = _table(step_s=times).cost_model(_MODEL).steps(decode(positions=np.arange(1, 65), context=123))
    assert costs.duration_ps * 1e-12 == pytest.approx(1e-3 * np.sqrt(1.0 + np.arange(1, 65)), rel=1e-9)


@pytest.mark.parametrize(
    ("positions", "context", "message"),
    [
        (65, 0, r"num_positions of 65 is outside the measured grid 1–64; nothing is extrapolated"),
        (1, 10_001, r"context_tokens of 10001 is outside the measured grid 0–10000"),
    ],
)
def test_outside_the_grid_is_refused(positions: int, context: int, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        _table().cost_model(_MODEL).steps(decode(positions=[1, positions], context=[0, context]))


def test_sequences_may_be_an_axis() -> None:
    table = _table(context_tokens=[500], num_sequences=[1, 4], step_s=["1 ms", "2 ms"] * 3)
    costs = table.cost_model(_MODEL).steps(decode(sequences=[1, 4], positions=[4, 1], context=500))
    assert costs.duration_ps.tolist() == [10**9, 2 * 10**9]
    with pytest.raises(DomainError, match="num_sequences of 5"):
        table.cost_model(_MODEL).steps(decode(sequences=5, context=500))
    with pytest.raises(DomainError, match="context_tokens of 501"):
        table.cost_model(_MODEL).steps(decode(context=501))


def test_an_unmeasured_model_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'measured' has no measurement of llama-3.1-8b in int4 on 1"):
        _table().cost_model(_MODEL, weight_dtype="int4")


def test_a_measurement_below_the_physical_limit_is_refused() -> None:
    memory = {"bandwidth_bytes_per_s": "1 TB/s", "capacity_bytes": "80 GB"}
    table = TableProfile.model_validate({"kind": "table", "name": "x", "memory": memory, "grids": [_GRID]})
    with pytest.raises(
        ConfigError, match=r"0.008 s at 1 positions and 0 tokens .* below the physical limit of 0\.014 s"
    ):
        table.cost_model(_MODEL)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_positions": [1, 64, 8]}, "must increase"),
        ({"step_s": ["8 ms"] * 8}, "has 8 times; the axes have 9 points"),
    ],
)
def test_a_broken_grid_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _table(**changes)


@given(st.integers(0, 2**32), st.integers(0, 49))
def test_a_block_of_measured_steps_costs_what_its_steps_cost(seed: int, index: int) -> None:
    random = np.random.default_rng(seed)
    block = decode(positions=random.integers(1, 65, 50), context=random.integers(0, 10_001, 50))
    cost = _table().cost_model(_MODEL)
    together, alone = cost.steps(block), cost.steps(row(block, index))
    assert alone.duration_ps[0] == together.duration_ps[index]


def test_a_unit_target_costs_one_step_and_a_draft_its_share() -> None:
    profile = UnitProfile(kind="unit", name="c=.1", target_step_s=0.02, draft_cost_ratio=0.1)
    shape = decode(sequences=[1, 64], positions=[1, 9], context=[0, 10**6])
    assert profile.cost_model(None).steps(shape).duration_ps.tolist() == [20 * 10**9] * 2
    assert profile.cost_model(None, role="draft").steps(shape).duration_ps.tolist() == [2 * 10**9] * 2


def test_a_unit_prompt_is_free() -> None:
    profile = UnitProfile(kind="unit", name="c=.1", target_step_s=0.02, draft_cost_ratio=0.1)
    costs = profile.cost_model(_MODEL).steps(decode(positions=[512, 512], prefill=[512, 500]))
    assert costs.duration_ps.tolist() == [0, 20 * 10**9]
    assert costs.limit_s.tolist() == [0.0, 0.0]


def test_kinds_without_energy_refuse_power() -> None:
    power = {"idle_w": 1, "active_w": 2, "memory_w": 3, "compute_w": 4, "cap_w": 10}
    with pytest.raises(ValueError, match="kind unit computes no energy"):
        UnitProfile.model_validate(
            {"kind": "unit", "name": "x", "target_step_s": 1, "draft_cost_ratio": 0.1, "power": power}
        )
