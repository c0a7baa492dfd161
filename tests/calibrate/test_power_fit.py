"""Power and rounds under caps: recovered where they are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from calibrate import Measurements, RoundMeasurements, trace_of
from calibrate.fit import fit_time
from calibrate.law import Form
from calibrate.parameters import with_values
from calibrate.power import fit_power
from calibrate.predict import Predictor
from calibrate.round_power import fit_round_power, predict_rounds
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


_SETTINGS = ((420, None), (250, None), (420, 1200), (420, 600))


def _capped_rounds() -> RoundMeasurements:
    grid = pd.DataFrame(
        [(k, cap, lock) for k in (0, 1, 3, 5, 7) for cap, lock in _SETTINGS],
        columns=["k", "power_cap_w", "sm_lock_mhz"],
    )
    table = grid.assign(
        acceptance_length=1 + 0.5 * grid["k"], tokens_per_s=1.0, mean_power_w=1.0, mem_mhz=9501
    )
    rounds = trace_of(table, file="made up", header={"device": "rtx-3090"}).rounds
    assert rounds is not None
    return rounds


_RTX_3090 = {
    "clock_s": 16.3e-3,
    "clock_s_per_draft": 7.19e-3,
    "memory_s": 23.5e-3,
    "memory_s_per_draft": 4.4e-3,
    "host_s": 0.0,
    "host_s_per_draft": 0.0,
    "exponent": 5.1,
    "active_w": 119.0,
    "clock_w": 71.6,
    "position_j": 0.51,
    "round_j": 2.35,
    "meter_fraction": 1.0,
    "knee_fraction": 0.818,
    "slope": 1.84,
}


def test_rounds_under_caps_and_clocks_are_recovered() -> None:
    rounds = _capped_rounds()
    figures = {**_RTX_3090, "host_s_per_draft": 1.6e-3, "clock_s_per_draft": 6.1e-3}
    said = predict_rounds(
        figures, rounds, nominal_sm_hz=1.7e9, nominal_memory_hz=9.501e9, highest_fraction=1.06
    )
    draw = RandomStreams(7).generator(Purpose.POLICY).normal(0.0, 0.003, (2, len(rounds)))
    measured_rounds = replace(
        rounds,
        tokens_per_s=rounds.acceptance_length / (said.round_s * np.exp(draw[0])),
        power_w=said.power_w * np.exp(draw[1]),
        sm_clock_hz=said.clock_fraction * 1.7e9,
    )
    fit = fit_round_power(measured_rounds, nominal_sm_hz=1.7e9, nominal_memory_hz=9.501e9)
    again = fit.predict(rounds)
    assert again.round_s == pytest.approx(said.round_s, rel=0.02)
    assert again.power_w == pytest.approx(said.power_w, rel=0.02)
    assert again.clock_fraction == pytest.approx(said.clock_fraction, rel=0.05)
    (host,) = (one for one in fit.figures if one.path == "host_s_per_draft")
    assert host.value == pytest.approx(1.6e-3, rel=0.2)


def test_one_locked_clock_cannot_tell_the_hosts_time() -> None:
    rounds = _capped_rounds()
    rounds = replace(rounds, power_w=np.full(len(rounds), 400.0)).take(rounds.sm_lock_hz != 600e6)
    assert "host_s" not in {one.path for one in fit_round_power(rounds).figures}


def test_an_rtx_3090_under_caps_is_as_measured() -> None:
    # thc1006 (CC0 1.0): K = 0, 3, 7 at 420 W: 24.1, 42.2 and 71.5 ms.
    rounds = _capped_rounds()
    said = predict_rounds(
        _RTX_3090, rounds, nominal_sm_hz=1.7e9, nominal_memory_hz=9.501e9, highest_fraction=1.06
    )
    shown = np.isnan(rounds.sm_lock_hz) & (rounds.power_cap_w == 420)
    shown &= np.isin(rounds.num_speculative_tokens, (0, 3, 7))
    assert 1e3 * said.round_s[shown] == pytest.approx([24.1, 42.2, 71.5], rel=0.04)


def test_rounds_without_power_are_refused() -> None:
    rounds = replace(_capped_rounds(), power_w=np.full(len(_capped_rounds()), np.nan))
    with pytest.raises(DomainError, match="without power"):
        fit_round_power(rounds)


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
