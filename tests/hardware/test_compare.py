"""Profiles side by side."""

from __future__ import annotations

import pytest

from specsim.config import names
from specsim.hardware import UnitProfile, load_model, load_profile
from specsim.hardware.compare import compare

_MODEL = load_model("llama-3.1-8b")


def test_devices_are_ranked_by_their_limit() -> None:
    rows = compare([load_profile(name) for name in names("hardware_profiles")], _MODEL)
    limits = [row.limit_s for row in rows]
    assert limits == sorted(limits)
    assert all(row.token_s >= row.limit_s * (1 - 1e-9) for row in rows)
    assert rows[0].name == "b200-sxm"


def test_h100_serves_one_token_in_at_least_4_56_ms() -> None:
    (row,) = compare([load_profile("h100-sxm.datasheet")], _MODEL)
    assert row.limit_s == pytest.approx(4.56e-3, rel=0.001)
    assert row.fits
    assert 0 < row.guessed_energy_fraction < 0.01
    assert row.usd_per_mtok == pytest.approx(3.5 / 3600 * row.token_s * 1e6)


def test_what_does_not_fit_is_said() -> None:
    (row,) = compare([load_profile("t4.datasheet")], _MODEL)
    assert not row.fits


def test_profiles_without_peaks_are_left_out() -> None:
    unit = UnitProfile(kind="unit", name="u", target_step_s=1.0, draft_cost_ratio=0.1)
    assert compare([unit], _MODEL) == []
