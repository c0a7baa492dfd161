"""Faults of specs: every one at once, each with its place, what was given and what is allowed."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from specsim.config import Document, Spec, override, parse, validate
from specsim.config.base import refuse
from specsim.config.validate import nearest
from specsim.errors import ConfigError, Fault
from specsim.units import Bytes, BytesPerSecond


class Memory(Spec):
    bandwidth_bytes_per_s: BytesPerSecond = Field(gt=0)
    capacity_bytes: Bytes | None = Field(default=None, gt=0)


class Roofline(Spec):
    kind: Literal["roofline"]
    memory: Memory
    provenance: dict[str, Memory] = Field(default_factory=dict)


class Grid(Spec):
    kind: Literal["grid"]
    grid: tuple[Memory, ...] = ()


class Speculation(Spec):
    num_speculative_tokens: int = Field(ge=0, le=32)
    method: Literal["draft_model", "ngram"] = "draft_model"
    rejection_sample_method: str = "standard"


Device = Annotated[Roofline | Grid, Field(discriminator="kind")]


class Root(Spec):
    name: str
    device: Device
    draft: Literal["target", "cpu"] | Device = "target"
    speculative_config: Speculation | None = None
    request_rate: float | Literal["inf"] = "inf"
    shorten_last_draft: bool = False
    schedule: tuple[tuple[int, int, int], ...] = ()
    slo: dict[Annotated[str, Field(pattern="^p99_")], float] = Field(default_factory=dict)
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Root:
        if self.seed == 13:
            refuse([("speculative_config.method", "brings bad luck"), ("", "so does all of it")])
        if self.seed == 14:
            raise ConfigError([Fault("other.yaml", 3, 4, "key", "is wrong there")])
        if self.seed == 15:
            raise ValueError("fifteen, of all numbers")
        return self


_GOOD = "name: a\ndevice: {kind: grid}\n"


def _faults(text: str, *settings: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validate(Root, override(parse(text, file="f.yaml"), settings))
    return [str(fault) for fault in caught.value.faults]


def _faults_of(document: Document) -> tuple[Fault, ...]:
    try:
        validate(Root, document)
    except ConfigError as error:
        return error.faults
    return ()


def test_valid_document_becomes_its_spec() -> None:
    text = """
        name: a
        device: {kind: roofline, memory: {bandwidth_bytes_per_s: 3.35 TB/s, capacity_bytes: 80e9}}
        draft: {kind: grid, grid: [{bandwidth_bytes_per_s: 1}]}
        schedule: [[1, 4, 5], [5, 32, 3]]
        request_rate: 2
    """
    root = validate(Root, parse(text))
    assert isinstance(root.device, Roofline)
    assert root.device.memory == Memory(bandwidth_bytes_per_s=3.35e12, capacity_bytes=80e9)
    assert isinstance(root.draft, Grid)
    assert root.schedule == ((1, 4, 5), (5, 32, 3))


def test_all_faults_come_at_once_sorted_by_line() -> None:
    text = """seedy: 1
device: {kind: roofline, memory: {bandwidth_bytes_per_s: -3, capacity_byte: 3}}
speculative_config:
  num_speculative_token: 3
  method: ngrams
seed: x
"""
    assert _faults(text) == [
        "f.yaml:1:1: name: missing; it has no default",
        "f.yaml:1:1: seedy: unknown key (did you mean 'seed'?)",
        "f.yaml:2:58: device.memory.bandwidth_bytes_per_s: -3 is not allowed; expected greater than 0",
        "f.yaml:2:62: device.memory.capacity_byte: unknown key (did you mean 'capacity_bytes'?)",
        "f.yaml:4:3: speculative_config.num_speculative_token: "
        "unknown key (did you mean 'num_speculative_tokens'?)",
        "f.yaml:4:3: speculative_config.num_speculative_tokens: missing; it has no default",
        "f.yaml:5:11: speculative_config.method: "
        "'ngrams' is not allowed (did you mean 'ngram'? allowed: draft_model, ngram)",
        "f.yaml:6:7: seed: 'x' is not allowed; expected a valid integer",
    ]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("device: {}", "f.yaml:2:9: device.kind: missing; allowed: grid, roofline"),
        (
            "device: {kind: roofine}",
            "f.yaml:2:16: device.kind: 'roofine' is not allowed "
            "(did you mean 'roofline'? allowed: grid, roofline)",
        ),
        ("device: {kind: [1]}", "f.yaml:2:16: device.kind: a list is not allowed (allowed: grid, roofline)"),
        ("device: 3", "f.yaml:2:9: device: 3 is not allowed; expected a mapping"),
        (
            "device: {kind: roofline, memory: 3, x: 1}",
            "f.yaml:2:37: device.x: unknown key (allowed: kind, memory, provenance)",
        ),
        (
            "device: {kind: grid, grid: [{bandwidth_bytes_per_s: 1}, {}]}",
            "f.yaml:2:57: device.grid.1.bandwidth_bytes_per_s: missing; it has no default",
        ),
        (
            "device: {kind: roofline, memory: {bandwidth_bytes_per_s: 1}, provenance: {a.b: {}}}",
            "device.provenance.a.b.bandwidth_bytes_per_s: missing; it has no default",
        ),
    ],
)
def test_tag_of_a_union_is_no_part_of_the_path(line: str, fault: str) -> None:
    assert fault in "\n".join(_faults(f"name: a\n{line}"))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("draft: gpu", "f.yaml:3:8: draft: 'gpu' is not allowed; expected 'target' or 'cpu' or a mapping"),
        ("draft: {kind: roofline}", "f.yaml:3:8: draft.memory: missing; it has no default"),
        ("draft: {kind: gird}", "f.yaml:3:15: draft.kind: 'gird' is not allowed (did you mean 'grid'?"),
        (
            "request_rate: fast",
            "f.yaml:3:15: request_rate: 'fast' is not allowed; expected a valid number or 'inf'",
        ),
        ("request_rate: [1]", "f.yaml:3:15: request_rate: a list is not allowed"),
        ("speculative_config: 4", "f.yaml:3:21: speculative_config: 4 is not allowed; expected a mapping"),
        ("schedule: [[1, 2]]", "f.yaml:3:12: schedule.0.2: missing; it has no default"),
        ("schedule: [[1, 2, 2.5]]", "f.yaml:3:19: schedule.0.2: 2.5 is not allowed"),
        ("schedule: 3", "f.yaml:3:11: schedule: 3 is not allowed; expected a list"),
        ("seed: -1", "f.yaml:3:7: seed: -1 is not allowed; expected greater than or equal to 0"),
        ("shorten_last_draft: maybe", "f.yaml:3:21: shorten_last_draft: 'maybe' is not allowed"),
        ("seed: true", "f.yaml:3:7: seed: true is not allowed; expected a number"),
        ("request_rate: false", "f.yaml:3:15: request_rate: false is not allowed; expected a number"),
        ("schedule: [[1, 2, '3']]", "f.yaml:3:19: schedule.0.2: '3' is a string; write the number without"),
        ("seed: '7'", "f.yaml:3:7: seed: '7' is a string; write the number without quotes"),
        ("seed: 15", "f.yaml:1:1: fifteen, of all numbers"),
        ("seed: 14", "other.yaml:3:4: key: is wrong there"),
    ],
)
def test_fault_says_what_was_given_and_what_is_allowed(line: str, fault: str) -> None:
    (found,) = _faults(_GOOD + line)
    assert found.startswith(fault)


@pytest.mark.parametrize("given", ["yes", "off", "1", "0", "1.0", "'true'", "t"])
def test_what_is_not_a_boolean_in_yaml_is_not_read_as_one(given: str) -> None:
    (fault,) = _faults(_GOOD + f"shorten_last_draft: {given}")
    assert fault.startswith("f.yaml:3:21: shorten_last_draft: ")
    assert fault.endswith("is not allowed; expected true or false")


def test_wrong_free_key_is_shown_with_its_place_and_what_would_be_right() -> None:
    (fault,) = _faults(_GOOD + "slo: {p98_ttft_ms: 1}")
    assert fault == (
        "f.yaml:3:7: slo.p98_ttft_ms: the key p98_ttft_ms is not allowed;"
        " expected a key that matches pattern '^p99_'"
    )


def test_long_key_is_shown_shortened() -> None:
    (fault,) = _faults(_GOOD + "?  " + "k" * 5000 + "\n: 1\n")
    assert len(fault) < 400


def test_check_across_fields_points_at_each_of_them() -> None:
    text = _GOOD + "seed: 13\nspeculative_config: {num_speculative_tokens: 1, method: ngram}\n"
    assert _faults(text) == [
        "f.yaml:1:1: so does all of it",
        "f.yaml:4:57: speculative_config.method: brings bad luck",
    ]


def test_check_across_fields_points_at_the_mapping_where_a_field_was_left_out() -> None:
    faults = _faults(_GOOD + "seed: 13\n")
    assert "f.yaml:1:1: speculative_config.method: brings bad luck" in faults


def test_fault_of_a_setting_points_at_its_flag_after_those_of_the_file() -> None:
    faults = _faults(_GOOD + "draft: gpu\n", "seed=-1", "speculative_config.method=ngram", "nam=x")
    assert [fault.split(": ")[0] for fault in faults] == [
        "f.yaml:3:8",
        "--set nam",
        "--set seed",
        "--set speculative_config.method",
    ]
    assert faults[1] == "--set nam: nam: unknown key (did you mean 'name'?)"


def test_key_that_cannot_be_printed_keeps_the_fault_on_one_line() -> None:
    (fault,) = _faults(_GOOD + '"a\\nb\\e[31m": 1\n')
    assert "\n" not in fault
    assert "\x1b" not in fault


def test_long_value_is_shown_shortened() -> None:
    (fault,) = _faults(_GOOD + f"draft: {'x' * 5000}\n")
    assert len(fault) < 200


@pytest.mark.parametrize(
    ("word", "expected"), [("h100-smx", "h100-sxm"), ("H100-SXM", "h100-sxm"), ("tpu", None), ("", None)]
)
def test_nearest_name_is_one_that_could_have_been_meant(word: str, expected: str | None) -> None:
    assert nearest(word, ["h100-sxm", "rtx-4090"]) == expected


_KEYS = sorted({key for spec in (Root, Speculation, Roofline, Grid, Memory) for key in spec.model_fields})
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["target", "cpu", "grid", "roofline", "ngram", "3 GB", "1 TB/s", "inf"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(list(Root.model_fields)), _VALUES))
def test_every_fault_of_any_document_has_a_place(data: dict[str, object]) -> None:
    document = parse(json.dumps(data), file="f.json")
    for fault in _faults_of(document):
        assert fault.file == "other.yaml" or fault.line == 1
        assert all(
            step in _KEYS or step.isdigit() for step in fault.path.split(".") if fault.line == 1 and step
        )
