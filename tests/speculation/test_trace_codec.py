"""Columns of a trace as whole numbers: the stated rounding at any size, and nothing else lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError
from specsim.speculation.trace_codec import SMALLEST_PROBABILITY, decode, encode
from tests.strategies import random_trace

PROBABILITIES = st.floats(0.0, 1.0, width=32)


@given(st.lists(PROBABILITIES, min_size=1))
def test_a_probability_keeps_its_ratio_at_any_size(values: list[float]) -> None:
    column = np.array(values, dtype=np.float32)
    stored = decode(encode({"p_token": column}))["p_token"]
    is_kept = column >= SMALLEST_PROBABILITY
    np.testing.assert_allclose(stored[is_kept], column[is_kept], rtol=1e-3)
    assert np.all(stored[is_kept] > 0)
    assert np.all(stored[~is_kept] == 0)


@given(st.lists(PROBABILITIES, min_size=1))
def test_the_overlap_keeps_four_decimals(values: list[float]) -> None:
    column = np.array(values, dtype=np.float32)
    np.testing.assert_allclose(decode(encode({"overlap": column}))["overlap"], column, atol=1e-4)


@given(st.lists(PROBABILITIES, min_size=1), st.lists(st.floats(0, 30, width=32), min_size=1))
def test_what_was_rounded_once_is_not_rounded_again(p: list[float], entropy: list[float]) -> None:
    once = decode(
        encode({"q_token": np.array(p), "overlap": np.array(p), "draft_entropy_nats": np.array(entropy)})
    )
    twice = decode(encode(once))
    for name, column in once.items():
        np.testing.assert_array_equal(twice[name], column)


@given(
    st.integers(1, 8), st.integers(1, 6), st.sampled_from([64, 65_534, 65_535, 70_000, 2**31 - 1]), st.data()
)
def test_tokens_come_back_whatever_the_vocabulary(
    num: int, depth: int, largest: int, data: st.DataObject
) -> None:
    ids = st.integers(0, largest)
    token = np.array(data.draw(st.lists(ids, min_size=num, max_size=num)), dtype=np.int32)
    argmax = np.array(data.draw(st.lists(ids, min_size=num, max_size=num)), dtype=np.int32)
    flat = data.draw(st.lists(st.integers(-1, largest), min_size=num * depth, max_size=num * depth))
    proposal = np.array(flat, dtype=np.int32).reshape(num, depth)
    p = np.linspace(0.1, 0.9, num * depth).reshape(num, depth)
    columns = {"token": token, "p_token": p[:, 0], "proposal_token": proposal, "p_at_proposal": p}
    stored = decode(encode(columns | {"union_ids": proposal, "draft_argmax": argmax}))
    np.testing.assert_array_equal(stored["token"], token)
    np.testing.assert_array_equal(stored["draft_argmax"], argmax)
    np.testing.assert_array_equal(stored["proposal_token"], proposal)
    np.testing.assert_array_equal(stored["union_ids"], proposal)
    on_path = proposal == token[np.minimum(np.arange(num)[:, None] + np.arange(depth), num - 1)]
    np.testing.assert_allclose(stored["p_at_proposal"][~on_path], p[~on_path], rtol=1e-3)


def test_impossible_tokens_of_a_union_stay_impossible() -> None:
    log_p = np.array([[-0.5, -60.0, -np.inf]], dtype=np.float32)
    stored = decode(encode({"log_p": log_p}))["log_p"]
    np.testing.assert_allclose(stored, log_p, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("token", np.zeros(3, dtype=np.int64)),
        ("p_token", np.zeros(3, dtype=np.uint8)),
        ("p_token", np.zeros((3, 3), dtype=np.uint8)),
        ("q_token", np.zeros((2, 3), dtype=np.float32)),
    ],
)
def test_a_column_of_another_form_is_refused(
    name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> None:
    with pytest.raises(ConfigError, match=f"{name}: (not )?stored"):
        decode({name: array})


def test_a_lookup_that_goes_on_copying_costs_nothing_more() -> None:
    trace = random_trace(3, [40], with_scalars=False)
    depth = 4
    whole = np.append(trace.token, np.full(depth, -1))
    trace.proposal_token = np.array([whole[start : start + depth] for start in range(40)], dtype=np.int32)
    codes = encode({"token": trace.token, "proposal_token": trace.proposal_token})["proposal_token"]
    assert np.count_nonzero(codes[0, 1:, :-1]) == 0


@given(st.lists(st.tuples(PROBABILITIES, PROBABILITIES, PROBABILITIES), min_size=1))
def test_the_overlap_is_kept_beside_any_p_and_q(rows: list[tuple[float, float, float]]) -> None:
    p, q, overlap = (np.array(column, dtype=np.float32) for column in zip(*rows, strict=True))
    stored = decode(encode({"p_token": p, "q_token": q, "overlap": overlap}))
    np.testing.assert_allclose(stored["overlap"], overlap, atol=1e-4)
