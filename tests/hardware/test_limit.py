"""The physical limit of a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specsim.errors import ConfigError
from specsim.hardware import Limit, Placement, RooflineProfile, load_model, load_profile
from tests.hardware.shapes import decode


def _h100() -> RooflineProfile:
    profile = load_profile("h100-sxm.datasheet")
    assert isinstance(profile, RooflineProfile)
    return profile


def test_the_limit_is_the_larger_of_bytes_and_arithmetic() -> None:
    limit = Limit(bandwidth_bytes_per_s=1e12, peak_flops_per_s=1e15)
    assert limit.time(np.array([1e9, 1e9]), np.array([1e9, 1e13])).tolist() == [1e-3, 1e-2]


def test_limit_energy_is_bytes_flops_and_idle() -> None:
    limit = Limit(
        bandwidth_bytes_per_s=1e12,
        peak_flops_per_s=1e15,
        energy_per_byte_j=1e-10,
        energy_per_flop_j=1e-12,
        idle_w=50.0,
    )
    assert limit.energy(np.array([1e9]), np.array([1e10])) == pytest.approx([0.1 + 0.01 + 50 * 1e-3])


def test_board_energy_of_a_byte_is_140_picojoules_on_h100() -> None:
    assert _h100().limit(Placement()).energy_per_byte_j == pytest.approx(140e-12, rel=0.01)


def test_the_chips_need_less_than_the_board() -> None:
    board, chips = (_h100().limit(Placement(), basis=basis) for basis in ("board", "device"))
    assert chips.time(np.array([1e9]), np.array([0.0])) == board.time(np.array([1e9]), np.array([0.0]))
    assert chips.energy_per_byte_j < board.energy_per_byte_j
    assert chips.energy_per_flop_j < board.energy_per_flop_j


def test_energy_of_chips_that_is_not_known_is_refused() -> None:
    profile = load_profile("rtx-4090.datasheet")
    assert isinstance(profile, RooflineProfile)
    with pytest.raises(ConfigError, match="'rtx-4090' has no device_energy"):
        profile.limit(Placement(), basis="device")


def test_devices_share_the_limit() -> None:
    model = load_model("llama-3.1-70b")
    two, four = (_h100().cost_model(model, tensor_parallel_size=n).steps(decode()) for n in (2, 4))
    assert two.limit_s == pytest.approx(2 * four.limit_s)


def test_a_profile_faster_than_its_datasheet_is_refused() -> None:
    data: dict[str, Any] = _h100().model_dump(exclude_unset=True)
    data["efficiency"] = {"memory": 1.01}
    with pytest.raises(ValueError, match="less than or equal to 1"):
        RooflineProfile.model_validate(data)
