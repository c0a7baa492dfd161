"""Quantities: what is read, what is refused, how they print."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from specsim.config import Spec
from specsim.units import (
    BANDWIDTH,
    COMPUTE,
    POWER,
    SIZE,
    TIME,
    Bytes,
    Dimension,
    format_bytes,
)


@pytest.mark.parametrize(
    ("dimension", "text", "expected"),
    [
        (TIME, "2 ms", 2e-3),
        (TIME, "28 us", 28e-6),
        (TIME, "28µs", 28e-6),
        (TIME, "1.5e-3 s", 1.5e-3),
        (TIME, "2 h", 7200.0),
        (SIZE, "80 GiB", 80 * 2**30),
        (SIZE, "80 GB", 80e9),
        (BANDWIDTH, "3.35 TB/s", 3.35e12),
        (BANDWIDTH, "400 Gbit/s", 50e9),
        (COMPUTE, "989 TFLOP/s", 989e12),
        (COMPUTE, "1978 TOPS", 1978e12),
        (POWER, "700 W", 700.0),
        (POWER, "1.2 kW", 1200.0),
    ],
)
def test_quantity_with_unit_is_read_in_si(dimension: Dimension, text: str, expected: float) -> None:
    assert dimension.parse(text) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_bare_number_is_read_as_si(value: float) -> None:
    assert TIME.parse(value) == value


@given(st.floats(min_value=0, max_value=1e12, allow_subnormal=False))
def test_prefix_scales_a_quantity_as_exactly_as_a_float_can(value: float) -> None:
    assert math.isclose(TIME.parse(f"{value!r} ms"), value / 1000, rel_tol=1e-15)


@pytest.mark.parametrize(
    ("dimension", "value", "message"),
    [
        (SIZE, "3 ms", "'3 ms' is not a size in bytes: unknown unit 'ms'"),
        (SIZE, "80 Gib", "did you mean 'GiB'?"),
        (BANDWIDTH, "400 Gb/s", "did you mean 'Gbit/s'?"),
        (SIZE, "80", "'80' has no unit"),
        (SIZE, "GiB", "'GiB' is not a size in bytes"),
        (SIZE, "1e400 GB", "is not a finite number"),
        (SIZE, "1e305 PB", "is not a finite number"),
        (SIZE, "9" * 200 + " B", "is not a size in bytes"),
        (SIZE, float("nan"), "nan is not a finite number"),
        (SIZE, float("-inf"), "-inf is not a finite number"),
        (SIZE, 10**400, "is not a finite number"),
        (SIZE, True, "True is not a size in bytes"),
        (SIZE, None, "None is not a size in bytes"),
        (SIZE, [1], "a list is not a size in bytes"),
    ],
)
def test_what_is_not_a_quantity_of_the_dimension_is_refused(
    dimension: Dimension, value: object, message: str
) -> None:
    with pytest.raises(ValueError, match="allowed: a number in ") as caught:
        dimension.parse(value)
    assert message in str(caught.value)


@given(st.text())
def test_any_text_is_read_or_refused_with_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert math.isfinite(TIME.parse(text))


class _Memory(Spec):
    capacity_bytes: Bytes = Field(gt=0)


def test_bound_of_a_field_holds_after_conversion() -> None:
    assert _Memory.model_validate({"capacity_bytes": "1 kB"}).capacity_bytes == 1000
    with pytest.raises(ValidationError, match="greater than 0"):
        _Memory.model_validate({"capacity_bytes": "-1 kB"})


def test_schema_of_a_quantity_is_number_or_string() -> None:
    field = _Memory.model_json_schema()["properties"]["capacity_bytes"]
    assert [option["type"] for option in field["anyOf"]] == ["number", "string"]


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [(0, "0 B"), (999, "999 B"), (999.6e9, "1.00 TB"), (16_060_522_496, "16.1 GB"), (5e15, "5000 TB")],
)
def test_bytes_print_with_three_digits(size_bytes: float, expected: str) -> None:
    assert format_bytes(size_bytes) == expected
