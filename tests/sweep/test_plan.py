"""The plan: scenarios of points, common luck, and what makes two plans the same."""

from __future__ import annotations

import pytest

from specsim.errors import ConfigError
from specsim.sweep.plan import Case
from specsim.sweep.sweep import SweepJob
from specsim.sweep.workers import in_process
from tests.sweep.small import RATES, SMALL


def test_a_case_is_the_scenario_with_the_settings_of_its_point() -> None:
    plan = SweepJob.of(SMALL, ["K=1,3", RATES]).plan
    scenario = plan.scenario(Case(4, 0))
    assert scenario.num_speculative_tokens == 3
    assert scenario.distributions.acceptance_rate == 0.5


def test_every_point_has_the_same_seed_and_replications_the_next_ones() -> None:
    plan = SweepJob.of(SMALL, ["K=1,3"], settings=["seed=7"]).plan
    assert [plan.scenario(Case(point, r)).seed for r in (0, 2) for point in (0, 1)] == [7, 7, 9, 9]


def test_a_seed_without_room_for_replications_is_refused() -> None:
    plan = SweepJob.of(SMALL, ["K=1"], settings=[f"seed={2**63 - 1}"]).plan
    with pytest.raises(ConfigError, match="leaves no room for replication 1"):
        plan.scenario(Case(0, 1))


@pytest.mark.parametrize("turn", [1, -1])
def test_a_device_and_a_figure_of_it_can_both_be_varied(turn: int) -> None:
    axes = ["hardware.target=h100-sxm,l4", "hardware.target.memory.bandwidth_bytes_per_s=1e12,2e12"]
    plan = SweepJob.of("chat_8b", axes[::turn]).plan
    found = {
        (scenario.hardware.target.name, scenario.hardware.target.memory.bandwidth_bytes_per_s)
        for scenario in (plan.scenario(Case(point.number, 0)) for point in plan.points)
    }
    assert found == {(name, width) for name in ("h100-sxm", "l4") for width in (1e12, 2e12)}


def test_an_axis_may_complete_a_scenario() -> None:
    without = SMALL.replace("acceptance_rate: 0.7", "")
    assert len(SweepJob.of(without, [RATES]).plan.points) == 3


def test_a_mistyped_key_is_a_fault_of_the_input() -> None:
    with pytest.raises(ConfigError, match="num_speculative_token: unknown key"):
        SweepJob.of(SMALL, ["speculative_config.num_speculative_token=1,2"])


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ([], "nothing is varied"),
        (["K=1", "K=2"], "is varied twice"),
        (["hardware.target=nosuch"], "no accelerator profile"),
    ],
)
def test_axes_that_make_no_plan_are_refused(vary: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SweepJob.of(SMALL, vary)


def test_the_fingerprint_tells_plans_apart() -> None:
    jobs = [
        SweepJob.of(SMALL, ["K=1,2"]),
        SweepJob.of(SMALL, ["K=1,3"]),
        SweepJob.of(SMALL, ["K=1,2"], settings=["workload.num_prompts=3"]),
        SweepJob.of(SMALL, ["workload.num_prompts=1,2"]),
    ]
    assert len({job.fingerprint for job in jobs}) == len(jobs)
    assert SweepJob.of(SMALL, ["K=1,2"]).fingerprint == jobs[0].fingerprint


def test_infinite_rate_is_a_value_of_an_axis() -> None:
    settings = ["workload.max_concurrency=null", "workload.num_prompts=2", "workload.output_tokens=8"]
    job = SweepJob.of("chat_8b", ["workload.request_rate=1,.inf"], settings=settings)
    assert [point.labels for point in job.plan.points] == [(1,), ("inf",)]
    rates = [job.plan.scenario(Case(number, 0)).workload.request_rate for number in (0, 1)]
    assert rates == [1.0, "inf"]
    table = job.run(workers=in_process())
    assert table.num_failed == 0
