"""Tables: complete, typed, sliced without copies, and the same as DataFrames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.results.schema import REQUESTS, ROUNDS, STEPS, Column
from specsim.results.table import Labels, Table
from tests.constant_cost import ClosedLoop

COLUMNS = (
    Column("arm", "str", "", "which"),
    Column("x", "float64", "s", "time"),
    Column("n", "int64", "", "how many"),
)


def small(arms: list[str]) -> Table:
    rows = np.arange(len(arms))
    return Table(COLUMNS, {"arm": np.array(arms, dtype=str), "x": rows / 2, "n": rows})


@given(st.lists(st.sampled_from(["baseline", "speculation", "other"]), max_size=20))
def test_rows_of_a_word_are_those_and_in_order(arms: list[str]) -> None:
    for word in ("baseline", "absent"):
        expected = [row for row, arm in enumerate(arms) if arm == word]
        assert small(arms).where("arm", word).ints("n").tolist() == expected


def test_contiguous_rows_are_a_view() -> None:
    table = small(["a", "b", "b", "c"])
    assert np.shares_memory(table.where("arm", "b").floats("x"), table.floats("x"))


@given(st.lists(st.text(max_size=3), max_size=30))
def test_labels_give_back_their_words(words: list[str]) -> None:
    kept = [word.rstrip("\0") for word in words]  # numpy's strings end at trailing NULs
    labels = Labels.of(np.array(kept, dtype=str))
    assert [labels.names[code] for code in labels.codes] == kept


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"arm": np.array(["a"]), "x": np.ones(1)}, r"missing columns \['n'\]"),
        (
            {"arm": np.array(["a"]), "x": np.ones(1), "n": np.ones(1), "y": np.ones(1)},
            r"undeclared columns \['y'\]",
        ),
        ({"arm": np.array(["a"]), "x": np.ones(2), "n": np.ones(1)}, "unequal length"),
        ({"arm": np.array(["a"]), "x": Labels.constant("a", 1), "n": np.ones(1)}, "words where numbers"),
    ],
)
def test_an_incomplete_table_is_refused(data: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Table(COLUMNS, data)


def test_words_and_numbers_are_not_mixed_up() -> None:
    with pytest.raises(TypeError, match="holds words"):
        small(["a"]).floats("arm")
    with pytest.raises(TypeError, match="holds numbers"):
        small(["a"]).labels("x")


def test_filled_columns_cost_no_memory_and_leave_the_others() -> None:
    table = small(["a", "b"])
    unknown = table.filled(np.nan, "x")
    assert np.isnan(unknown.floats("x")).all()
    assert unknown.floats("x").strides == (0,)
    assert unknown.ints("n").tolist() == [0, 1]
    assert table.floats("x").tolist() == [0.0, 0.5]


def test_frames_have_the_declared_columns_and_dtypes() -> None:
    result = ClosedLoop().result()
    for frame, columns in ((result.requests, REQUESTS), (result.steps, STEPS), (result.rounds, ROUNDS)):
        assert list(frame.columns) == [column.name for column in columns]
        for column in columns:
            expected = "category" if column.dtype == "str" else column.dtype
            assert frame[column.name].dtype == expected, column.name


def test_both_arms_are_in_the_frames() -> None:
    result = ClosedLoop().result()
    assert set(result.steps.arm) == {"baseline", "speculation"}
    assert (result.requests.groupby("arm", observed=True).size() == 8).all()
