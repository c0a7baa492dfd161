"""YAML 1.2: what values mean, where they stand, and every kind of text that is refused."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.config import parse
from specsim.config.nodes import Scalar
from specsim.config.yaml import MAX_BYTES, MAX_DEPTH, MAX_INTEGER
from specsim.errors import ConfigError


def _faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, file="f.yaml")
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.35e12", 3.35e12),
        ("80e9", 80e9),
        (".5", 0.5),
        ("-2", -2),
        ("010", 10),
        ("0o17", 15),
        ("0x1f", 31),
        ("off", "off"),
        ("yes", "yes"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("true", True),
        ("~", None),
        ("", None),
        ("'3'", "3"),
        ("inf", "inf"),
        ("|\n  two\n  lines", "two\nlines"),
    ],
)
def test_plain_value_means_what_the_yaml_1_2_core_schema_says(text: str, expected: object) -> None:
    value = parse(f"key: {text}").data["key"]
    assert value == expected
    assert type(value) is type(expected)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=20), _JSON, max_size=4))
def test_json_is_read_as_json_reads_it(data: dict[str, object]) -> None:
    # YAML takes no DEL as it is, which JSON would write so.
    text = json.dumps(data).replace("\x7f", "\\u007f")
    assert parse(text, file="config.json").data == data


def test_json_indented_by_tabs_is_read() -> None:
    assert parse('{\n\t"a":\t[1,\t2]\n}', file="config.json").data == {"a": [1, 2]}


def test_place_of_a_value_is_its_line_and_column() -> None:
    node = parse("# comment\nmemory:\n  capacity: 80e9\n", file="f.yaml").get("memory.capacity")
    assert isinstance(node, Scalar)
    assert (node.place.file, node.place.line, node.place.column) == ("f.yaml", 3, 13)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "f.yaml: is empty; a mapping is expected"),
        ("# only a comment\n", "f.yaml: is empty; a mapping is expected"),
        ("[1, 2]", "f.yaml:1:1: the top level is not a mapping of keys to values"),
        ("just text", "f.yaml:1:1: the top level is not a mapping of keys to values"),
        ("a: .nan", "f.yaml:1:4: a: .nan is not a finite number"),
        ("a: [0, -.inf]", "f.yaml:1:8: a.1: -.inf is not a finite number"),
        ("a: {b: 1e400}", "f.yaml:1:8: a.b: 1e400 is not a finite number"),
        ("1: a", "f.yaml:1:1: the key 1 is not a string; quote it"),
        ("a: {true: 1}", "f.yaml:1:5: a: the key True is not a string; quote it"),
        ("? [a]\n: 1", "f.yaml:1:3: the key a mapping or list is not a string; quote it"),
        (
            "a: !!python/object:os.system {}",
            "f.yaml:1:4: a: the tag '!!python/object:os.system' is not allowed",
        ),
        ("a: !!python/object/apply:os.system [ls]", "is not allowed; write the plain value"),
        ("a: !custom 1", "f.yaml:1:4: a: the tag '!custom' is not allowed; write the plain value"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document begins here; only one is allowed"),
        ("a: &x [*x]", "f.yaml:1:8: the alias '*x' stands inside what it stands for"),
        ("a: *x", "f.yaml:1:4: no anchor '&x' before this alias"),
        ("%YAML 1.1\n---\na: on", "is read as YAML 1.2; another %YAML version is not allowed"),
        ("a: [1, 2", "f.yaml:1:9: is not valid YAML"),
        ("a: b: c", "f.yaml:1:5: is not valid YAML"),
        ("a: \x01", "is not valid YAML"),
        ('a: "\\UFFFFFFFF"', "is not valid YAML"),
        ('a: "\\ud83d"', "f.yaml:1:4: a: holds half of a surrogate pair"),
    ],
)
def test_text_that_is_not_a_plain_mapping_is_refused_with_its_place(text: str, fault: str) -> None:
    (found,) = _faults(text)
    assert fault in found
    assert "\n" not in found


@pytest.mark.parametrize("digits", [20, 5000])
def test_integer_beyond_64_bits_is_refused(digits: int) -> None:
    (fault,) = _faults(f"a: {'9' * digits}")
    assert fault.startswith("f.yaml:1:4: a: the integer 99999")
    assert f"out of range; at most {MAX_INTEGER}" in fault


def test_largest_integer_is_read() -> None:
    assert parse(f"a: [{MAX_INTEGER}, {-MAX_INTEGER}]").data == {"a": [MAX_INTEGER, -MAX_INTEGER]}


def test_duplicate_keys_are_all_refused_with_both_places() -> None:
    assert _faults("a: 1\nb: {c: 1,\n    c: 2}\na: 3\n") == [
        "f.yaml:3:5: b.c: duplicate key; first given at 2:5",
        "f.yaml:4:1: a: duplicate key; first given at 1:1",
    ]


def test_alias_stands_for_what_it_names() -> None:
    assert parse("a: &x {b: [1]}\nc: *x").data == {"a": {"b": [1]}, "c": {"b": [1]}}


def test_bomb_of_aliases_is_refused_before_it_is_expanded() -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]
    (fault,) = _faults("\n".join(["a0: &a0 [x]", *levels]))
    assert "more than 50000 values, aliases expanded" in fault


def test_chain_of_aliases_cannot_nest_deeper_than_text_can() -> None:
    levels = [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 2 * MAX_DEPTH)]
    (fault,) = _faults("\n".join(["a0: &a0 [x]", *levels]))
    assert f"nested more than {MAX_DEPTH} levels deep" in fault


@pytest.mark.parametrize("text", ["a: " + "[" * 100_000, "{a: " * 100_000, "- " * 100_000])
def test_deep_nesting_is_refused(text: str) -> None:
    (fault,) = _faults(text)
    assert f"nested more than {MAX_DEPTH} levels deep" in fault


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = MAX_DEPTH - 1
    assert parse("a: " + "[" * depth + "]" * depth).data["a"]
    assert "nested" in _faults("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH)[0]


def test_long_text_is_refused() -> None:
    (fault,) = _faults("a" * (MAX_BYTES + 1))
    assert f"at most {MAX_BYTES} are read" in fault


def test_faults_found_before_the_text_breaks_are_kept() -> None:
    faults = _faults("a: .nan\na: 1\nb: [")
    assert len(faults) == 3
    assert "not valid YAML" in faults[-1]


_YAML_TEXT = st.text(
    alphabet=st.sampled_from(
        list("ab01.:-[]{}&*!|>'\"%@`#?,~\\<= \t\n\r\x00\x85\u2028\ufeff\U0001f600e_xouU")
    )
)


@given(st.text() | _YAML_TEXT)
def test_any_text_is_read_or_refused_with_a_config_error(text: str) -> None:
    with suppress(ConfigError):
        assert all(isinstance(key, str) for key in parse(text).data)


@pytest.mark.parametrize("text", ["a: .inf", "a: +.Inf", "a: inf"])
def test_infinity_is_the_word_that_json_can_hold(text: str) -> None:
    assert parse(text).data == {"a": "inf"}
