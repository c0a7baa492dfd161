"""The table of a sweep: one row a run, with what was varied, the verdict and every metric of both arms.

Rows come in the order of points and replications, whatever the order in which they were simulated.
Columns: ``point``, ``replication``, ``seed``, ``key``, ``status``, ``error``; one for each key varied;
then the figures by dotted name, such as ``speedup.tpot`` or ``speculation.p99_tpot_ms``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import JsonValue

from specsim.errors import DomainError
from specsim.results.reading import Caveat
from specsim.sweep.order import merged
from specsim.sweep.outcome import Figure, Outcome
from specsim.sweep.plan import Case, SweepPlan

if TYPE_CHECKING:
    import pandas as pd

ARM_PREFIXES = ("speculation", "baseline")
"""Where a metric without a prefix is looked up, in this order."""


def meanings(metric: str) -> tuple[str, ...]:
    """Return what a metric may be a short name of: itself, speculation's, the baseline's.

    Examples
    --------
    >>> meanings("p99_tpot_ms")
    ('p99_tpot_ms', 'speculation.p99_tpot_ms', 'baseline.p99_tpot_ms')
    """
    return (metric, *(f"{prefix}.{metric}" for prefix in ARM_PREFIXES))


@dataclass(frozen=True)
class SweepTable:
    """All runs of a sweep.

    Examples
    --------
    >>> table = SweepTable(("K",), {"K": [1, 2], "speedup.tpot": [1.5, 1.7]}, {})
    >>> len(table), table.column("speedup.tpot")
    (2, [1.5, 1.7])
    """

    axes: tuple[str, ...]
    """The keys varied, each a column."""
    columns: Mapping[str, list[Figure]]
    """Values by column, [rows]; None where there is none."""
    about: Mapping[str, JsonValue]
    """How the table was made, and what was drawn from it: the content of ``sweep.json``."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), []))

    @property
    def varied(self) -> list[str]:
        """The axes that have several values."""
        return [axis for axis in self.axes if len(set(self.columns[axis])) > 1]

    def column(self, name: str) -> list[Figure]:
        """Return a column, [rows]; a metric without a prefix is that of speculation, else of the baseline.

        Raises
        ------
        DomainError
            If there is no such column.
        """
        for candidate in meanings(name):
            if candidate in self.columns:
                return self.columns[candidate]
        raise DomainError(
            f"no metric '{name}' in the sweep (such as speedup.tpot or speculation.p99_tpot_ms)"
        )

    def numbers(self, name: str) -> list[float | None]:
        """Return a column of numbers, [rows]; None where there is none.

        Raises
        ------
        DomainError
            If there is no such column, or it holds something else.
        """
        values = self.column(name)
        if any(isinstance(value, (str, list)) for value in values):
            raise DomainError(f"'{name}' is not a number that can be compared")
        return [None if value is None else float(value) for value in values]  # type: ignore[arg-type]

    @property
    def num_failed(self) -> int:
        """Rows without figures."""
        return self.columns["status"].count("failed")

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))


@dataclass(slots=True)
class Rows:
    """Outcomes as they come in, kept as tuples that share their names: a row of 100 figures takes 3 kB."""

    _rows: dict[Case, _Row] = field(default_factory=dict)
    _places: dict[tuple[str, ...], dict[str, int]] = field(default_factory=dict)
    _caveats: dict[tuple[Caveat, ...], tuple[Caveat, ...]] = field(default_factory=dict)
    num_failed: int = 0
    num_retryable: int = 0
    """Failures that a rerun may mend, such as a worker that died."""

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._rows)

    def add(self, case: Case, outcome: Outcome) -> None:
        """Add the outcome of a case."""
        assert case not in self._rows, f"{case} came out twice"
        names = tuple(outcome.figures)
        places = self._places.setdefault(names, {name: place for place, name in enumerate(names)})
        caveats = self._caveats.setdefault(outcome.caveats, outcome.caveats)
        self._rows[case] = _Row(outcome.key, outcome.error, places, tuple(outcome.figures.values()), caveats)
        self.num_failed += outcome.has_failed
        self.num_retryable += not outcome.is_lasting

    def figures(self, point: int, metric: str) -> list[Figure]:
        """Return a metric of the replications of a point so far, in their order; None where one failed."""
        found = []
        replication = 0
        while (row := self._rows.get(Case(point, replication))) is not None:
            found.append(next((row.figure(name) for name in meanings(metric) if name in row.places), None))
            replication += 1
        return found

    def caveats(self) -> dict[int, list[Caveat]]:
        """Return by point what limits the reading of its runs; a point without figures is left out."""
        found: dict[int, list[Caveat]] = {}
        for case, row in sorted(self._rows.items()):
            if row.caveats:
                known = found.setdefault(case.point, [])
                known += [caveat for caveat in row.caveats if caveat not in known]
        return found

    def table(self, plan: SweepPlan, seed: int, about: Mapping[str, JsonValue]) -> SweepTable:
        """Return the table of all rows.

        Parameters
        ----------
        plan
            What they are rows of.
        seed
            Of replication 0, where the seed is not varied.
        about
            How the table was made.
        """
        cases = sorted(self._rows)
        rows = [self._rows[case] for case in cases]
        axes = [axis.key for axis in plan.axes]
        columns: dict[str, list[Figure]] = {
            "point": [case.point for case in cases],
            "replication": [case.replication for case in cases],
            "seed": [_seed(plan, case, seed) for case in cases],
            "key": [row.key or None for row in rows],
            "status": ["failed" if row.error else "ok" for row in rows],
            "error": [row.error or None for row in rows],
        }
        for index, key in enumerate(axes):
            if key in columns:
                # A seed that is varied has its column already, replications counted.
                continue
            columns[key] = _uniform([plan.points[case.point].labels[index] for case in cases])
        for name in merged(dict.fromkeys(tuple(row.places) for row in rows)):
            columns[name] = [row.figure(name) for row in rows]
        return SweepTable(tuple(axes), columns, about)


@dataclass(frozen=True, slots=True)
class _Row:
    key: str
    error: str
    places: Mapping[str, int]
    """Where the figure of each name stands among the values."""
    values: tuple[Figure, ...]
    caveats: tuple[Caveat, ...]

    def figure(self, name: str) -> Figure:
        place = self.places.get(name)
        return None if place is None else self.values[place]


def _seed(plan: SweepPlan, case: Case, seed: int) -> int:
    for axis, label in zip(plan.axes, plan.points[case.point].labels, strict=True):
        if axis.key == "seed" and isinstance(label, int):
            return label + case.replication
    return seed + case.replication


def _uniform(labels: Sequence[Figure]) -> list[Figure]:
    """Return the labels of an axis as one type: numbers if all are, else words."""
    if all(isinstance(label, bool) for label in labels):
        return list(labels)
    if all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels):
        is_whole = all(isinstance(label, int) for label in labels)
        return [label if is_whole else float(label) for label in labels]  # type: ignore[arg-type]
    return ["null" if label is None else str(label) for label in labels]
