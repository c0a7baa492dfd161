"""Prompt lookup: the recorder's index against a search written as the rule reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import DomainError
from specsim.recording import PromptLookup

TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=25)


def brute_force(context: list[int], lookup: PromptLookup) -> list[int]:
    """Copy what followed the earliest earlier occurrence of the longest n-gram that ends the context."""
    for length in range(lookup.prompt_lookup_max, lookup.prompt_lookup_min - 1, -1):
        if length >= len(context):
            continue
        for first in range(len(context) - length):
            if context[first : first + length] == context[-length:]:
                return context[first + length :][: lookup.num_proposed]
    return []


@given(
    prompt=TOKENS,
    token=TOKENS,
    shortest=st.integers(1, 3),
    more=st.integers(0, 3),
    num_proposed=st.integers(1, 6),
)
def test_proposals_equal_a_brute_force_lookup(
    prompt: list[int], token: list[int], shortest: int, more: int, num_proposed: int
) -> None:
    lookup = PromptLookup(shortest + more, shortest, num_proposed)
    found = lookup.proposals(np.array(prompt), np.array(token))
    for start in range(len(token)):
        expected = brute_force(prompt + token[:start], lookup)
        assert found[start].tolist() == expected + [-1] * (num_proposed - len(expected))


@given(prompt=TOKENS, token=TOKENS, start=st.integers(0, 24))
def test_a_proposal_sees_only_what_came_before_it(prompt: list[int], token: list[int], start: int) -> None:
    lookup = PromptLookup()
    changed = token[:start] + [9] * (len(token) - start)
    before = lookup.proposals(np.array(prompt), np.array(token))
    after = lookup.proposals(np.array(prompt), np.array(changed))
    np.testing.assert_array_equal(before[: start + 1], after[: start + 1])


def test_the_longest_match_goes_before_an_earlier_shorter_one() -> None:
    lookup = PromptLookup(prompt_lookup_max=2, num_proposed=1)
    assert lookup.proposals(np.array([2, 7, 1, 2, 8, 1]), np.array([2, 0])).tolist()[1] == [8]


def test_of_equal_matches_the_earliest_is_copied() -> None:
    lookup = PromptLookup(prompt_lookup_max=1, num_proposed=1)
    assert lookup.proposals(np.array([5, 6, 5, 7, 5]), np.array([0])).tolist() == [[6]]


def test_nothing_is_proposed_where_nothing_repeats() -> None:
    assert np.all(PromptLookup().proposals(np.arange(6), np.arange(6, 12)) == -1)


@pytest.mark.parametrize("settings", [(2, 3, 4), (2, 0, 4), (0, 0, 4), (2, 1, 0)])
def test_impossible_settings_are_refused(settings: tuple[int, int, int]) -> None:
    with pytest.raises(DomainError, match="prompt lookup"):
        PromptLookup(*settings)
