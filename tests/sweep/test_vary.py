"""Axes as they are written on a command line."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.config import names
from specsim.config.nodes import Scalar
from specsim.errors import ConfigError
from specsim.sweep.vary import parse_axis


def labels(text: str) -> list[object]:
    """Return what the values of an axis are called."""
    return [value.label for value in parse_axis(text).listed()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=1,4,16", [1, 4, 16]),
        ("a.b=0..3", [0, 1, 2, 3]),
        ("a.b=0..8:4", [0, 4, 8]),
        ("a.b=0.0..1.0:0.25", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("a.b=1..1000:log:4", [1, 10, 100, 1000]),
        ("a.b=-2..2:lin:3", [-2, 0, 2]),
        ("a.b=1e12..4e12:log:3", [1e12, 2e12, 4e12]),
        ("a.b=1 TB/s..4 TB/s:log:3", [1e12, 2e12, 4e12]),
        ("a.b=2..4 GB:lin:2", [2e9, 4e9]),
        ("a.b=1 TB/s..3 TB/s:1", [1e12, 2e12, 3e12]),
        ("a.b=500 GB/s,2 TB/s", [5e11, 2e12]),
        ("a.b=true,false,null", [True, False, None]),
        (
            "a.b={kind: fixed},{kind: heuristic, x: [1, 2]}",
            ['{"kind": "fixed"}', '{"kind": "heuristic", "x": [1, 2]}'],
        ),
        ("a.b='x,y',z", ["x,y", "z"]),
        ("K=2,3", [2, 3]),
        ("a.b=1..4:log:9", [1, 2, 3, 4]),
    ],
)
def test_values_are_what_is_written(text: str, expected: list[object]) -> None:
    found = labels(text)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


def test_k_is_short_for_the_lookahead() -> None:
    assert parse_axis("K=1..2").key == "speculative_config.num_speculative_tokens"


@given(
    st.floats(1e-9, 1e9),
    st.floats(1.01, 1e6),
    st.integers(2, 40),
)
def test_equal_ratios_between_exact_ends(low: float, ratio: float, count: int) -> None:
    high = low * ratio
    values = [float(value) for value in labels(f"a={low!r}..{high!r}:log:{count}")]  # type: ignore[arg-type]
    assert values[0] == low
    assert values[-1] == high
    steps = [math.log(after / before) for before, after in itertools.pairwise(values)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)


@given(st.integers(-100, 100), st.integers(1, 200), st.floats(0, 1))
def test_whole_ranges_give_whole_values_inside(low: int, width: int, fraction: float) -> None:
    value = parse_axis(f"a={low}..{low + width}").at(fraction).label
    assert isinstance(value, int)
    assert low <= value <= low + width


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9, unique=True))
def test_fractions_reach_every_listed_value_in_equal_shares(values: list[int]) -> None:
    axis = parse_axis(f"a={','.join(map(str, values))}")
    count = len(values)
    assert [axis.at((index + 0.5) / count).label for index in range(count)] == values
    assert axis.at(1.0).label == values[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "not of the form"),
        ("=1", "not of the form"),
        ("a..b=1", "not of the form"),
        ("a=", "not of the form"),
        ("a=5..1", "the lower end comes first"),
        ("a=1..1", "the lower end comes first"),
        ("a=0..10:log:4", "ends above 0"),
        ("a=1..9:cubic:3", "is not a spacing"),
        ("a=1..9:log:1", "is not a spacing"),
        ("a=1..9:log:999999999999", "is not a spacing"),
        ("a=1..9:-2", "is not a spacing"),
        ("a=1..9:0.5", "leaves the whole numbers"),
        ("a=0..1:lin:5", "only 2 whole numbers"),
        ("a=0.0..1.0:1e-9", "more than 100000 values"),
        ("a=1 TB..4 GB:log:2", "have one unit"),
        ("a=1,1", "listed twice"),
        ("a=[1", "not valid YAML"),
        ("a=.nan", "not a finite number"),
        ("hardware.target=no-such-*", "matches no file and no name"),
    ],
)
def test_a_faulty_axis_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_axis(text).listed()
    assert "\n" not in str(caught.value)
    assert "--vary" in str(caught.value)


def test_a_range_without_a_number_of_values_can_only_be_sampled() -> None:
    axis = parse_axis("a=1.0..100.0:log")
    assert axis.at(0.5).label == pytest.approx(10.0)
    with pytest.raises(ConfigError, match="without a number of values"):
        axis.listed()


def test_patterns_stand_for_names_and_files(tmp_path: Path) -> None:
    shipped = [name for name in names("hardware_profiles") if name.startswith("rtx-")]
    assert labels("hardware.target=rtx-*") == shipped
    assert labels("hardware.target=hardware_profiles/rtx-*.yaml")[0] in (
        shipped[0],
        f"hardware_profiles/{shipped[0]}.yaml",
    )
    for name in ("b", "a"):
        (tmp_path / f"{name}.yaml").write_text("name: x")
    assert labels(f"hardware.target={tmp_path}/*.yaml") == [f"{tmp_path}/a.yaml", f"{tmp_path}/b.yaml"]


def test_a_quantity_is_put_in_with_its_unit_so_that_a_key_without_one_refuses_it() -> None:
    (value, _) = parse_axis("slo.p99_tpot_ms=20 ms..40 ms:lin:2").listed()
    assert isinstance(value.node, Scalar)
    assert (value.label, value.node.value) == (0.02, "20.0 ms")


def test_a_unit_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="'TBps' is no unit"):
        parse_axis("a.b=1 TBps..4 TBps:log:3")
