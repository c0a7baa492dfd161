"""Parallel positions and peaks: the view that a setting gives holds, and the other follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError
from specsim.hardware import RooflineProfile
from specsim.scenario import load_scenario
from specsim.sweep import SweepJob
from specsim.sweep.plan import Case

_POSITIONS = "hardware.target.parallel_positions"
_BANDWIDTH = "hardware.target.memory.bandwidth_bytes_per_s"


def _device(*settings: str) -> RooflineProfile:
    target = load_scenario("chat_8b", overrides=settings).hardware.target
    assert isinstance(target, RooflineProfile)
    return target


def test_every_format_keeps_its_ratio_to_the_plain_one() -> None:
    own, moved = _device(), _device(f"{_POSITIONS}=400")
    factor = 400 / own.ridge_positions
    assert moved.ridge_positions == pytest.approx(400, rel=1e-12)
    assert moved.peak_flops_per_s == pytest.approx(
        {dtype: peak * factor for dtype, peak in own.peak_flops_per_s.items()}, rel=1e-12
    )


@given(
    positions=st.floats(1, 1e5), bandwidth=st.floats(1e10, 1e14), settings_first=st.permutations([0, 1, 2])
)
def test_the_order_of_settings_does_not_matter(
    positions: float, bandwidth: float, settings_first: list[int]
) -> None:
    settings = [f"{_POSITIONS}={positions!r}", f"{_BANDWIDTH}={bandwidth!r}"]
    settings.append("hardware.target.efficiency.compute=0.4")
    moved = _device(*(settings[number] for number in settings_first))
    assert moved.ridge_positions == pytest.approx(positions, rel=1e-9)
    assert moved.memory.bandwidth_bytes_per_s == bandwidth


def test_positions_that_are_the_profiles_own_change_no_peak() -> None:
    own = _device()
    moved = _device(f"{_POSITIONS}={own.ridge_positions!r}")
    assert moved.peak_flops_per_s == pytest.approx(own.peak_flops_per_s, rel=1e-12)


def test_a_peak_set_over_a_profile_of_positions_holds() -> None:
    moved = _device("hardware.target=ideal", "hardware.target.peak_flops_per_s.bfloat16=1e15")
    assert moved.parallel_positions is None
    assert moved.peak("bfloat16") == 1e15


def test_two_settings_that_disagree_are_refused() -> None:
    with pytest.raises(ConfigError, match="disagrees with"):
        _device(f"{_POSITIONS}=400", "hardware.target.peak_flops_per_s={bfloat16: 1e14}")


def test_a_file_that_disagrees_with_itself_is_refused() -> None:
    inline = """
name: x
description: y
target: {model: llama-3.1-8b}
speculative_config: {method: draft_model, model: llama-3.2-1b, num_speculative_tokens: 2}
distributions: {kind: rates, acceptance_rate: 0.5}
workload: {num_prompts: 2, max_concurrency: 1, prompt_tokens: 8, output_tokens: 8}
hardware:
  target:
    name: made-up
    memory: {bandwidth_bytes_per_s: 1e12, capacity_bytes: 80e9}
    parallel_positions: 400
    peak_flops_per_s: {bfloat16: 1e14}
"""
    with pytest.raises(ConfigError, match="400 disagrees with 100"):
        load_scenario(inline)


@pytest.mark.parametrize("value", ["-3", "0", "many", "true", "[1]"])
def test_positions_that_are_no_positive_number_are_refused_where_they_were_given(value: str) -> None:
    with pytest.raises(ConfigError, match=rf"--set {_POSITIONS}"):
        _device(f"{_POSITIONS}={value}")


def test_faults_elsewhere_in_the_profile_are_still_reported() -> None:
    with pytest.raises(ConfigError, match="bandwidth_bytes_per_s"):
        _device(f"{_POSITIONS}=400", f"{_BANDWIDTH}=-1")


def test_bandwidth_and_positions_are_axes_of_one_sweep() -> None:
    job = SweepJob.of("chat_8b", [f"{_POSITIONS}=100,400", f"{_BANDWIDTH}=1e12,4e12"])
    for point in job.plan.points:
        target = job.plan.scenario(Case(point.number, 0)).hardware.target
        assert isinstance(target, RooflineProfile)
        assert (target.ridge_positions, target.memory.bandwidth_bytes_per_s) == pytest.approx(point.labels)


def test_positions_set_at_every_point_follow_a_bandwidth_that_is_varied() -> None:
    job = SweepJob.of("chat_8b", [f"{_BANDWIDTH}=1e12,4e12"], settings=[f"{_POSITIONS}=300"])
    for point in job.plan.points:
        target = job.plan.scenario(Case(point.number, 0)).hardware.target
        assert isinstance(target, RooflineProfile)
        assert target.ridge_positions == pytest.approx(300)
