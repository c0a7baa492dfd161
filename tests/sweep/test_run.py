"""Running cases: each once, in groups, whatever dies on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path

import pytest

from specsim.engine.identity import run_key
from specsim.sweep import in_process, local_workers
from specsim.sweep.outcome import Outcome
from specsim.sweep.plan import Case
from specsim.sweep.run import MAX_DEATHS, SweepRun
from specsim.sweep.store import Store
from specsim.sweep.sweep import SweepJob
from specsim.sweep.workers import Workers
from tests.sweep.small import RATES, SMALL, Refusing


class Dying(Executor):
    """Runs each call at once; a group with a deadly key breaks it for good, as a dead process does a pool."""

    deadly: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.is_broken = False
        self.groups: list[int] = []

    def submit(self, function: Callable[..., object], /, *args: object, **kwargs: object) -> Future:
        if self.is_broken:
            raise BrokenExecutor("broken before")
        future: Future = Future()
        work = args[0]
        assert isinstance(work, list)
        self.groups.append(len(work))
        if self.deadly & {key for key, _ in work}:
            self.is_broken = True
            future.set_exception(BrokenExecutor("a worker died"))
        else:
            future.set_result(function(*args, **kwargs))
        return future


def outcomes(run: SweepRun, job: SweepJob, cases: list[Case] | None = None) -> list[tuple[Case, Outcome]]:
    """Return all outcomes of the first cases of a job."""
    cases = job.first_cases() if cases is None else cases
    return list(run.outcomes(job.plan, cases, num_cases=len(cases)))


def test_every_case_comes_out_once() -> None:
    job = SweepJob.of(SMALL, ["K=0..3", RATES])
    found = outcomes(SweepRun(in_process()), job)
    assert sorted(case for case, _ in found) == job.first_cases()
    assert not any(outcome.has_failed for _, outcome in found)


def test_equal_scenarios_are_simulated_once() -> None:
    # Both names stand for the same scenario, since a run's key leaves its name out.
    job = SweepJob.of(SMALL, ["name=one,two"])
    run = SweepRun(in_process())
    found = outcomes(run, job)
    assert len(found) == 2
    assert found[0][1] == found[1][1]
    assert run.num_simulated == 1


def test_an_outcome_that_is_known_is_not_simulated(tmp_path: Path) -> None:
    job = SweepJob.of(SMALL, [RATES])
    first = outcomes(SweepRun(in_process(), Store(tmp_path)), job)
    again = outcomes(SweepRun(Workers(1, Refusing, share_disk=True), Store(tmp_path)), job)
    assert dict(first) == dict(again)


def test_a_faulty_point_is_an_outcome_with_its_error() -> None:
    job = SweepJob.of(SMALL, ["distributions.acceptance_rate=0.5,1.5"])
    found = dict(outcomes(SweepRun(in_process()), job))
    assert not found[Case(0, 0)].has_failed
    assert "acceptance_rate" in found[Case(1, 0)].error
    assert "\n" not in found[Case(1, 0)].error


def test_a_point_that_does_not_fit_fails_alone() -> None:
    job = SweepJob.of("chat_8b", ["hardware.target=h100-sxm,t4"], settings=["workload.num_prompts=2"])
    found = dict(outcomes(SweepRun(in_process()), job, job.first_cases()))
    assert not found[Case(0, 0)].has_failed
    assert "lacks" in found[Case(1, 0)].error


def _with_deadly(job: SweepJob, *points: int) -> Workers:
    keys = frozenset(run_key(job.plan.scenario(Case(point, 0))) for point in points)
    executor = type("DyingHere", (Dying,), {"deadly": keys})
    return Workers(2, executor, share_disk=True)


def test_a_run_that_kills_its_worker_is_given_up_and_no_other_is_lost() -> None:
    job = SweepJob.of(SMALL, ["K=0..3", RATES])
    found = outcomes(SweepRun(_with_deadly(job, 5)), job)
    assert sorted(case for case, _ in found) == job.first_cases()
    failed = [(case.point, outcome) for case, outcome in found if outcome.has_failed]
    assert [point for point, _ in failed] == [5]
    assert f"died {MAX_DEATHS} times" in failed[0][1].error
    assert not failed[0][1].is_lasting


def test_two_that_kill_their_workers_are_both_found() -> None:
    job = SweepJob.of(SMALL, ["K=0..3", RATES])
    found = outcomes(SweepRun(_with_deadly(job, 0, 11)), job)
    assert sorted(case.point for case, outcome in found if outcome.has_failed) == [0, 11]


def test_a_result_under_another_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    job = SweepJob.of(SMALL, ["K=1"])
    monkeypatch.setattr("specsim.sweep.run.run_key", lambda _: "0" * 64)
    ((_, outcome),) = outcomes(SweepRun(in_process()), job)
    assert "version of specsim or of a trace" in outcome.error
    assert not outcome.is_lasting


def test_a_bug_of_one_point_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("specsim.sweep.group.simulate", fail)
    ((_, outcome),) = outcomes(SweepRun(in_process()), SweepJob.of(SMALL, ["K=1"]))
    assert outcome.error == "internal error: ZeroDivisionError: division by zero"
    assert not outcome.is_lasting


def test_runs_are_grouped_to_about_a_second() -> None:
    run = SweepRun(in_process())
    assert run._group_size(1000) == 1
    run.num_simulated, run.simulated_s = 10, 1.0
    assert run._group_size(1000) == 10
    assert run._group_size(8) == 4
    assert run._group_size(0) == 1


def test_processes_give_what_this_process_gives(tmp_path: Path) -> None:
    job = SweepJob.of(SMALL, ["K=0..3", RATES])
    here = dict(outcomes(SweepRun(in_process()), job))
    run = SweepRun(local_workers(2), Store(tmp_path))
    killed = False
    there = {}
    for case, outcome in run.outcomes(job.plan, job.first_cases(), num_cases=12):
        there[case] = outcome
        if not killed:
            processes = run._executor._processes  # type: ignore[union-attr]
            os.kill(next(iter(processes)), signal.SIGKILL)
            killed = True
    run.close(is_finished=True)
    assert {case: outcome.figures for case, outcome in there.items()} == {
        case: outcome.figures for case, outcome in here.items()
    }
