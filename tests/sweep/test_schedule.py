"""Schedules: the smallest lookahead that cannot be told from the best, by load."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.report.sweep_print import print_sweep
from specsim.sweep import SweepJob, in_process
from specsim.sweep.estimates import PointEstimate
from specsim.sweep.schedule import Rung, schedule, tensorrt_schedule, vllm_schedule


def _gain(mean: float, half_width: float | None = 0.0) -> PointEstimate:
    ends = (None, None) if half_width is None else (mean - half_width, mean + half_width)
    return PointEstimate(mean, *ends, 1)


def test_the_best_is_taken_where_intervals_tell_it_apart() -> None:
    assert schedule({1: {2: _gain(1.4), 4: _gain(1.5)}}) == [Rung(1, 1, 4)]


def test_the_smallest_is_taken_where_they_do_not() -> None:
    assert schedule({1: {2: _gain(1.4, 0.1), 4: _gain(1.5, 0.1)}}) == [Rung(1, 1, 2)]


def test_without_intervals_the_best_mean_is_taken() -> None:
    assert schedule({1: {2: _gain(1.4, None), 4: _gain(1.5, None)}}) == [Rung(1, 1, 4)]


@pytest.mark.parametrize("mean", [0.9, 1.0])
def test_where_none_pays_nothing_is_drafted(mean: float) -> None:
    assert schedule({8: {1: _gain(mean, 0.3), 4: _gain(0.5)}}) == [Rung(1, 8, 0)]


@given(
    best=st.dictionaries(st.integers(1, 512), st.integers(0, 8), min_size=1, max_size=8),
)
def test_ranges_cover_every_load_once_and_neighbours_differ(best: dict[int, int]) -> None:
    rungs = schedule(
        {load: {k: _gain(1.5 if k == length else 0.9) for k in range(9)} for load, length in best.items()}
    )
    for load, length in best.items():
        assert [r.num_speculative_tokens for r in rungs if r.lowest <= load <= r.highest] == [length]
    assert rungs[0].lowest == 1
    assert rungs[-1].highest == max(best)
    for before, after in pairwise(rungs):
        assert after.lowest == before.highest + 1
        assert after.num_speculative_tokens != before.num_speculative_tokens


def test_engines_get_it_in_their_own_form() -> None:
    rungs = [Rung(1, 4, 5), Rung(5, 32, 3)]
    assert vllm_schedule(rungs) == "[[1, 4, 5], [5, 32, 3]]"
    assert tensorrt_schedule(rungs) == "{4: 5, 32: 3}"


_VARY = ("workload.max_concurrency=1,4", "K=0,1,2")
_SHORT = ("workload.num_prompts=4", "workload.output_tokens=24")


def test_a_grid_over_load_and_lookahead_prints_its_schedule() -> None:
    table = SweepJob.of("chat_8b", _VARY, settings=_SHORT).run(workers=in_process())
    stream = io.StringIO()
    print_sweep(table, stream)
    (rung, *_) = table.about["analysis"]["schedule"]  # type: ignore[index, call-overload]
    assert f"num_speculative_tokens_per_batch_size: [[1, {rung['highest']}," in stream.getvalue()


@pytest.mark.parametrize("vary", [_VARY[:1], (*_VARY, "seed=1,2")])
def test_other_grids_have_none(vary: tuple[str, ...]) -> None:
    table = SweepJob.of("chat_8b", vary, settings=_SHORT).run(workers=in_process())
    assert table.about["analysis"] == {}
