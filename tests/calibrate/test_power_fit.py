"""Power under caps: recovered where it is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate import Measurements
from calibrate.fit import fit_time
from calibrate.law import Form
from calibrate.parameters import with_values
from calibrate.power import fit_power
from calibrate.predict import Predictor
from specsim.errors import DomainError
from specsim.hardware import Power, RooflineProfile
from specsim.streams import Purpose, RandomStreams
from tests.calibrate.synthetic import TILE, h100, measured, true_profile

_POWER = Power(idle_w=60, idle_context_w=90, active_w=120, memory_w=420, compute_w=600, cap_w=700)


def _metered(profile: RooflineProfile, *, seed: int, cap_w: float | None = None) -> Measurements:
    """Return steps with energy, prefill among them."""
    rows = measured(profile, seed=seed)
    phase = np.where(rows.num_positions > 200, "prefill", rows.phase)
    rows = rows.with_columns({"phase": phase})
    if cap_w is not None:
        rows = rows.with_columns({"power_cap_w": np.full(len(rows), cap_w)})
    said = Predictor(rows)(profile, with_power=True)
    noise = RandomStreams(seed).generator(Purpose.POLICY).normal(0.0, 0.01, (2, len(rows)))
    return rows.with_columns(
        {
            "wall_s": said.time_s * np.exp(noise[0]),
            "energy_j": 5.0 * said.power_w * np.exp(noise[1]),
            "window_s": np.full(len(rows), 5.0),
        }
    )


def _profile() -> RooflineProfile:
    return true_profile().model_copy(update={"power": _POWER})


def test_power_is_recovered_from_decoding_and_prefill() -> None:
    rows = _metered(_profile(), seed=1)
    timed = fit_time(rows, h100(), form=Form(TILE), with_intervals=False)
    fit = fit_power(rows, timed)
    assert fit is not None
    assert fit.not_identified == ()
    power = fit.profile.power
    assert power is not None
    assert power.active_w == pytest.approx(120, rel=0.1)
    assert power.memory_w == pytest.approx(420, rel=0.1)
    assert power.compute_w == pytest.approx(600, rel=0.1)
    assert np.abs(fit.relative_power_error(rows)).mean() < 0.02


def test_decoding_alone_leaves_the_arithmetics_power_to_the_prior() -> None:
    rows = _metered(_profile(), seed=2)
    rows = rows.take(rows.num_positions <= 16)
    timed = fit_time(rows, h100(), form=Form(TILE), with_intervals=False)
    fit = fit_power(rows, timed)
    assert fit is not None
    (message,) = (str(one) for one in fit.not_identified if one.path == "power.compute_w")
    assert "prefill of 512 to 4,096 positions" in message
    assert fit.profile.power is not None
    assert h100().power is not None
    assert fit.profile.power.compute_w == h100().power.compute_w


def test_idle_power_is_what_idle_windows_show() -> None:
    rows = _metered(_profile(), seed=3)
    idle = rows.take(np.arange(2)).with_columns(
        {
            "phase": np.array(["idle", "idle_context"]),
            "energy_j": np.array([5 * 61.0, 5 * 91.0]),
            "wall_s": np.full(2, np.nan),
        }
    )
    timed = fit_time(rows, h100(), form=Form(TILE), with_intervals=False)
    fit = fit_power(Measurements.joined([rows, idle]), timed)
    assert fit is not None
    assert fit.profile.power is not None
    assert (fit.profile.power.idle_w, fit.profile.power.waiting_w) == pytest.approx((61.0, 91.0))


def test_a_trace_without_energy_has_no_power_fit() -> None:
    rows = measured(true_profile(), seed=4)
    assert fit_power(rows, fit_time(rows, h100(), form=Form(TILE), with_intervals=False)) is None


def test_caps_are_fitted_with_the_clock_law() -> None:
    profile = _profile()
    rows = Measurements.joined([_metered(profile, seed=5), _metered(profile, seed=6, cap_w=350.0)])
    rows = rows.take(np.arange(0, len(rows), 2))
    timed = fit_time(rows.take(np.isnan(rows.power_cap_w)), h100(), form=Form(TILE), with_intervals=False)
    fit = fit_power(rows, timed)
    assert fit is not None
    assert fit.is_joint
    capped = rows.take(rows.power_cap_w == 350.0)
    said = Predictor(capped)(fit.profile, with_power=True)
    assert (said.clock_fraction < 0.95).any()
    assert np.abs(said.time_s / capped.wall_s - 1).mean() < 0.03
    assert np.abs(said.power_w / capped.power_w - 1).mean() < 0.03


def test_a_fitted_power_needs_a_prior_with_a_cap() -> None:
    rows = _metered(_profile(), seed=8)
    timed = fit_time(rows, h100(), form=Form(TILE), with_intervals=False)
    bare = replace(timed, profile=timed.profile.model_copy(update={"power": None}))
    with pytest.raises(DomainError, match="has no power to start from"):
        fit_power(rows, bare)


def test_figures_replace_only_what_they_name() -> None:
    changed = with_values(h100(), {"efficiency.memory": 0.5, "power.active_w": 99.0})
    assert changed.efficiency.memory.value == 0.5
    assert changed.efficiency.compute == h100().efficiency.compute
    assert changed.power is not None
    assert changed.power.active_w == 99.0
