"""What guessed watts contribute to joules: exactly what the joules lose or gain when the guess is scaled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specsim.arrays import NANOJOULES_PER_JOULE
from specsim.hardware import RooflineProfile, StepCosts, load_model
from specsim.hardware.guess import LEAST, MOST, bounds, is_shown
from specsim.hardware.parallel import Links
from specsim.hardware.provenance import Source
from tests.hardware.shapes import decode

MODEL = load_model("llama-3.2-1b")
POWER = {"idle_w": 20, "active_w": 100, "memory_w": 300, "clock_w": 40, "compute_w": 500, "cap_w": 5000}
WATTS = ("active_w", "memory_w", "clock_w", "compute_w")


def _profile(guessed: tuple[str, ...], *, factor: float = 1.0, **changes: object) -> RooflineProfile:
    """Return a device whose guessed watts are scaled."""
    power = {name: watts * (factor if name in guessed else 1.0) for name, watts in POWER.items()} | changes
    sources = {f"power.{name}": {"source": "prior", "tag": "estimated"} for name in guessed}
    return RooflineProfile.model_validate(
        {
            "name": "x",
            "memory": {"bandwidth_bytes_per_s": 2e12, "capacity_bytes": 80e9},
            "peak_flops_per_s": {"bfloat16": 3e14},
            "power": power,
            "provenance": {"power": {"source": "measured", "tag": "measured"}, **sources},
        }
    )


def _steps(profile: RooflineProfile, positions: int, devices: int = 1) -> StepCosts:
    return profile.cost_model(MODEL, tensor_parallel_size=devices).steps(
        decode(positions=positions, context=500)
    )


@settings(max_examples=30)
@given(
    guessed=st.sets(st.sampled_from(WATTS)).map(lambda names: tuple(sorted(names))),
    factor=st.sampled_from([LEAST, MOST]),
    positions=st.integers(1, 512),
)
def test_joules_follow_the_guessed_watts_in_proportion_to_what_these_contribute(
    guessed: tuple[str, ...], factor: float, positions: int
) -> None:
    plain, scaled = (_steps(_profile(guessed, factor=one), positions) for one in (1.0, factor))
    joules = plain.energy_nj[0] / NANOJOULES_PER_JOULE
    expected = joules + (factor - 1.0) * plain.guessed_j[0]
    assert scaled.energy_nj[0] / NANOJOULES_PER_JOULE == pytest.approx(expected, rel=1e-6)
    least, most = bounds(plain.guessed_j[0] / joules)
    assert expected == pytest.approx(joules * (least if factor == LEAST else most), rel=1e-9)


@pytest.mark.parametrize(("guessed", "share"), [((), 0.0), (WATTS, 1.0), (("idle_w",), 0.0)])
def test_all_or_nothing_of_the_joules_is_guessed(guessed: tuple[str, ...], share: float) -> None:
    costs = _steps(_profile(guessed), 4)
    assert costs.guessed_j[0] == pytest.approx(share * costs.energy_nj[0] / NANOJOULES_PER_JOULE, rel=1e-6)


def test_every_device_contributes() -> None:
    profile = _profile(("active_w",))
    one, two = _steps(profile, 4), _steps(profile.model_copy(update={"links": _links()}), 4, devices=2)
    seconds = [costs.duration_ps[0] / 1e12 for costs in (one, two)]
    watts = [costs.guessed_j[0] / time_s for costs, time_s in zip((one, two), seconds, strict=True)]
    assert watts == pytest.approx([100.0, 200.0], rel=1e-6)


def _links() -> Links:
    return Links.model_validate({"intra_node_bandwidth_bytes_per_s": 3e11, "allreduce_latency_s": 5e-6})


def test_a_step_at_a_guessed_cap_is_a_guess_altogether() -> None:
    measured, guessed = (_profile(names, cap_w=500) for names in ((), ("cap_w",)))
    few, many = (_steps(guessed, positions) for positions in (1, 4096))
    assert _steps(measured, 4096).guessed_j[0] == 0
    assert many.clock_fraction[0] < 1
    assert many.guessed_j[0] == pytest.approx(many.energy_nj[0] / NANOJOULES_PER_JOULE, rel=1e-6)
    assert few.clock_fraction[0] == 1
    assert few.guessed_j[0] == 0


def test_what_a_guessed_voltage_scales_is_a_guess() -> None:
    clock = {"knee_fraction": 0.8, "slope": 1.0}
    profile = _profile((), clock=clock)
    sources = dict(profile.provenance) | {"power.clock": Source(source="prior", tag="estimated")}
    costs = _steps(profile.model_copy(update={"provenance": sources}), 512)
    both = _steps(_profile(("compute_w", "clock_w"), clock=clock), 512)
    assert costs.guessed_j == pytest.approx(both.guessed_j, rel=1e-9)
    assert 0 < costs.guessed_j[0] < costs.energy_nj[0] / NANOJOULES_PER_JOULE


def test_waiting_rests_on_the_figure_that_it_is() -> None:
    assert _profile(("idle_w",)).guessed_waiting_w == 20
    assert _profile(("idle_w",), idle_context_w=80).guessed_waiting_w == 0
    assert _profile(("idle_context_w",), idle_context_w=80).guessed_waiting_w == 80
    assert _profile(()).guessed_waiting_w == 0


def test_joules_are_shown_up_to_a_half_that_is_guessed() -> None:
    assert [is_shown(share) for share in (0.0, 0.5, 0.51, 1.0, float("nan"))] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert bounds(0.0) == (1.0, 1.0)
    assert np.isclose(bounds(1.0), (LEAST, MOST)).all()
