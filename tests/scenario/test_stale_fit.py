"""A profile is called fitted only where its figures are those that were fitted."""

from __future__ import annotations

import pytest

import specsim
from specsim.scenario import load_scenario


@pytest.mark.parametrize(
    ("setting", "is_fitted"),
    [
        ("workload.num_prompts=2", True),
        ("hardware.target.power.cap_w=500", True),
        ("hardware.target.price.usd_per_hour=1", True),
        ("hardware.target.memory.capacity_bytes=9e10", True),
        ("hardware.target=a100-sxm-80g", True),
        ("hardware.target.memory.bandwidth_bytes_per_s=4e12", False),
        ("hardware.target.parallel_positions=55", False),
        ("hardware.target.peak_flops_per_s.bfloat16=1e15", False),
        ("hardware.target.efficiency.memory.value=1", False),
        ("hardware.target.overhead.layer_s=0", False),
        ("hardware.target.power.memory_w=1", False),
    ],
)
def test_a_setting_over_a_fitted_figure_ends_the_fit(setting: str, is_fitted: bool) -> None:
    scenario = load_scenario("chat_8b", overrides=[setting])
    assert scenario.hardware.target.is_fitted is is_fitted


def test_the_verdict_of_a_device_that_was_not_measured_claims_no_error() -> None:
    settings = ["workload.num_prompts=2", "hardware.target.memory.bandwidth_bytes_per_s=4e12"]
    provenance = specsim.simulate(load_scenario("chat_8b", overrides=settings)).provenance
    assert provenance.profile_kind == "datasheet"
    assert provenance.held_out_error is None
