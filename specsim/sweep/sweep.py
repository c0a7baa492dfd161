"""The sweep itself: a plan, its runs, and what they say together."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, cast

from pydantic import JsonValue

from specsim.arrays import Floats
from specsim.config import Document
from specsim.config.nodes import Scalar
from specsim.errors import ConfigError
from specsim.scenario import scenario_of
from specsim.scenario.load import completed, document_of, with_settings
from specsim.streams import RandomStreams
from specsim.sweep import break_even, sensitivity, tornado
from specsim.sweep.axes import Axis
from specsim.sweep.caveats import SharedCaveat, shared_caveats
from specsim.sweep.design import (
    Point,
    grid,
    latin_hypercube_fractions,
    sampled,
    uniform_fractions,
    zipped,
)
from specsim.sweep.estimates import PointEstimate, point_estimates
from specsim.sweep.files import POINTS, RUNS, about_sweep, file_sha256, finished, write_sweep
from specsim.sweep.plan import Case, SweepPlan, plan_axes
from specsim.sweep.repeats import Repeats
from specsim.sweep.run import SweepRun
from specsim.sweep.schedule import schedule
from specsim.sweep.store import Store
from specsim.sweep.table import Rows, SweepTable
from specsim.sweep.vary import parse_axis
from specsim.sweep.workers import Workers, in_process, local_workers

Design: TypeAlias = Literal["grid", "zip", "random", "lhs", "sobol", "morris", "tornado"]
SENSITIVITY_DESIGNS = ("sobol", "morris", "tornado")
SCHEDULED = ("workload.max_concurrency", "speculative_config.num_speculative_tokens")
"""Load and lookahead: a grid over both makes a schedule."""
DEFAULT_METRIC = "speedup.tpot"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is."""

    num_done: int
    num_cases: int
    """As far as is known: a stop rule or a search for break-even may add some."""
    num_failed: int
    num_simulated: int
    """Of the done, those that were not known from an earlier sweep."""


@dataclass(frozen=True)
class SweepJob:
    """A sweep that is ready to run.

    Examples
    --------
    >>> job = SweepJob.of("two_token_example", ["K=1,2"], settings=["workload.num_prompts=2"])
    >>> [point.labels for point in job.plan.points]
    [(1,), (2,)]
    """

    plan: SweepPlan
    seed: int
    """Of replication 0."""
    name: str
    """Of the scenario."""
    repeats: Repeats
    metric: str
    """The figure that sensitivity and break-even look at."""
    seeks_break_even: bool
    fractions: Floats | None
    """Where the points of a sampled design lie on every axis, [points, axes]."""

    @classmethod
    def of(
        cls,
        scenario: str | Path,
        vary: Sequence[str],
        *,
        settings: Sequence[str] = (),
        design: Design = "grid",
        num_samples: int = 64,
        repeats: Repeats | None = None,
        metric: str = DEFAULT_METRIC,
        seeks_break_even: bool = False,
    ) -> SweepJob:
        """Plan a sweep.

        Parameters
        ----------
        scenario
            Name, path or YAML text of the scenario around which to vary.
        vary
            Axes, ``KEY=VALUES`` each; see `specsim.sweep.vary`.
        settings
            Changes of the scenario at every point, ``KEY=VALUE`` each.
        design
            ``grid``: all combinations; ``zip``: first with first, second with second; ``random`` and
            ``lhs`` (Latin hypercube): ``num_samples`` points; for sensitivity ``sobol``, ``morris``,
            ``tornado``.
        num_samples
            Points, base samples or trajectories of a design that samples.
        repeats
            Replications of each point; one by default.
        metric
            The figure that sensitivity and break-even look at.
        seeks_break_even
            Look for all places on the first axis where the metric crosses 1, with further runs between.

        Raises
        ------
        ConfigError
            Where the scenario, an axis or the design is at fault, or no point makes a scenario.
        """
        document, axes = plan_axes(_document(scenario, settings), [parse_axis(text) for text in vary])
        if seeks_break_even:
            break_even.check_axis(axes[0])
            if design != "grid":
                raise ConfigError("break-even needs the design grid")
        seed = _seed(document)
        fractions = _fractions(design, len(axes), num_samples, RandomStreams(seed))
        points = _points(design, axes, fractions, document)
        plan = SweepPlan(document, axes, tuple(points), design)
        name = plan.check_first().name
        return cls(plan, seed, name, repeats or Repeats(), metric, seeks_break_even, fractions)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that the table depends on, but for the recorded traces."""
        content = [self.plan.fingerprint, asdict(self.repeats), self.metric, self.seeks_break_even]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def first_cases(self) -> list[Case]:
        """Return the runs that are made in any case."""
        return self.repeats.first_cases([point.number for point in self.plan.points])

    def num_known(self, folder: Path) -> int:
        """Return how many of the first runs have an outcome in a folder."""
        run = SweepRun(in_process(), Store(folder / POINTS))
        return sum(run.is_known(self.plan, case) for case in self.first_cases())

    def time_one(self, budget_s: float) -> float | None:
        """Return how long a run takes here, s: the mean of up to three; None where none could be made.

        Parameters
        ----------
        budget_s
            No further run is begun after this long, s.
        """
        last = len(self.plan.points) - 1
        cases = [Case(number, 0) for number in dict.fromkeys((0, last // 2, last))]
        run = SweepRun(in_process())
        start_s = time.monotonic()
        for case in cases:
            for _ in run.outcomes(self.plan, [case], num_cases=1):
                pass
            if time.monotonic() - start_s > budget_s:
                break
        return run.simulated_s / run.num_simulated if run.num_simulated else None

    def run(
        self,
        *,
        workers: Workers | None = None,
        folder: Path | None = None,
        keep_runs: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> SweepTable:
        """Simulate all points and return the table.

        Parameters
        ----------
        workers
            Who simulates; one process a core by default.
        folder
            Where outcomes and the table are written; what is there already is not simulated again.
        keep_runs
            Write every whole run too, into ``runs/`` under its key.
        progress
            Told after each run how far the sweep is.
        """
        if folder is not None and not keep_runs:
            known = finished(folder, self.fingerprint)
            if known is not None:
                return known
        store = None if folder is None else Store(folder / POINTS)
        if store is not None:
            store.clean()
        runs = folder / RUNS if folder is not None and keep_runs else None
        run = SweepRun(workers or local_workers(), store, runs)
        is_finished = False
        try:
            table = self._table(run, progress)
            is_finished = True
        finally:
            run.close(is_finished=is_finished)
        if folder is not None:
            write_sweep(table, folder)
        return table

    def _table(self, run: SweepRun, progress: Callable[[Progress], None] | None) -> SweepTable:
        rows = Rows()
        plan = self.plan
        cases = self.first_cases()
        while cases:
            num_cases = len(rows) + len(cases)
            for case, outcome in run.outcomes(plan, cases, num_cases=len(cases)):
                rows.add(case, outcome)
                if progress is not None:
                    progress(Progress(len(rows), num_cases, rows.num_failed, run.num_simulated))
            self._check_metrics(plan, rows)
            cases = self.repeats.more_cases([point.number for point in plan.points], rows)
            if not cases and self.seeks_break_even:
                finer = break_even.finer(plan, self._lines(plan, rows))
                cases = self.repeats.first_cases([point.number for point in finer.points[len(plan.points) :]])
                plan = finer
        return self._analysed(plan, rows, run)

    def _check_metrics(self, plan: SweepPlan, rows: Rows) -> None:
        """Refuse a metric that no run has, before more are made for its sake."""
        is_asked = self._looks_at_metric or self.metric != DEFAULT_METRIC
        metrics = {self.repeats.metric, self.metric if is_asked else None} - {None}
        if metrics and rows.num_failed < len(rows):
            table = rows.table(plan, self.seed, {})
            for metric in metrics:
                table.numbers(str(metric))

    @property
    def _looks_at_metric(self) -> bool:
        return self.seeks_break_even or self.plan.design in SENSITIVITY_DESIGNS

    def _lines(self, plan: SweepPlan, rows: Rows) -> break_even.Lines:
        """Return the estimates along the first axis, for each combination of the others."""
        estimates = point_estimates(rows.table(plan, self.seed, {}), self.metric)
        lines: break_even.Lines = {}
        for point, estimate in zip(plan.points, estimates, strict=True):
            place = plan.axes[0].numeric(point.values[0])
            if estimate is not None and place is not None:
                at = break_even.CurvePoint(place, estimate.mean, estimate.low, estimate.high)
                lines.setdefault(point.labels[1:], []).append(at)
        return {labels: sorted(line, key=lambda at: at.place) for labels, line in lines.items()}

    def _analysed(self, plan: SweepPlan, rows: Rows, run: SweepRun) -> SweepTable:
        traces = {file: file_sha256(file) for file in sorted(run.trace_files)}
        about = about_sweep(
            scenario=self.name,
            fingerprint=self.fingerprint,
            design=plan.design,
            axes=[axis.key for axis in plan.axes],
            num_points=len(plan.points),
            num_runs=len(rows),
            num_failed=rows.num_failed,
            num_retryable=rows.num_retryable,
            repeats=cast(JsonValue, asdict(self.repeats)),
            prompts_repeat=bool(traces),
            traces=cast(JsonValue, traces),
            metric=self.metric,
            base=cast(JsonValue, plan.base.data),
            caveats=cast(JsonValue, [asdict(caveat) for caveat in self._caveats(plan, rows)]),
        )
        table = rows.table(plan, self.seed, about)
        return replace(table, about={**about, "analysis": self._analysis(plan, rows, table)})

    def _caveats(self, plan: SweepPlan, rows: Rows) -> list[SharedCaveat]:
        labels = {
            axis.key: [point.labels[number] for point in plan.points] for number, axis in enumerate(plan.axes)
        }
        return shared_caveats(rows.caveats(), labels, is_replicated=self.repeats.num_first > 1)

    def _analysis(self, plan: SweepPlan, rows: Rows, table: SweepTable) -> JsonValue:
        keys = [axis.key for axis in plan.axes]
        if self.seeks_break_even:
            found = [
                {"others": dict(zip(keys[1:], labels, strict=True)), **asdict(crossing)}
                for labels, line in self._lines(plan, rows).items()
                for crossing in break_even.crossings(line, is_log=plan.axes[0].is_log)
            ]
            return cast(JsonValue, {"break_even": found})
        if plan.design == "grid":
            return self._schedule(plan, table)
        if plan.design not in SENSITIVITY_DESIGNS:
            return {}
        values = [None if e is None else e.mean for e in point_estimates(table, self.metric)]
        streams = RandomStreams(self.seed)
        if plan.design == "tornado":
            bars = tornado.tornado_bars(plan.points, values, keys)
            found = [{**asdict(bar), "crosses_one": bar.crosses_one} for bar in bars]
            return cast(JsonValue, {"tornado": found, "at_scenario": values[0]})
        if plan.design == "sobol":
            effects = sensitivity.sobol_effects(values, keys, streams)
        else:
            assert self.fractions is not None
            effects = sensitivity.morris_effects(self.fractions, values, keys, streams)
        return cast(JsonValue, {plan.design: [asdict(effect) for effect in effects]})

    def _schedule(self, plan: SweepPlan, table: SweepTable) -> JsonValue:
        """Return the best lookahead by load where these two are varied and no more."""
        keys = [axis.key for axis in plan.axes]
        if sorted(keys) != sorted(SCHEDULED) or self.metric not in table.columns:
            return {}
        gains: dict[int, dict[int, PointEstimate]] = {}
        for point, estimate in zip(plan.points, point_estimates(table, self.metric), strict=True):
            load, length = (point.labels[keys.index(key)] for key in SCHEDULED)
            if isinstance(load, int) and isinstance(length, int) and estimate is not None:
                gains.setdefault(load, {})[length] = estimate
        return cast(JsonValue, {"schedule": [asdict(rung) for rung in schedule(gains)]})


def _document(scenario: str | Path, settings: Sequence[str]) -> Document:
    """Return the scenario with its files and the settings over it, not validated: an axis may complete it."""
    document, faults = with_settings(document_of(scenario), settings)
    if faults:
        raise ConfigError(faults)
    return completed(document)


def _seed(document: Document) -> int:
    node = document.get("seed")
    value = node.value if isinstance(node, Scalar) else 0
    return value if isinstance(value, int) and value >= 0 else 0


def _fractions(design: Design, num_axes: int, num_samples: int, streams: RandomStreams) -> Floats | None:
    if num_samples < 1:
        raise ConfigError(f"samples: give at least 1, not {num_samples}")
    if design == "random":
        return uniform_fractions(num_samples, num_axes, streams)
    if design == "lhs":
        return latin_hypercube_fractions(num_samples, num_axes, streams)
    if design == "sobol":
        return sensitivity.sobol_fractions(num_samples, num_axes, streams)
    if design == "morris":
        return sensitivity.morris_fractions(num_samples, num_axes, streams)
    return None


def _points(
    design: Design, axes: Sequence[Axis], fractions: Floats | None, document: Document
) -> list[Point]:
    if fractions is not None:
        return sampled(axes, fractions)
    if design == "tornado":
        return tornado.tornado_points(axes, scenario_of(document))
    return zipped(axes) if design == "zip" else grid(axes)
