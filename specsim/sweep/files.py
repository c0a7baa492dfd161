"""Files of a sweep: ``sweep.parquet`` with the table, ``sweep.json`` with how it was made, ``points/``.

The table is renamed into place before ``sweep.json``, which holds its hash: the pair is whole if they agree.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from specsim.errors import ConfigError
from specsim.sweep.outcome import Figure
from specsim.sweep.table import SweepTable
from specsim.writing import write_faults, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "sweep.parquet"
ABOUT = "sweep.json"
POINTS = "points"
RUNS = "runs"
_ALWAYS = ("point", "replication", "seed", "key", "status", "error")
"""Columns of every table."""
SWEEP_FILES = frozenset({TABLE, ABOUT, POINTS, RUNS, "sweep.png", "sweep.svg", "report.html"})


def check_sweep_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but a sweep, before anything is simulated.

    Raises
    ------
    ConfigError
        If it is a file, or holds files that are not a sweep's.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"{folder}: not a folder")
    foreign = sorted({path.name for path in folder.iterdir() if not path.name.startswith(".")} - SWEEP_FILES)
    if foreign:
        raise ConfigError(
            f"{folder}: not written, since it holds '{foreign[0]}', which is no file of a sweep; "
            "give a new or empty folder, or that of an earlier sweep"
        )


def write_sweep(table: SweepTable, folder: Path) -> None:
    """Write the table and how it was made; each file is whole or absent at any moment.

    Raises
    ------
    ConfigError
        If the folder cannot be written.
    """
    content = _parquet(table)
    about = {**table.about, "table_sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with write_faults(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / TABLE, content)
        write_whole(folder / ABOUT, text)


def read_sweep(folder: Path) -> SweepTable:
    """Read a finished sweep.

    Raises
    ------
    ConfigError
        If there is none, or its two files do not belong together.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = json.loads((folder / ABOUT).read_bytes())
        content = (folder / TABLE).read_bytes()
        if hashlib.sha256(content).hexdigest() != about.pop("table_sha256"):
            raise ConfigError(f"{folder}: {TABLE} and {ABOUT} are of two sweeps; run the sweep again")
        # Not `read_table`, which imports pandas to read what needs none.
        columns = pq.ParquetFile(io.BytesIO(content)).read().to_pydict()
        _check_shape(about, columns)
        return SweepTable(tuple(about["axes"]), columns, about)
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"{folder}: holds no finished sweep: {error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{folder}: is not a sweep that this version can read: {reason}") from None


def _check_shape(about: Mapping[str, JsonValue], columns: Mapping[str, list[Figure]]) -> None:
    """Raise a ValueError where the content of ``sweep.json`` does not go with a table."""
    axes = about["axes"]
    names = [axis for axis in axes if isinstance(axis, str)] if isinstance(axes, list) else []
    if not isinstance(axes, list) or len(names) < len(axes):
        raise ValueError("axes are no list of keys")
    lacking = [name for name in (*_ALWAYS, *names) if name not in columns]
    if lacking:
        raise ValueError(f"the table has no column '{lacking[0]}'")
    if not isinstance(about.get("base") or {}, dict):
        raise ValueError("base is no scenario")


def finished(folder: Path, fingerprint: str) -> SweepTable | None:
    """Return the sweep in a folder if it has a fingerprint and the traces that it rests on are unchanged."""
    try:
        table = read_sweep(folder)
    except ConfigError:
        return None
    about = table.about
    if about.get("fingerprint") != fingerprint or about.get("num_retryable") != 0 or "caveats" not in about:
        return None
    traces = about.get("traces")
    if not isinstance(traces, dict) or any(file_sha256(file) != known for file, known in traces.items()):
        return None
    return table


def file_sha256(file: str) -> str | None:
    """Return the hash of a file's content, None where it cannot be read."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


def _parquet(table: SweepTable) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [_array(values) for values in table.columns.values()]
    fields = [
        pa.field(name, array.type, metadata={"varied": "true"} if name in table.axes else None)
        for name, array in zip(table.columns, arrays, strict=True)
    ]
    origin: dict[str, str] = {
        name: str(table.about[name]) for name in ("schema_version", "specsim_version") if name in table.about
    }
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=origin)), buffer)
    return buffer.getvalue()


def _array(values: list[Figure]) -> pa.Array:
    """Return a column for Parquet: numbers as numbers, a column of nothing as numbers that are unknown."""
    import pyarrow as pa

    present = [value for value in values if value is not None]
    if not present:
        return pa.array(values, pa.float64())
    if any(isinstance(value, float) for value in present) and not any(
        isinstance(v, (str, list)) for v in present
    ):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())  # type: ignore[arg-type]
    return pa.array(values)


def about_sweep(**parts: JsonValue) -> dict[str, JsonValue]:
    """Return the content of ``sweep.json``, versions first."""
    import specsim
    from specsim.results.schema import SCHEMA_VERSION

    return {"schema_version": SCHEMA_VERSION, "specsim_version": specsim.__version__, **parts}
