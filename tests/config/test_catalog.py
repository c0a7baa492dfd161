"""Where a name is found, which file wins, and splicing named files into a document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest

from specsim.config import Document, expand, find, names, override, read
from specsim.config.nodes import Scalar, Table
from specsim.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working folder whose subfolder ``extra`` is the search path."""
    (tmp_path / "extra" / "hardware_profiles").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECSIM_PATH", str(tmp_path / "extra"))
    return tmp_path


def _write(path: Path, text: str = "memory: {bandwidth_bytes_per_s: 1}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_name_is_found_beside_the_file_before_the_search_path(folder: Path) -> None:
    there = _write(folder / "extra/hardware_profiles/chip.yaml")
    assert find("hardware_profiles", "chip", beside=folder) == there
    beside = _write(folder / "chip.yaml")
    assert find("hardware_profiles", "chip", beside=folder) == beside


def test_search_path_may_hold_the_files_themselves_and_its_first_folder_wins(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _write(folder / "one/chip.yaml"), _write(folder / "two/chip.yaml")
    monkeypatch.setenv("SPECSIM_PATH", f"{folder / 'one'}:{folder / 'two'}")
    assert find("hardware_profiles", "chip") == first
    monkeypatch.setenv("SPECSIM_PATH", f":{folder / 'two'}:{folder / 'one'}")
    assert find("hardware_profiles", "chip") == second


def test_bare_name_means_the_calibrated_profile_where_there_is_one(folder: Path) -> None:
    plain = _write(folder / "extra/hardware_profiles/chip.yaml")
    assert find("hardware_profiles", "chip") == plain
    fitted = _write(folder / "extra/hardware_profiles/chip.fitted.yaml")
    assert find("hardware_profiles", "chip") == fitted
    assert find("hardware_profiles", "chip.fitted") == fitted
    assert find("hardware_profiles", "chip.datasheet") == plain


def test_path_is_found_beside_the_file_before_the_working_folder(folder: Path) -> None:
    here = _write(folder / "models/config.json", "{}")
    assert find("models", "models/config.json", beside=folder / "sub") == Path("models/config.json")
    beside = _write(folder / "sub/models/config.json", "{}")
    assert find("models", "models/config.json", beside=folder / "sub") == beside
    assert find("models", str(here)) == here


def test_file_without_a_suffix_is_found_on_the_command_line_only(folder: Path) -> None:
    _write(folder / "plain", "a: 1\n")
    assert find("scenarios", "plain") == Path("plain")
    with pytest.raises(ConfigError, match="no scenario 'plain'"):
        find("scenarios", "plain", beside=folder / "sub")


def test_unknown_name_is_refused_with_the_nearest_and_where_it_was_sought(folder: Path) -> None:
    _write(folder / "extra/hardware_profiles/h100-sxm.yaml")
    with pytest.raises(ConfigError) as caught:
        find("hardware_profiles", "h100-smx")
    message = str(caught.value)
    assert message.startswith("no accelerator profile 'h100-smx'; did you mean 'h100-sxm'? (searched: ")
    assert message.endswith("hardware_profiles/)")


@pytest.mark.parametrize("name", ["", "a\0b", "a" * 5000, "a/" * 3000, "../no/such"])
def test_impossible_name_is_refused_in_one_line(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no model '"):
        find("models", name)


def test_names_list_each_profile_once(folder: Path) -> None:
    before = set(names("hardware_profiles"))
    _write(folder / "extra/hardware_profiles/chip.yaml")
    _write(folder / "extra/hardware_profiles/chip.fitted.yaml")
    _write(folder / "extra/hardware_profiles/other.fitted.yaml")
    assert set(names("hardware_profiles")) - before == {"chip", "other"}


@pytest.fixture
def scenario(folder: Path) -> Document:
    """Return a document that names a profile twice, once as a word that is no name."""
    _write(folder / "extra/hardware_profiles/chip.yaml", "memory:\n  bandwidth_bytes_per_s: 1\n")
    return read(_write(folder / "s.yaml", "hardware: {target: chip, draft: target}\n"))


def test_named_file_is_spliced_in_with_its_own_places(folder: Path, scenario: Document) -> None:
    document = expand(
        scenario, {"hardware.target": "hardware_profiles", "hardware.draft": "hardware_profiles"}
    )
    file = folder / "extra/hardware_profiles/chip.yaml"
    node = document.get("hardware.target.memory.bandwidth_bytes_per_s")
    assert isinstance(node, Scalar)
    assert (node.place.file, node.place.line) == (str(file), 2)
    assert document.references == {"hardware.target": file}
    assert document.data["hardware"] == {
        "target": {"memory": {"bandwidth_bytes_per_s": 1}},
        "draft": "target",
    }


def test_setting_changes_one_figure_of_a_named_file(scenario: Document) -> None:
    document = expand(scenario, {"hardware.target": "hardware_profiles"})
    changed = override(document, ["hardware.target.memory.bandwidth_bytes_per_s=4e12"])
    node = changed.get("hardware.target.memory.bandwidth_bytes_per_s")
    assert isinstance(node, Scalar)
    assert node.value == 4e12
    assert changed.references == document.references


def test_all_names_that_stand_for_nothing_are_refused_where_they_stand(folder: Path) -> None:
    document = read(_write(folder / "s.yaml", "hardware:\n  target: chop\ntarget:\n  model: nothing\n"))
    with pytest.raises(ConfigError) as caught:
        expand(document, {"target.model": "models", "hardware.target": "hardware_profiles"})
    first, second = (str(fault) for fault in caught.value.faults)
    assert first.startswith(f"{folder}/s.yaml:2:11: hardware.target: no accelerator profile 'chop'")
    assert second.startswith(f"{folder}/s.yaml:4:10: target.model: no model 'nothing'")


def test_fault_of_a_named_file_points_into_it(folder: Path) -> None:
    file = _write(folder / "extra/hardware_profiles/chip.yaml", "memory: {a: 1, a: 2}\n")
    document = read(_write(folder / "s.yaml", "hardware: {target: chip}\n"))
    with pytest.raises(ConfigError, match=r"chip\.yaml:1:16: memory\.a: duplicate key") as caught:
        expand(document, {"hardware.target": "hardware_profiles"})
    assert caught.value.faults[0].file == str(file)


def test_named_file_that_cannot_be_read_is_refused_where_it_is_named(folder: Path) -> None:
    (folder / "chip.yaml").mkdir()
    document = read(_write(folder / "s.yaml", "hardware:\n  target: chip.yaml\n"))
    with pytest.raises(ConfigError, match=r"s\.yaml:2:11: hardware\.target: .*chip\.yaml: is a directory"):
        expand(document, {"hardware.target": "hardware_profiles"})


def test_whole_of_a_named_file_has_its_name_as_place(folder: Path, scenario: Document) -> None:
    document = expand(scenario, {"hardware.target": "hardware_profiles"})
    hardware = document.get("hardware")
    assert isinstance(hardware, Table)
    place = hardware.entries["target"].key_place
    assert (place.file, place.line) == (str(folder / "s.yaml"), 1)


def test_what_is_not_a_name_is_left_alone(folder: Path) -> None:
    document = read(_write(folder / "s.yaml", "target: {model: {hidden_size: 8}}\nhardware: {target: 3}\n"))
    references = {"target.model": "models", "hardware.target": "hardware_profiles", "no.such": "models"}
    assert expand(document, references) == document  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "given", "meant"),
    [
        ("hardware_profiles", "a100", "a100-sxm-40g"),
        ("hardware_profiles", "H100", "h100-sxm"),
        ("models", "meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("models", "llama-3.1-9b", "llama-3.1-8b"),
    ],
)
def test_a_name_begun_or_gone_on_with_is_taken_for_the_shipped_one(
    kind: Literal["hardware_profiles", "models"], given: str, meant: str
) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{re.escape(meant)}'"):
        find(kind, given)
