"""Percentiles under resampled prompts: equal to those of the sample written out, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.results.percentiles import Ranked, resampled_percentiles
from specsim.results.statistics import MAX_UNITS, Resampling
from specsim.streams import RandomStreams


@given(
    st.lists(st.tuples(st.floats(1, 100), st.integers(0, 5)), min_size=1, max_size=40),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.floats(0, 1),
    st.sampled_from([1, 3, None]),
)
def test_a_weighted_percentile_is_that_of_the_repeated_sample(
    drawn: list[tuple[float, int]], weights: list[int], probability: float, block: int | None
) -> None:
    values, unit = np.array([value for value, _ in drawn]), np.array([unit for _, unit in drawn])
    ranked = Ranked.of(values, unit, 6, block_size=block)
    ((found,),) = ranked.percentiles([probability], np.array([weights], np.float64))
    repeated = np.repeat(values, np.array(weights)[unit])
    if len(repeated):
        assert found == pytest.approx(np.percentile(repeated, 100 * probability))
    else:
        assert np.isnan(found)


def test_requests_without_a_value_do_not_count() -> None:
    values, prompt = np.array([5.0, np.nan, 5.0]), np.array([0, 1, 2])
    found = resampled_percentiles(values, prompt, [0.5, 0.99], Resampling(3, RandomStreams(0)))
    assert found.shape == (2, 2000)
    assert (found[~np.isnan(found)] == 5.0).all()
    # All three draws fall on the prompt without a value in 1 of 27 resamples.
    assert np.isnan(found).mean() == pytest.approx(1 / 27, abs=0.02)


def test_no_request_with_a_value_has_no_percentile() -> None:
    nothing = np.full(3, np.nan)
    assert np.isnan(
        resampled_percentiles(nothing, np.arange(3), [0.5], Resampling(3, RandomStreams(0)))
    ).all()


def test_the_median_of_many_prompts_spreads_as_the_normal_limit_says() -> None:
    # Standard error of a median: 1 / (2 f √n), with the density f of a standard normal at 0.
    num_prompts = 2 * MAX_UNITS
    values = np.random.Generator(np.random.PCG64(3)).standard_normal(num_prompts)
    (median,) = resampled_percentiles(
        values, np.arange(num_prompts), [0.5], Resampling(num_prompts, RandomStreams(0), num_resamples=500)
    )
    assert median.std() == pytest.approx(np.sqrt(np.pi / 2 / num_prompts), rel=0.25)
