"""The table of uniforms gives the numbers of the keyed luck, whatever was asked for before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specsim.speculation.uniforms import UniformTable
from specsim.streams import Purpose, RandomStreams

KEYS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 700)), min_size=1, max_size=20)
Pair = tuple[int, int]


@given(KEYS, KEYS)
def test_a_table_gives_the_uniform_of_each_key(before: list[Pair], keys: list[Pair]) -> None:
    table = UniformTable(RandomStreams(3).luck(Purpose.DRAFT), num_nodes=2)
    luck = RandomStreams(3).luck(Purpose.DRAFT)
    table.at(*np.array(before).T)
    found = table.at(*np.array(keys).T)
    for (request, position), uniforms in zip(keys, found, strict=True):
        assert uniforms.tolist() == [luck.along(request, position, 1, node=node)[0] for node in range(2)]


def test_a_table_that_was_emptied_gives_the_same_again() -> None:
    table = UniformTable(RandomStreams(3).luck(Purpose.STOP))
    request, position = np.arange(1100), np.zeros(1100, dtype=np.int64)
    first = table.at(request, position)
    np.testing.assert_array_equal(table.at(request, position), first)


def test_no_pairs_are_no_uniforms() -> None:
    table = UniformTable(RandomStreams(3).luck(Purpose.STOP))
    none = np.empty(0, dtype=np.int64)
    assert table.at(none, none).shape == (0, 1)
