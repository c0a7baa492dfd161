"""A run as the report needs it: its summary and tables, from memory or from its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from specsim.errors import ConfigError
from specsim.results.result import SimulationResult
from specsim.results.schema import REQUESTS, SCHEMA_VERSION, STEPS, Column
from specsim.results.summary import Summary
from specsim.results.writer import REQUESTS_FILE, STEPS_FILE, SUMMARY

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its summary, requests and steps."""

    summary: Summary
    requests: pd.DataFrame
    """One row a request and arm."""
    steps: pd.DataFrame
    """One row a prefill pass or round of the batch."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms, the baseline first."""
        return ("baseline",) if self.summary["speculation"] is None else ("baseline", "speculation")


def run_of(result: SimulationResult) -> Run:
    """Return the run of a result in memory."""
    return Run(result.summary(), result.requests, result.steps)


def read_run(folder: Path) -> Run:
    """Read a run's folder, as `specsim run -o` writes it.

    Raises
    ------
    ConfigError
        If the folder is not that of a run, or of another version of its files.
    """
    summary = read_summary(folder / SUMMARY)
    return Run(
        summary,
        _read_table(folder / REQUESTS_FILE, REQUESTS),
        _read_table(folder / STEPS_FILE, STEPS),
    )


def read_summary(path: Path) -> Summary:
    """Read a run's ``summary.json``.

    Raises
    ------
    ConfigError
        If there is none, or it is not a summary of this version of the files.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is not JSON ({error})") from error
    if not isinstance(found, dict) or "schema_version" not in found:
        raise ConfigError(f"{path}: is no summary of a run")
    if found["schema_version"] != SCHEMA_VERSION:
        raise ConfigError(
            f"{path}: schema_version is {found['schema_version']}, this version reads {SCHEMA_VERSION};"
            " run the scenario again"
        )
    missing = sorted(Summary.__required_keys__ - found.keys())
    if missing:
        raise ConfigError(f"{path}: is no summary of a run: '{missing[0]}' is missing")
    return cast(Summary, found)


def _read_table(path: Path, columns: tuple[Column, ...]) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    try:
        table = pd.read_parquet(path)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{path}: cannot be read: {error}".replace("\n", " ")) from error
    missing = [column.name for column in columns if column.name not in table.columns]
    if missing:
        raise ConfigError(f"{path}: is no table of a run: column '{missing[0]}' is missing")
    return table
