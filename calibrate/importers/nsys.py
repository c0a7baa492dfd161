"""Nsight Systems' SQLite export: kernels that were launched inside NVTX ranges, times in ns.

A kernel belongs to the range in which the host launched it (``correlationId``), on the launching thread.
Ranges are those whose text states a shape; see `calibrate.importers.step_ranges`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.file_start import start_of
from calibrate.importers.step_ranges import StepRange, shape_of, trace_of_ranges
from calibrate.importers.tabular import refuse
from calibrate.measurements import Trace
from specsim.config.base import Spec

_MAGIC = b"SQLite format 3\x00"
_RANGES = "NVTX_EVENTS"
_LAUNCHES = "CUPTI_ACTIVITY_KIND_RUNTIME"
# Kernels by themselves, or whole CUDA graphs where they were traced as such.
_DEVICE_WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")


@trace_importers.register
class Nsys(Spec):
    """Reads ``nsys export --type sqlite``."""

    kind: Literal["nsys"] = "nsys"
    """Kind of importer."""

    def recognises(self, path: Path) -> bool:
        """Tell a SQLite file by its first bytes."""
        return start_of(path).startswith(_MAGIC)

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where it is cut off or of another schema, holds no kernels or no ranges that state a shape, or
            no model was stated.
        """
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
                tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
                work = [name for name in _DEVICE_WORK if name in tables]
                if not work:
                    raise refuse(path, "holds no kernels; profile with --trace=cuda,nvtx")
                missing = {_RANGES, _LAUNCHES} - tables
                if missing:
                    raise refuse(path, f"has no table {min(missing)}; profile with --trace=cuda,nvtx")
                ranges = _ranges(database, work, has_ids="StringIds" in tables)
                device = _device(database, tables)
        except sqlite3.DatabaseError as error:
            raise refuse(path, f"cannot be read as an nsys export: {error}") from None
        return trace_of_ranges(path, ranges, defaults=defaults, device=device, source="Nsight Systems")


def _ranges(database: sqlite3.Connection, work: Sequence[str], *, has_ids: bool) -> list[StepRange]:
    text = "COALESCE(r.text, s.value)" if has_ids else "r.text"
    join = "LEFT JOIN StringIds AS s ON r.textId = s.id" if has_ids else ""
    rows = database.execute(
        f"SELECT {text}, r.start, r.end, r.globalTid FROM {_RANGES} AS r {join}"
        " WHERE r.end IS NOT NULL ORDER BY r.start"
    )
    steps = [row for row in rows if row[0] is not None and shape_of(str(row[0])) is not None]
    union = " UNION ALL ".join(f"SELECT correlationId, start, end FROM {table}" for table in work)
    launches = np.array(
        database.execute(
            f"SELECT l.start, l.globalTid, w.start, w.end FROM {_LAUNCHES} AS l"
            f" JOIN ({union}) AS w ON w.correlationId = l.correlationId ORDER BY l.start"
        ).fetchall(),
        dtype=np.int64,
    ).reshape(-1, 4)
    found: list[StepRange] = []
    for name, start, end, thread in steps:
        first, last = np.searchsorted(launches[:, 0], [start, end])
        inside = launches[first:last]
        inside = inside[inside[:, 1] == thread]
        found.append(
            StepRange(
                name=str(name),
                first_kernel_ns=float(inside[:, 2].min()) if len(inside) else np.nan,
                last_kernel_ns=float(inside[:, 3].max()) if len(inside) else np.nan,
                host_ns=float(end - start),
            )
        )
    return found


def _device(database: sqlite3.Connection, tables: set[str]) -> str:
    if "TARGET_INFO_GPU" not in tables:
        return ""
    row = database.execute("SELECT name FROM TARGET_INFO_GPU LIMIT 1").fetchone()
    return "" if row is None else str(row[0])
