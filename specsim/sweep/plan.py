"""The plan of a sweep: a scenario, the points around it, and how often each is repeated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import specsim
from specsim.config import Document, expand
from specsim.config.nodes import plain
from specsim.errors import ConfigError
from specsim.results.schema import SCHEMA_VERSION
from specsim.scenario import REFERENCES, Scenario, scenario_of
from specsim.sweep.axes import Axis, with_files
from specsim.sweep.design import Point

_MAX_SEED = 2**63


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """One run of a sweep: which point, and which replication of it."""

    point: int
    replication: int


@dataclass(frozen=True)
class SweepPlan:
    """What is to be simulated.

    Replication r of every point has the scenario's seed plus r: the same requests and the same luck at
    all points, so that points differ by what is varied and not by chance. Replication 0 is what
    ``specsim run`` gives.
    """

    base: Document
    """The scenario with the files that it names, before anything is varied."""
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    design: str
    """How the points were chosen, in a word."""

    def scenario(self, case: Case) -> Scenario:
        """Return the scenario of a case.

        Raises
        ------
        ConfigError
            Where what is varied does not make a scenario.
        """
        document = self.base
        for index in self._order:
            key, node = self.axes[index].key, self.points[case.point].values[index].node
            if node is not None:
                document = document.put(key, node, key_place=self.axes[index].place)
        scenario = scenario_of(document)
        if case.replication == 0:
            return scenario
        seed = scenario.seed + case.replication
        if seed >= _MAX_SEED:
            raise ConfigError(f"seed {scenario.seed} leaves no room for replication {case.replication}")
        return scenario.model_copy(update={"seed": seed})

    def check_first(self) -> Scenario:
        """Return the first scenario that is one.

        Raises
        ------
        ConfigError
            If no point makes a scenario: the faults of the first, since a mistyped key spoils them all.
        """
        first: ConfigError | None = None
        for point in self.points:
            try:
                return self.scenario(Case(point.number, 0))
            except ConfigError as error:
                first = first or error
        raise first or ConfigError("the design has no point")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the plan: the scenario, all values, the versions; not of the traces that it names."""
        content = {
            "base": self.base.data,
            "file": self.base.file,
            "axes": [axis.key for axis in self.axes],
            "points": [
                [None if value.node is None else plain(value.node) for value in point.values]
                for point in self.points
            ],
            "schema_version": SCHEMA_VERSION,
            "specsim_version": specsim.__version__,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @cached_property
    def _order(self) -> tuple[int, ...]:
        # `hardware.target` goes before `hardware.target.memory...`, which changes a figure inside it.
        return tuple(sorted(range(len(self.axes)), key=lambda index: self.axes[index].key.count(".")))


def plan_axes(base: Document, axes: Sequence[Axis]) -> tuple[Document, tuple[Axis, ...]]:
    """Return the scenario and the axes with every file that they name read once.

    Raises
    ------
    ConfigError
        If there is no axis, two have the same key, or a file is missing.
    """
    keys = [axis.key for axis in axes]
    if not keys:
        raise ConfigError("nothing is varied; give at least one --vary KEY=VALUES")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ConfigError(f"'{twice[0]}' is varied twice")
    document = expand(base, REFERENCES)
    return document, tuple(with_files(axis, document) for axis in axes)
