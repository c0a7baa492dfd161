"""Traces put together and taken apart lose nothing."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError
from specsim.speculation.trace import Trace
from specsim.speculation.trace_prompts import concatenate, of_domain, select_prompts
from tests.strategies import headers, random_trace


def assert_equal(one: Trace, other: Trace) -> None:
    assert one.header == other.header
    for field in fields(Trace)[1:]:
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=6), with_scalars=st.booleans(), data=st.data()
)
def test_a_trace_cut_into_prompts_and_joined_is_itself(
    lengths: list[int], with_scalars: bool, data: st.DataObject
) -> None:
    trace = random_trace(1, lengths, with_scalars=with_scalars)
    order = data.draw(st.permutations(range(len(lengths))))
    pieces = [select_prompts(trace, [number]) for number in order]
    joined = concatenate(pieces)
    joined.check()
    assert_equal(joined, select_prompts(trace, order))
    assert_equal(select_prompts(joined, np.argsort(order).tolist()), trace)


def test_sources_that_differ_are_joined() -> None:
    trace = random_trace(1, [3])
    other = replace(trace, header=headers(prompts="others"))
    assert concatenate([trace, other, trace]).header.prompts == "random; others"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 1.0}, "temperature: '0.7' and '1.0'"),
        ({"target": "another"}, "target: 'target-of-tests' and 'another'"),
        ({"top_k": 5}, "top_k: 'None' and '5'"),
        ({"sha256": {"target": "1" * 64}}, "sha256"),
    ],
)
def test_traces_of_another_law_are_refused(change: dict[str, object], message: str) -> None:
    trace = random_trace(1, [3])
    with pytest.raises(ConfigError, match=message):
        concatenate([trace, replace(trace, header=headers(**change))])


def test_traces_that_record_other_things_are_refused() -> None:
    scalars, proposals = random_trace(1, [3]), random_trace(1, [3], with_scalars=False)
    with pytest.raises(ConfigError, match="'draft_argmax' is in one only"):
        concatenate([scalars, proposals])
    assert proposals.proposal_token is not None
    assert proposals.p_at_proposal is not None
    shallow = replace(
        proposals,
        proposal_token=proposals.proposal_token[:, :2],
        p_at_proposal=proposals.p_at_proposal[:, :2],
    )
    with pytest.raises(ConfigError, match="depth of proposal_token"):
        concatenate([proposals, shallow])


@pytest.mark.parametrize(
    ("prompts", "message"), [([], "at least one"), ([0, 2], "no prompt 2"), ([-1], "-1")]
)
def test_prompts_that_are_not_there_are_refused(prompts: list[int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        select_prompts(random_trace(1, [3, 4]), prompts)


def test_joining_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="no trace"):
        concatenate([])


def test_prompts_are_chosen_by_domain_and_language() -> None:
    trace = random_trace(1, [3, 4, 2, 5])
    named = replace(
        trace, domain=np.array(["chat", "code", "chat", "code"]), language=np.array(["en", "en", "fr", "de"])
    )
    assert_equal(of_domain(named), named)
    assert_equal(of_domain(named, domains=["chat"]), select_prompts(named, [0, 2]))
    assert_equal(of_domain(named, domains=["chat"], languages=["fr", "de"]), select_prompts(named, [2]))
    assert_equal(of_domain(named, domains=["code"], first=1), select_prompts(named, [1]))
    with pytest.raises(ConfigError, match="no such prompts; domains: chat, code; languages: de, en, fr"):
        of_domain(named, domains=["chat"], languages=["de"])
