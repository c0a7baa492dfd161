"""Files of a run read back: what is damaged, of another version or of another run is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from specsim.errors import ConfigError
from specsim.results.schema import PROMPTS, REQUESTS, SCHEMA_VERSION, STEPS, Column
from specsim.results.summary import Summary
from specsim.results.writer import PROMPTS_FILE, REQUESTS_FILE, STEPS_FILE, SUMMARY

if TYPE_CHECKING:
    import pandas as pd

_TABLES: dict[str, tuple[Column, ...]] = {
    REQUESTS_FILE: REQUESTS,
    PROMPTS_FILE: PROMPTS,
    STEPS_FILE: STEPS,
}


def read_summary(folder: Path) -> Summary:
    """Read the summary of a run's folder.

    Raises
    ------
    ConfigError
        If there is none, or it is not a summary of this version of the files.
    """
    path = folder / SUMMARY
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is not JSON ({error})") from error
    if not isinstance(found, dict) or "schema_version" not in found:
        raise ConfigError(f"{path}: is no summary of a run")
    if found["schema_version"] != SCHEMA_VERSION:
        raise ConfigError(
            f"{path}: schema_version is {found['schema_version']}, this version reads {SCHEMA_VERSION};"
            " run the scenario again"
        )
    try:
        return TypeAdapter(Summary).validate_python(found)
    except ValidationError as error:
        raise ConfigError(f"{path}: is no summary of a run: {first_fault(error)}") from error


def read_table(folder: Path, file: str, summary: Summary) -> pd.DataFrame:
    """Read one of the tables of a run's folder.

    Parameters
    ----------
    folder
        Of the run.
    file
        Such as `specsim.results.writer.REQUESTS_FILE`.
    summary
        Of the same run.

    Raises
    ------
    ConfigError
        If it is damaged, lacks a column, or is of another run than the summary.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / file
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: cannot be read: {reason}") from error
    missing = [column.name for column in _TABLES[file] if column.name not in table.column_names]
    if missing:
        raise ConfigError(f"{path}: is no table of a run: column '{missing[0]}' is missing")
    if (table.schema.metadata or {}).get(b"key") != summary["key"].encode():
        raise ConfigError(f"{path}: is of another run than {SUMMARY}; run the scenario again")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def first_fault(error: ValidationError) -> str:
    """Return the dotted place of the first fault, and what is wrong there."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
