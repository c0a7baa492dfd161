"""Lengths, classes and arrivals of requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from specsim.streams import Purpose, RandomStreams
from specsim.workload import ArrivalSpec, LengthLaw, LengthsSpec, arrival_times, build_requests, draw_lengths
from specsim.workload.requests import MAX_TOKENS


@given(
    mean=st.integers(10, 1000),
    stdev=st.floats(0.5, 500),
    uniforms=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
)
def test_lengths_stay_within_their_bounds_and_grow_with_the_uniform(
    mean: int, stdev: float, uniforms: list[float]
) -> None:
    law = LengthLaw(mean=mean, stdev=stdev, minimum=mean - 5, maximum=mean + 9)
    lengths = draw_lengths(law, np.sort(np.array(uniforms)))
    assert lengths.min() >= law.minimum
    assert lengths.max() <= law.maximum
    assert (np.diff(lengths) >= 0).all()


def test_truncation_leaves_no_heap_at_the_bounds() -> None:
    law = LengthLaw(mean=100, stdev=50.0, minimum=90, maximum=110)
    uniforms = RandomStreams(0).generator(Purpose.PROMPT_LENGTH).random(100_000)
    counts = np.bincount(draw_lengths(law, uniforms))[90:]
    assert counts.max() / counts.min() < 1.2


def test_classes_are_dealt_in_proportion_in_every_stretch() -> None:
    arrivals = ArrivalSpec(num_prompts=100, max_concurrency=1)
    lengths = LengthsSpec(prompt_tokens=1, output_tokens=1)
    requests = build_requests(
        RandomStreams(0), arrivals=arrivals, classes=(lengths, lengths), shares=(0.25, 0.75)
    )
    counts = np.cumsum(requests.request_class == 0)
    assert np.abs(counts - 0.25 * np.arange(1, 101)).max() <= 1
    assert requests.index_in_class[requests.request_class == 1].tolist() == list(range(75))


def test_burstiness_sets_the_variation_of_the_gaps() -> None:
    generator = RandomStreams(3).generator(Purpose.ARRIVAL)
    gaps = np.diff(arrival_times(generator, num_requests=200_000, rate_per_s=5.0, burstiness=0.25))
    assert gaps.mean() == pytest.approx(0.2, rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(2.0, rel=0.02)


def test_more_requests_do_not_change_those_before() -> None:
    lengths = LengthsSpec(prompt_tokens=50, prompt_tokens_stdev=20, output_tokens=50, output_tokens_stdev=9)
    few, many = (
        build_requests(
            RandomStreams(4),
            arrivals=ArrivalSpec(num_prompts=count, request_rate=2.0),
            classes=(lengths,),
            shares=(1.0,),
        )
        for count in (10, 1000)
    )
    assert few.num_prompt_tokens.tolist() == many.num_prompt_tokens[:10].tolist()
    assert few.arrival_s is not None
    assert many.arrival_s is not None
    assert few.arrival_s.tolist() == many.arrival_s[:10].tolist()


@pytest.mark.parametrize(
    "given_load",
    [{}, {"max_concurrency": 2, "request_rate": 1.0}, {"max_concurrency": 0}, {"request_rate": -1.0}],
)
def test_exactly_one_kind_of_load_is_given(given_load: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ArrivalSpec.model_validate({"num_prompts": 3} | given_load)


def test_a_mean_outside_its_bounds_is_refused() -> None:
    with pytest.raises(ValidationError, match="outside"):
        LengthsSpec(prompt_tokens=50, prompt_tokens_max=40)


@pytest.mark.parametrize(
    "given",
    [
        {"prompt_tokens": MAX_TOKENS + 1},
        {"output_tokens": 2**63 - 1},
        {"prompt_tokens": 1, "prompt_tokens_stdev": 1e300},
        {"prompt_tokens": 1, "prompt_tokens_max": 10**9},
    ],
)
def test_lengths_beyond_any_model_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="less than or equal to 100000000"):
        LengthsSpec.model_validate(given)


@pytest.mark.parametrize(
    "given", [{"request_rate": 1e-300}, {"request_rate": 1e300}, {"request_rate": 1, "burstiness": 1e-300}]
)
def test_arrivals_that_cannot_be_told_from_all_at_once_or_never_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=r"greater than or equal|less than or equal"):
        ArrivalSpec.model_validate(given)


@pytest.mark.parametrize("given", ["inf", float("inf")])
def test_an_infinite_rate_sends_all_requests_at_once(given: object) -> None:
    arrivals = ArrivalSpec.model_validate({"num_prompts": 5, "request_rate": given})
    assert arrivals.model_dump(mode="json")["request_rate"] == "inf"
    lengths = LengthsSpec(prompt_tokens=8, output_tokens=8)
    requests = build_requests(RandomStreams(0), arrivals=arrivals, classes=(lengths,), shares=(1.0,))
    assert requests.arrival_s is not None
    assert requests.arrival_s.tolist() == [0.0] * 5


@pytest.mark.parametrize("given", ["fast", "-inf", float("-inf"), float("nan")])
def test_another_word_or_number_without_end_is_no_rate(given: object) -> None:
    with pytest.raises(ValidationError):
        ArrivalSpec.model_validate({"request_rate": given})
