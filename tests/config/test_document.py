"""Files and settings: what is read from disk, what is refused before it is read, and overrides."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.config import Document, override, parse, read
from specsim.config.nodes import Scalar, child
from specsim.config.yaml import MAX_BYTES, MAX_DEPTH
from specsim.errors import ConfigError


def _fault(path: Path | str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(path)
    (fault,) = caught.value.faults
    return str(fault)


def test_file_is_read_with_its_name_in_every_place(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("a: 1\n")
    document = read(file)
    assert document.data == {"a": 1}
    assert document.root.entries["a"].key_place.file == str(file)


def test_byte_order_mark_is_not_part_of_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read(file).data == {"a": 1}


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert _fault(tmp_path / "no.yaml") == f"{tmp_path}/no.yaml: no such file"


def test_directory_is_refused(tmp_path: Path) -> None:
    assert _fault(tmp_path) == f"{tmp_path}: is a directory, not a file"


def test_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert _fault(tmp_path / "pipe").endswith("pipe: is not a regular file")


def test_device_is_refused() -> None:
    assert _fault("/dev/zero") == "/dev/zero: is not a regular file"


def test_hundred_megabytes_are_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "big.yaml").open("wb") as file:
        file.truncate(100_000_000)
    assert _fault(tmp_path / "big.yaml").endswith("big.yaml: has 100 MB; at most 1.00 MB are read")


def test_file_at_the_limit_is_read(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("a: 1\n".ljust(MAX_BYTES, "\n"))
    assert read(file).data == {"a": 1}
    file.write_text("a: 1\n".ljust(MAX_BYTES + 1, "\n"))
    assert "at most" in _fault(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is a binary file, not YAML or JSON"),
        (b"\xff\xfea\x00:\x00 \x001\x00", "is a binary file, not YAML or JSON"),
        (b"a: 1\nb: \xff\n", "2: is not UTF-8 text"),
        (b"", "is empty; a mapping is expected"),
    ],
)
def test_what_is_not_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_bytes(content)
    assert _fault(file).endswith(message)


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000, "a/" * 3000])
def test_impossible_name_is_refused_in_one_short_line(name: str) -> None:
    assert len(_fault(name)) < 300


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(content)
    with suppress(ConfigError):
        assert isinstance(read(file), Document)


def test_setting_replaces_adds_and_reaches_into_lists() -> None:
    document = parse("a: {b: [1, {c: 2}]}\nd: null\n")
    changed = override(document, ["a.b.1.c=3e1", "a.new.key=off", "d.e=[x, y]", "a.b.0="])
    assert changed.data == {"a": {"b": [None, {"c": 30.0}], "new": {"key": "off"}}, "d": {"e": ["x", "y"]}}
    assert document.data == {"a": {"b": [1, {"c": 2}]}, "d": None}


def test_later_setting_wins() -> None:
    assert override(parse("a: 0"), ["a=1", "a=2"]).data == {"a": 2}


def test_place_of_a_set_value_is_its_flag() -> None:
    node = override(parse("a: {b: 1}", file="f.yaml"), ["a.b=2"]).get("a.b")
    assert isinstance(node, Scalar)
    assert (node.place.file, node.place.line) == ("--set a.b", None)


def test_place_of_an_untouched_value_is_its_file() -> None:
    document = override(parse("a: {b: 1, c: 2}", file="f.yaml"), ["a.b=2"])
    node = document.get("a.c")
    assert node is not None
    assert (node.place.file, node.place.column) == ("f.yaml", 14)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("nothing", "--set nothing: is not of the form path.to.key=value"),
        ("=1", "is not of the form path.to.key=value"),
        ("a..b=1", "is not of the form path.to.key=value"),
        ("x.y=1", "--set x.y: x.y: cannot be set: 'x' is 'text', not a mapping"),
        ("a.b.2=1", "--set a.b.2: a.b.2: no item 2; 'a.b' has 2, numbered from 0"),
        ("a.b.-1=1", "no item -1"),
        ("a.b.one=1", "no item one"),
        ("a=[1,", "--set a: is not valid YAML"),
        ("a=1e400", "--set a: 1e400 is not a finite number"),
        ("a=!!python/name:os.system", "is not allowed; write the plain value"),
        ("a={b: 1, b: 2}", "--set a: b: duplicate key"),
        ("a=" + "[" * 1000, "nested more than 64 levels deep"),
    ],
)
def test_setting_that_leads_nowhere_is_refused(setting: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override(parse("a: {b: [1, 2]}\nx: text"), [setting])
    assert message in str(caught.value)


@given(st.text(), st.text())
def test_any_setting_is_applied_or_refused_with_a_config_error(path: str, value: str) -> None:
    with suppress(ConfigError):
        assert override(parse("a: {b: [1, 2]}"), [f"{path}={value}"]).data


def test_fault_at_a_missing_path_is_placed_at_what_exists_of_it() -> None:
    fault = parse("a:\n  b: {c: 1}", file="f.yaml").fault("a.b.x.y", "wrong")
    assert str(fault) == "f.yaml:2:6: a.b.x.y: wrong"


@pytest.mark.parametrize("step", ["²", "٣", "9" * 40])
def test_index_is_ascii_digits_of_an_item_that_exists(step: str) -> None:
    assert child(parse("a: [1]").root.entries["a"].node, step) is None


def test_setting_cannot_nest_deeper_than_a_file_can() -> None:
    deepest = parse("a: 1").data | override(parse("b: 1"), [".".join("a" * MAX_DEPTH) + "=1"]).data
    assert "b" in deepest
    with pytest.raises(ConfigError, match=r"^--set a\.a\..*nested more than 64 levels deep$") as caught:
        override(parse("b: 1"), [".".join("a" * 5000) + "=1"])
    assert len(str(caught.value)) < 200
