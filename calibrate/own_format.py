"""The project's own trace files: CSV with ``# key: value`` lines above, JSON lines, Parquet."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from calibrate.columns import KNOWN_COLUMNS
from calibrate.csv_text import read_csv
from calibrate.importer import Defaults, trace_importers
from calibrate.importers.json_file import json_lines
from calibrate.measurements import Trace
from calibrate.rows import trace_of
from specsim.arrays import Ints
from specsim.config.base import Spec
from specsim.errors import ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

_MARK = b"specsim"
"""Key of the header in a Parquet file's metadata."""
_OWN_TIMES = ("t_gpu_us", "t_wall_us", "tokens_per_s", "energy_mj")
_SNIFFED_BYTES = 1 << 16


@trace_importers.register
class OwnFormat(Spec):
    """Reads the project's own columns from .csv, .jsonl and .parquet."""

    kind: Literal["specsim"] = "specsim"
    """Kind of importer."""

    def recognises(self, path: Path) -> bool:
        """Tell whether a file has columns of ours, by its first lines."""
        if path.suffix == ".parquet":
            return True
        if path.suffix not in (".csv", ".jsonl"):
            return False
        with path.open("rb") as stream:
            start = stream.read(_SNIFFED_BYTES).decode("utf-8", errors="replace")
        lines = [line for line in start.splitlines() if not line.startswith("#")]
        # Whole names: other tools' columns contain ours.
        return any(name in re.findall(r"\w+", line) for line in lines[:2] for name in _OWN_TIMES)

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where the file cannot be read, is cut off or lacks a column; see `calibrate.rows` for rows.
        """
        table, header, row = _table(path)
        return trace_of(table, file=str(path), header={**defaults.header, **header}, row=row)


def read_cells(path: Path, *, defaults: Defaults) -> Trace:
    """Read cells to be predicted: steps and rounds in our own columns, times and rates not needed.

    Raises
    ------
    ConfigError
        Where the file cannot be read, lacks a column or holds neither, and for every cell that cannot
        be used.
    """
    if not path.is_file():
        raise _error(path, None, "no such file")
    table, header, row = _table(path)
    trace = trace_of(table, file=str(path), header={**defaults.header, **header}, row=row, are_timed=False)
    if trace.num_dropped:
        raise ConfigError(trace.warnings)
    steps = trace.steps
    if steps is not None:
        steps = steps.take(steps.is_step) if steps.is_step.any() else None
    if steps is None and trace.rounds is None:
        raise _error(path, None, "holds neither steps nor rounds")
    return replace(trace, steps=steps)


def write_trace(path: Path, table: pd.DataFrame, *, header: Mapping[str, str]) -> None:
    """Write a table in our own columns as a .csv, .jsonl or .parquet file that `OwnFormat` reads.

    Parameters
    ----------
    path
        The file to write; its ending says in which form.
    table
        The rows.
    header
        What holds for all rows: device, model, source, licence, date …

    Raises
    ------
    ConfigError
        Where a column is none of ours, or the ending is unknown.
    """
    unknown = [str(name) for name in table.columns if str(name) not in KNOWN_COLUMNS]
    if unknown:
        raise ConfigError(f"{path}: '{unknown[0]}' is not a column of a trace")
    plain = {key: " ".join(str(value).split()) for key, value in header.items()}
    if path.suffix == ".csv":
        lines = "".join(f"# {key}: {value}\n" for key, value in plain.items())
        path.write_text(lines + table.to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    elif path.suffix == ".jsonl":
        first = json.dumps({"header": plain}, ensure_ascii=False)
        path.write_text(f"{first}\n{table.to_json(orient='records', lines=True)}", encoding="utf-8")
    elif path.suffix == ".parquet":
        _write_parquet(path, table, plain)
    else:
        raise ConfigError(f"{path}: a trace is written as .csv, .jsonl or .parquet")


def _table(path: Path) -> tuple[pd.DataFrame, dict[str, str], Ints]:
    """Rows as they stand, the header, and the number of each row in the file."""
    reader = {".parquet": _read_parquet, ".jsonl": _read_jsonl}.get(path.suffix, _read_csv)
    return reader(path)


def _read_csv(path: Path) -> tuple[pd.DataFrame, dict[str, str], Ints]:
    header: dict[str, str] = {}
    num_skipped = 0
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for line in stream:
                if not line.startswith("#"):
                    break
                key, colon, value = line[1:].partition(":")
                if colon:
                    header[key.strip()] = value.strip()
                num_skipped += 1
    except UnicodeDecodeError:
        raise _error(path, None, "is not UTF-8 text") from None
    table, row = read_csv(path, num_skipped=num_skipped)
    return table, header, row


def _read_jsonl(path: Path) -> tuple[pd.DataFrame, dict[str, str], Ints]:
    import pandas as pd

    header: dict[str, str] = {}
    records: list[dict[str, object]] = []
    rows: list[int] = []
    for number, record in json_lines(path):
        stated = record.get("header")
        if isinstance(stated, dict):
            header |= {str(key): str(value) for key, value in stated.items()}
            continue
        if isinstance(record.get("model"), dict):
            record["model"] = json.dumps(record["model"])
        records.append(record)
        rows.append(number)
    return pd.DataFrame(records), header, np.array(rows, dtype=np.int64)


def _read_parquet(path: Path) -> tuple[pd.DataFrame, dict[str, str], Ints]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        stored = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise _error(path, None, f"is not a Parquet file: {str(error).splitlines()[0]}") from None
    metadata = (stored.schema.metadata or {}).get(_MARK, b"{}")
    header = {str(key): str(value) for key, value in json.loads(metadata).items()}
    table = stored.to_pandas()
    return table, header, np.arange(1, len(table) + 1, dtype=np.int64)


def _write_parquet(path: Path, table: pd.DataFrame, header: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {**(stored.schema.metadata or {}), _MARK: json.dumps(dict(header)).encode()}
    pq.write_table(stored.replace_schema_metadata(metadata), path)


def _error(path: Path, line: int | None, message: str) -> ConfigError:
    return ConfigError([Fault(str(path), line, None, "", message)])
