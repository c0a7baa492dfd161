"""Checks across fields of a document that is at fault elsewhere: all that can be made are, and no others."""

from __future__ import annotations

import json
from typing import Annotated, Literal, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, model_validator

from specsim.config import Spec, parse, validate
from specsim.config.base import refuse
from specsim.errors import ConfigError


class Load(Spec):
    users: int | None = None
    rate: float | None = None
    low: int = 1
    high: int = 9

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.users is not None and self.rate is not None:
            raise ValueError("users and rate exclude each other")
        return self

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        refuse([("low", "is above high")] if self.low > self.high else [])
        return self


class Fixed(Spec):
    kind: Literal["fixed"] = "fixed"
    most: int = 3


class Free(Spec):
    kind: Literal["free"] = "free"


class Root(Spec):
    load: Load
    policy: Annotated[Fixed | Free, Field(discriminator="kind")] = Fixed()
    classes: tuple[Load, ...] = ()
    seed: int = Field(default=0, ge=0)
    label: str = "x"

    @model_validator(mode="after")
    def _load_is_not_greedy(self) -> Self:
        refuse([("load.high", "is more than anybody has")] if self.load.high > 99 else [])
        return self

    @model_validator(mode="after")
    def _policy_fits(self) -> Self:
        too_many = isinstance(self.policy, Fixed) and self.policy.most > self.load.high
        refuse([("policy.most", "is above load.high")] if too_many else [])
        return self

    @model_validator(mode="after")
    def _label_counts_the_classes(self) -> Self:
        if self.label == f"{len(self.classes)}":
            refuse([("label", "is a mere number")])
        return self


def _faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validate(Root, parse(text, file="f"))
    return [str(fault).partition(": ")[2] for fault in caught.value.faults]


def test_every_check_is_made_where_all_fields_are_right() -> None:
    assert _faults(
        "load: {users: 1, rate: 1, low: 8, high: 2}\npolicy: {kind: fixed, most: 3}\nlabel: '0'"
    ) == [
        "load: users and rate exclude each other",
        "load.low: is above high",
        "policy.most: is above load.high",
        "label: is a mere number",
    ]


def test_a_check_is_made_beside_a_field_that_it_does_not_read() -> None:
    assert _faults("seed: x\nload: {users: 1, rate: 1, extra: 2}\nlabel: '0'") == [
        "seed: 'x' is not allowed; expected a valid integer",
        "load: users and rate exclude each other",
        "load.extra: unknown key (allowed: high, low, rate, users)",
        "label: is a mere number",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("load: {users: 1, rate: x}", "load.rate: 'x' is not allowed; expected a valid number"),
        ("load: {low: 20, high: x}", "load.high: 'x' is not allowed; expected a valid integer"),
        ("load: {high: 2}\npolicy: {kind: fixd, most: 5}", "policy.kind: 'fixd' is not allowed"),
        ("load: 3\npolicy: {kind: fixed, most: 500}", "load: 3 is not allowed; expected a mapping"),
        ("load: {}\nlabel: '0'\nclasses: [3]", "classes.0: 3 is not allowed; expected a mapping"),
        ("policy: {kind: fixed, most: 500}", "load: missing; it has no default"),
    ],
)
def test_a_check_that_reads_a_field_at_fault_says_nothing(text: str, fault: str) -> None:
    (found,) = _faults(text)
    assert found.startswith(fault)


def test_items_of_a_list_are_checked_each() -> None:
    assert _faults("load: {}\nclasses: [{low: 9, high: 1}, {users: 1, rate: 1, low: x}]\nlabel: '2'") == [
        "classes.0.low: is above high",
        "classes.1: users and rate exclude each other",
        "classes.1.low: 'x' is not allowed; expected a valid integer",
        "label: is a mere number",
    ]


def test_a_field_is_told_of_once() -> None:
    assert _faults("load: {}\nlabel: '0'\nseed: -1") == [
        "label: is a mere number",
        "seed: -1 is not allowed; expected greater than or equal to 0",
    ]


_VALUES = st.one_of(st.none(), st.integers(-2, 200), st.text("xy", max_size=2), st.lists(st.none()))
_LOADS = st.dictionaries(st.sampled_from(["users", "rate", "low", "high", "odd"]), _VALUES)


@settings(max_examples=40)
@given(load=_LOADS, classes=st.lists(_LOADS, max_size=2), seed=_VALUES, label=_VALUES)
def test_a_check_says_beside_other_faults_what_it_says_without_them(
    load: dict[str, object], classes: list[dict[str, object]], seed: object, label: object
) -> None:
    """So nothing is left unsaid, and nothing made up."""
    data = {"load": load, "classes": classes, "seed": seed, "label": label}
    try:
        validate(Root, parse(json.dumps(data)))
    except ConfigError as error:
        across = {fault.path for fault in error.faults if "exclude each other" in fault.message}
        for path, one in [("load", load), *((f"classes.{n}", one) for n, one in enumerate(classes))]:
            both = one.get("users"), one.get("rate")
            are_right = all(isinstance(value, int) for value in both)
            assert (path in across) == are_right
