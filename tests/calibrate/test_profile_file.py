"""Profiles written by a calibration are read back as they were; those that ship say what they rest on."""

from __future__ import annotations

import stat
from datetime import date
from pathlib import Path

import pytest

import specsim
from calibrate.profile_file import profile_text, write_profile
from specsim.errors import ConfigError
from specsim.hardware import RooflineProfile, load_profile
from specsim.scenario import load_scenario

_FOLDER = Path(__file__).parents[2] / "hardware_profiles"
_FITTED = (
    "a100-sxm-80g",
    "a40",
    "b200-sxm",
    "h100-sxm",
    "rtx-4090",
    "rtx-a6000",
    "rtx-pro-6000",
)


def _fitted(name: str) -> RooflineProfile:
    profile = load_profile(name)
    assert isinstance(profile, RooflineProfile)
    return profile


@pytest.mark.parametrize("name", ["h100-sxm.datasheet", "rtx-3090.datasheet", "b200-sxm.datasheet"])
def test_a_profile_is_read_back_as_it_was(tmp_path: Path, name: str) -> None:
    profile = load_profile(name)
    assert isinstance(profile, RooflineProfile)
    path = tmp_path / "own.yaml"
    write_profile(path, profile, header={"source": "made up"})
    assert load_profile(str(path)) == profile


def test_a_header_stands_above_the_figures() -> None:
    profile = load_profile("h100-sxm.datasheet")
    assert isinstance(profile, RooflineProfile)
    text = profile_text(profile, header={"source": "two\nlines"})
    assert text.startswith('# source: two lines\nname: "h100-sxm"\n')


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    profile = load_profile("h100-sxm.datasheet")
    assert isinstance(profile, RooflineProfile)
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        write_profile(tmp_path / "none" / "own.yaml", profile)


def test_a_written_profile_may_be_read_by_others(tmp_path: Path) -> None:
    path, plain = tmp_path / "own.yaml", tmp_path / "plain"
    write_profile(path, _fitted("h100-sxm.datasheet"))
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_every_fitted_profile_is_named_here() -> None:
    assert sorted(path.name for path in _FOLDER.glob("*.fitted.yaml")) == [
        f"{name}.fitted.yaml" for name in _FITTED
    ]


@pytest.mark.parametrize("name", _FITTED)
def test_a_shipped_fit_states_source_licence_date_error_and_range(name: str) -> None:
    header = [
        line
        for line in (_FOLDER / f"{name}.fitted.yaml").read_text(encoding="utf-8").splitlines()
        if line.startswith("# ")
    ]
    assert any("fitted on: " in line and ("(MIT" in line or "(Apache-2.0)" in line) for line in header)
    fitted = _fitted(name).fitted
    assert fitted is not None
    assert fitted.date is not None
    assert f"# date: {date.fromisoformat(fitted.date)}" in header
    assert fitted.data.split(";")[0].split(": ")[0] in header[0]
    assert fitted.held_out_error is not None
    assert f"step time {fitted.held_out_error:.1%}" in header[-1]
    assert fitted.num_positions is not None
    assert fitted.context_tokens is not None


@pytest.mark.parametrize("name", _FITTED)
def test_a_bare_name_means_the_shipped_fit_and_datasheet_the_plain_profile(name: str) -> None:
    assert _fitted(name).fitted is not None
    assert not _fitted(f"{name}.datasheet").is_fitted


@pytest.mark.parametrize("name", _FITTED)
def test_only_fitted_step_times_are_called_fitted(name: str) -> None:
    profile = _fitted(name)
    assert profile.fitted is not None
    is_timed = any(not path.startswith("power.") for path in profile.fitted.standard_errors)
    assert profile.is_fitted == profile.fitted.fits_time == is_timed
    has_power = any(path.startswith("power.") for path in profile.fitted.standard_errors)
    assert (profile.held_out_power_error is not None) == has_power


def test_a_run_tells_the_b200_s_fitted_watts_from_its_datasheet_times() -> None:
    few = ["hardware.target=b200-sxm", "workload.num_prompts=2", "workload.output_tokens=8"]
    chat = load_scenario("chat_8b", overrides=few)
    said = specsim.simulate(chat).summary()["verdict"]["text"]
    assert "step times datasheet, 13 % off on measured runs; watts fitted, 5.8 % off on held-out runs" in said


@pytest.mark.parametrize("name", _FITTED)
def test_a_figure_that_was_not_identified_is_the_datasheet_profile_s(name: str) -> None:
    fit, plain = _fitted(name), _fitted(f"{name}.datasheet")
    assert fit.fitted is not None
    for path in fit.fitted.not_identified:
        block, figure = path.split(".")
        assert getattr(getattr(fit, block), figure) == getattr(getattr(plain, block), figure), path
        source = fit.source_of(path)
        assert source is None or not source.source.startswith("fit of"), path


@pytest.mark.parametrize("name", _FITTED)
def test_no_shipped_fit_holds_a_time_or_count_too_small_to_mean_anything(name: str) -> None:
    overhead = _fitted(name).overhead.model_dump(exclude_none=True)
    assert [path for path, value in overhead.items() if 0 < value < 1e-9] == []
