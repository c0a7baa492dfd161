"""Designs: how many points, and where."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError
from specsim.streams import RandomStreams
from specsim.sweep.design import grid, latin_hypercube_fractions, sampled, uniform_fractions, zipped
from specsim.sweep.vary import parse_axis

AXES = [parse_axis("a=1,2,3"), parse_axis("b=x,y")]


def test_a_grid_is_every_combination_the_last_axis_fastest() -> None:
    points = grid(AXES)
    assert [point.labels for point in points] == list(itertools.product([1, 2, 3], ["x", "y"]))
    assert [point.number for point in points] == list(range(6))


def test_zip_goes_through_the_axes_together() -> None:
    points = zipped([parse_axis("a=1,2"), parse_axis("b=x,y")])
    assert [point.labels for point in points] == [(1, "x"), (2, "y")]


def test_zip_of_unequal_axes_is_refused() -> None:
    with pytest.raises(ConfigError, match="a has 3, b has 2"):
        zipped(AXES)


def test_too_many_points_are_refused_before_they_are_made() -> None:
    with pytest.raises(ConfigError, match="at most 1000000"):
        grid([parse_axis(f"a{number}=0..999") for number in range(3)])


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**32))
def test_a_latin_hypercube_has_one_point_in_each_slice_of_each_axis(count: int, axes: int, seed: int) -> None:
    fractions = latin_hypercube_fractions(count, axes, RandomStreams(seed))
    slices = np.floor(fractions * count).astype(int)
    assert all(sorted(slices[:, axis].tolist()) == list(range(count)) for axis in range(axes))


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**32))
def test_the_first_of_many_random_points_are_those_of_few(few: int, more: int, seed: int) -> None:
    many = uniform_fractions(few + more, 3, RandomStreams(seed))
    assert np.array_equal(many[:few], uniform_fractions(few, 3, RandomStreams(seed)))


def test_designs_depend_on_the_seed_alone() -> None:
    first, again, other = (latin_hypercube_fractions(8, 2, RandomStreams(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_sampled_points_lie_where_their_fractions_say() -> None:
    points = sampled([parse_axis("a=0.0..10.0"), parse_axis("b=x,y")], np.array([[0.25, 0.9], [1.0, 0.0]]))
    assert [point.labels for point in points] == [(2.5, "y"), (10.0, "x")]
