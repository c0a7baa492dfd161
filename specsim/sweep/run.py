"""Running cases on workers: grouped to about a second, each run made once, whatever dies on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from specsim.engine.identity import run_key
from specsim.errors import ConfigError
from specsim.scenario import Scenario
from specsim.sweep.group import simulate_group
from specsim.sweep.outcome import Outcome
from specsim.sweep.plan import Case, SweepPlan
from specsim.sweep.store import Store
from specsim.sweep.workers import Workers

GROUP_S = 1.0
"""Runs are sent to a worker in groups that take about this long, s: sending one costs milliseconds."""
MAX_DEATHS = 2
"""How often a run may take its worker down with it before it is given up."""


@dataclass(slots=True)
class _Job:
    """One run to be made, for every case that asks for it."""

    key: str
    scenario: Scenario
    cases: list[Case]
    num_deaths: int = 0


@dataclass(slots=True)
class _Flight:
    """Jobs that a worker has been given together."""

    jobs: list[_Job]
    executor: Executor
    is_alone: bool


@dataclass(slots=True)
class SweepRun:
    """Cases on their way to outcomes.

    Parameters
    ----------
    workers
        Who simulates.
    store
        Where outcomes are kept and looked up; None: nowhere.
    runs
        Folder for whole runs, by key; None: they are not kept.
    """

    workers: Workers
    store: Store | None = None
    runs: Path | None = None
    trace_files: set[str] = field(default_factory=set)
    """Recorded traces that the cases seen so far name."""
    simulated_s: float = 0.0
    """Time that simulating took, summed over workers, s."""
    num_simulated: int = 0
    _executor: Executor | None = None
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _flights: dict[Future[list[Outcome]], _Flight] = field(default_factory=dict)
    _suspects: deque[_Job] = field(default_factory=deque)

    def outcomes(
        self, plan: SweepPlan, cases: Iterable[Case], *, num_cases: int
    ) -> Iterator[tuple[Case, Outcome]]:
        """Yield every case with its outcome, in the order in which they are done.

        Parameters
        ----------
        plan
            What the cases are of.
        cases
            The cases; taken as workers become free.
        num_cases
            How many there are.
        """
        feed = enumerate(cases, start=1)
        while True:
            yield from self._start(plan, feed, num_cases)
            if not self._flights:
                return
            done, _ = wait(self._flights, return_when=FIRST_COMPLETED)
            for future in done:
                for outcome in self._landed(future):
                    for case in self._jobs.pop(outcome.key).cases:
                        yield case, outcome

    def is_known(self, plan: SweepPlan, case: Case) -> bool:
        """Tell whether the outcome of a case is known without simulating it."""
        return isinstance(self._prepared(plan, case), Outcome)

    def close(self, *, is_finished: bool) -> None:
        """Let the workers go; without waiting for them if the sweep was interrupted."""
        for future in self._flights:
            future.cancel()
        if self._executor is not None:
            self._executor.shutdown(wait=is_finished)
            self._executor = None

    def _start(
        self, plan: SweepPlan, feed: Iterator[tuple[int, Case]], num_cases: int
    ) -> Iterator[tuple[Case, Outcome]]:
        """Keep two groups a worker on their way; yield the cases whose outcome is known without one."""
        group: list[_Job] = []
        while not self._suspects and len(self._flights) < 2 * self.workers.num_workers:
            number, case = next(feed, (0, None))
            if case is None:
                break
            made = self._prepared(plan, case)
            if isinstance(made, Outcome):
                yield case, made
            elif made is not None:
                group.append(made)
            if len(group) >= self._group_size(num_cases - number):
                self._submit(group)
                group = []
        if group:
            self._submit(group)
        if self._suspects and not self._flights:
            # Alone, so that the run that takes its worker down is told from those beside it.
            self._submit([self._suspects.popleft()], is_alone=True)

    def _group_size(self, num_left: int) -> int:
        """Return how many runs take about `GROUP_S`, fewer near the end, so that no worker is left idle."""
        if self.num_simulated == 0:
            return 1
        fitting = int(GROUP_S * self.num_simulated / max(self.simulated_s, 1e-6))
        return max(1, min(fitting, num_left // (2 * self.workers.num_workers)))

    def _prepared(self, plan: SweepPlan, case: Case) -> Outcome | _Job | None:
        """Return the outcome of a case if it is known, its job if it is new, None if it is on its way."""
        try:
            scenario = plan.scenario(case)
            key = run_key(scenario)
        except ConfigError as error:
            return Outcome.failed("", str(error), is_lasting=True)
        except OSError as error:
            return Outcome.failed("", f"{error.filename}: {error.strerror}", is_lasting=False)
        self.trace_files.update(scenario.trace_files())
        if key in self._jobs:
            self._jobs[key].cases.append(case)
            return None
        known = self.store.get(key) if self.store is not None else None
        if known is not None and (known.has_failed or self._is_run_kept(key)):
            return known
        self._jobs[key] = _Job(key, scenario, [case])
        return self._jobs[key]

    def _is_run_kept(self, key: str) -> bool:
        return self.runs is None or (self.runs / key).is_dir()

    def _submit(self, jobs: list[_Job], *, is_alone: bool = False) -> None:
        if self._executor is None:
            self._executor = self.workers.start()
        store = self.store.folder if self.store is not None and self.workers.share_disk else None
        work = [(job.key, job.scenario) for job in jobs]
        try:
            future = self._executor.submit(simulate_group, work, store, self.runs)
        except BrokenExecutor as error:
            future = Future()
            future.set_exception(error)
        self._flights[future] = _Flight(jobs, self._executor, is_alone)

    def _landed(self, future: Future[list[Outcome]]) -> list[Outcome]:
        """Return the outcomes of a flight; jobs whose worker died become suspects."""
        flight = self._flights.pop(future)
        try:
            found = future.result()
        except BrokenExecutor:
            if self._executor is flight.executor:
                self._executor = None
            return self._after_death(flight)
        except Exception as error:
            message = f"the worker was lost: {type(error).__name__}: {error}"
            return [Outcome.failed(job.key, message, is_lasting=False) for job in flight.jobs]
        for outcome in found:
            self.simulated_s += outcome.time_s
            self.num_simulated += 1
            if self.store is not None and not self.workers.share_disk:
                self.store.put(outcome)
        return found

    def _after_death(self, flight: _Flight) -> list[Outcome]:
        """Set the jobs of a flight aside, to be run one by one; give up one that died alone too often."""
        outcomes = []
        for job in flight.jobs:
            job.num_deaths += flight.is_alone
            known = self.store.get(job.key) if self.store is not None else None
            if known is not None and self._is_run_kept(job.key):
                outcomes.append(known)
            elif job.num_deaths >= MAX_DEATHS:
                message = f"its worker process died {job.num_deaths} times (out of memory?)"
                outcomes.append(Outcome.failed(job.key, message, is_lasting=False))
            else:
                self._suspects.append(job)
        return outcomes
