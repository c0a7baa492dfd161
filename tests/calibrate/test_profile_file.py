"""Profiles written by a calibration are read back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.profile_file import profile_text, write_profile
from specsim.errors import ConfigError
from specsim.hardware import RooflineProfile, load_profile


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
