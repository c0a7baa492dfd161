"""The serving loop against timelines made by hand."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.arrays import MAX_CLOCK_PS
from specsim.engine.draft_cache import FirstPass
from specsim.errors import DomainError
from specsim.results.table import Labels
from tests.engine.doubles import LinearCost, run


def test_one_request_is_a_prefill_then_one_token_a_step() -> None:
    recorder, env = run(prompts=[10], outputs=[4], target=LinearCost(100, prefill_is_free=True))
    assert env.now == 300
    steps = recorder.take_steps()
    assert isinstance(steps["start_s"], np.ndarray)
    assert (steps["start_s"] * 1e12).round().tolist() == [0, 0, 100, 200]
    assert steps["num_emitted"].tolist() == [1, 1, 1, 1]
    assert recorder.num_output_tokens.tolist() == [4]


def test_a_round_drafts_then_verifies_and_emits_what_was_accepted() -> None:
    # Positions 1, 3, 6 of a script that accepts up to each multiple of 3: emits 2, 3, 1.
    recorder, env = run(
        prompts=[5],
        outputs=[7],
        num_drafted=2,
        target=LinearCost(100, prefill_is_free=True),
        draft=LinearCost(10, prefill_is_free=True),
    )
    rounds = recorder.take_rounds()
    assert rounds["num_emitted"].tolist() == [2, 3, 1]
    assert rounds["num_accepted"].tolist() == [1, 2, 1]
    assert env.now == 3 * (100 + 2 * 10)


def test_the_cap_inside_a_round_ends_it_there_and_drafts_past_it_are_drafted_only() -> None:
    recorder, _ = run(prompts=[5], outputs=[2], num_drafted=2, draft=LinearCost(10))
    rounds = recorder.take_rounds()
    assert rounds["num_drafted"].tolist() == [2]
    assert rounds["num_accepted"].tolist() == [1]
    assert rounds["num_emitted"].tolist() == [1]


def test_a_request_of_one_token_ends_with_its_prefill() -> None:
    recorder, env = run(prompts=[5, 5], outputs=[1, 3], max_num_seqs=1)
    assert recorder.num_output_tokens.tolist() == [1, 3]
    assert (recorder.finish_s * 1e12).round().tolist() == [100, 400]
    assert env.now == 400


def test_a_draft_on_its_own_device_takes_turns_with_the_target() -> None:
    shared, own = (
        run(prompts=[9, 9], outputs=[20, 30], num_drafted=2, draft=LinearCost(7), own_device=own)[1].now
        for own in (False, True)
    )
    assert shared == own


def test_a_request_that_arrives_during_a_block_is_prefilled_after_the_round_under_way() -> None:
    recorder, _ = run(prompts=[4, 4], outputs=[50, 2], arrival_ps=[0, 1050])
    # Prefill to 100, rounds of 100 each: the arrival at 1050 waits for the end of the round at 1100.
    assert (recorder.first_token_s * 1e12).round().tolist() == [100, 1200]


def test_time_passes_without_work_until_the_next_arrival() -> None:
    recorder, _ = run(prompts=[4, 4], outputs=[1, 1], arrival_ps=[500, 9000])
    assert (recorder.first_token_s * 1e12).round().tolist() == [600, 9100]


@given(
    data=st.data(),
    num_drafted=st.integers(0, 3),
    every=st.integers(1, 5),
    max_num_seqs=st.integers(1, 3),
    own_device=st.booleans(),
    first_pass=st.sampled_from(get_args(FirstPass)),
)
def test_single_steps_and_blocks_give_equal_tables(
    data: st.DataObject,
    num_drafted: int,
    every: int,
    max_num_seqs: int,
    own_device: bool,
    first_pass: FirstPass,
) -> None:
    lengths = st.lists(st.integers(1, 40), min_size=1, max_size=6)
    outputs = data.draw(lengths)
    arrivals = data.draw(
        st.none() | st.lists(st.integers(0, 5000), min_size=len(outputs), max_size=len(outputs))
    )

    def tables(horizon: int) -> list[tuple[str, list[object]]]:
        recorder, env = run(
            prompts=[7] * len(outputs),
            outputs=outputs,
            num_drafted=num_drafted,
            every=every,
            horizon=horizon,
            max_num_seqs=max_num_seqs,
            arrival_ps=None if arrivals is None else sorted(arrivals),
            target=LinearCost(100, position_ps=3, context_ps=1),
            draft=LinearCost(11, position_ps=2, context_ps=1) if num_drafted else None,
            own_device=own_device,
            first_pass=first_pass,
        )
        columns = recorder.take_steps() | {f"round_{k}": v for k, v in recorder.take_rounds().items()}
        listed = [
            (name, values.codes.tolist() if isinstance(values, Labels) else values.tolist())
            for name, values in columns.items()
        ]
        return [*listed, ("now", [env.now]), ("finish", recorder.finish_s.tolist())]

    assert tables(1) == tables(64)


@pytest.mark.parametrize("max_num_seqs", [1, 3])
def test_every_token_is_emitted_once(max_num_seqs: int) -> None:
    outputs = [5, 1, 17, 9, 2]
    recorder, _ = run(
        prompts=[3] * 5, outputs=outputs, num_drafted=2, draft=LinearCost(5), max_num_seqs=max_num_seqs
    )
    assert recorder.num_output_tokens.tolist() == outputs
    assert recorder.take_steps()["num_emitted"].sum() == sum(outputs)


def test_an_answer_of_one_token_ends_with_it_though_other_prompts_are_still_prefilled() -> None:
    recorder, env = run(prompts=[64, 64, 64], outputs=[1, 1, 2])
    assert (recorder.first_token_s * 1e12).round().tolist() == [100, 200, 300]
    assert (recorder.finish_s * 1e12).round().tolist() == [100, 200, 400]
    assert env.now == 400


def test_a_run_past_the_end_of_the_clock_is_refused() -> None:
    # 20 steps of a quarter of a million seconds each.
    with pytest.raises(DomainError, match=r"more than 4.61e\+06 s of simulated time"):
        run(prompts=[1], outputs=[20], target=LinearCost(MAX_CLOCK_PS // 18))
