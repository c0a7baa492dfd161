"""Files of a run: the resolved configuration, the summary and the tables, all at once or not at all.

Everything is written into a hidden sibling of the folder, which then takes the folder's name. A run
that was there steps aside under another hidden name first, and is put back by the next write if the
process dies in between. So whenever it dies, the folder is absent, the old run or the whole new one.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue
from ruamel.yaml import YAML

from specsim.errors import ConfigError
from specsim.results.result import SimulationResult
from specsim.results.schema import SCHEMA_VERSION
from specsim.results.summary import Summary
from specsim.results.table import Labels, Table, Values
from specsim.writing import is_alive, write_faults

if TYPE_CHECKING:
    import pyarrow as pa

CONFIG = "config.resolved.yaml"
SUMMARY = "summary.json"
REQUESTS_FILE = "requests.parquet"
STEPS_FILE = "steps.parquet"
PROMPTS_FILE = "prompts.parquet"
RUN_FILES = frozenset({CONFIG, SUMMARY, REQUESTS_FILE, STEPS_FILE, PROMPTS_FILE, "trace.json", "report.html"})


def write(result: SimulationResult, folder: Path) -> None:
    """Write a run into a folder, replacing a run that is there.

    Parameters
    ----------
    result
        The run.
    folder
        A new or empty folder, or that of an earlier run.

    Raises
    ------
    ConfigError
        If the folder holds anything that is not a run's, or cannot be written.
    """
    check_folder(folder)
    target = folder.resolve()
    with write_faults(folder):
        target.parent.mkdir(parents=True, exist_ok=True)
        _recover(target)
        fresh = _sibling(target, "new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            _write_files(result, fresh)
            _swap(fresh, target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def check_folder(folder: Path) -> None:
    """Refuse a folder that a run may not replace, before anything is simulated.

    Raises
    ------
    ConfigError
        If it is a file or a link in a circle, may not be written, or holds files that are not a run's.
    """
    with write_faults(folder):
        try:
            folder.resolve()
        except RuntimeError as error:  # what Python before 3.13 makes of ELOOP
            raise ConfigError(f"{folder}: cannot be written: its symbolic links go in a circle") from error
        above = next(path for path in folder.resolve().parents if path.exists())
        if not os.access(above, os.W_OK):
            raise ConfigError(f"{folder}: cannot be written: no permission to write into {above}")
        if not folder.exists():
            return
        if not folder.is_dir():
            raise ConfigError(f"{folder}: not a folder")
        try:
            is_file = {entry.name: entry.is_file() for entry in os.scandir(folder)}
        except FileNotFoundError:
            # Another process is about to put its run there.
            return
    foreign = sorted(name for name in is_file if name not in RUN_FILES or not is_file[name])
    if foreign:
        raise ConfigError(
            f"{folder}: not written, since it holds '{foreign[0]}', which is no file of a run; "
            "give a new or empty folder, or that of an earlier run"
        )
    if is_file and not _is_summary(folder / SUMMARY):
        raise ConfigError(f"{folder}: not written, since it is not empty and holds no {SUMMARY} of a run")


def _is_summary(path: Path) -> bool:
    """Tell whether a file is the summary of a run of any version."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "schema_version" in found


def summary_json(summary: Summary) -> str:
    """Return the summary as JSON text: keys in their documented order, floats in full, no NaN or Infinity."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def config_yaml(scenario: dict[str, JsonValue]) -> str:
    """Return the validated scenario as YAML, every default written out."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    # Keys stay as declared. The attribute is annotated None in ruamel.yaml.
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    text = io.StringIO()
    yaml.dump(scenario, text)
    return text.getvalue()


def _write_files(result: SimulationResult, folder: Path) -> None:
    import pyarrow.parquet as pq

    summary = result.summary()
    (folder / CONFIG).write_text(config_yaml(summary["scenario"]), encoding="utf-8")
    tables = (
        (REQUESTS_FILE, result.tables.requests),
        (STEPS_FILE, result.step_table),
        (PROMPTS_FILE, result.prompt_table),
    )
    for name, table in tables:
        pq.write_table(_arrow(table, result), folder / name)
    (folder / SUMMARY).write_text(summary_json(summary), encoding="utf-8")


def _arrow(table: Table, result: SimulationResult) -> pa.Table:
    """Return the table with unit and meaning beside each column, and what made it beside the table."""
    import pyarrow as pa

    arrays, fields = [], []
    for column in table.columns:
        array = _arrow_array(table.values(column.name))
        arrays.append(array)
        about = {"unit": column.unit, "meaning": column.meaning}
        fields.append(pa.field(column.name, array.type, metadata=about))
    origin = {
        "schema_version": str(SCHEMA_VERSION),
        "specsim_version": result.provenance.specsim_version,
        "key": result.key,
        "seed": str(result.seed),
    }
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=origin))


def _arrow_array(values: Values) -> pa.Array:
    """Return a column for Parquet; NaN, a figure that is unknown, becomes null."""
    import pyarrow as pa

    if isinstance(values, Labels):
        return pa.DictionaryArray.from_arrays(pa.array(values.codes), pa.array(values.names, pa.string()))
    return pa.array(values, from_pandas=True)


def _swap(fresh: Path, target: Path) -> None:
    """Give the fresh folder the target's name; an old run steps aside, then goes.

    Of processes that write one folder at once, each has the name in turn; the last keeps it.
    """
    old = _sibling(target, "old")
    is_taken = True
    while is_taken:
        # Another process may have moved the old run aside since.
        with suppress(FileNotFoundError):
            target.rename(old)
        try:
            fresh.rename(target)
            is_taken = False
        except BaseException as error:
            # Put back, unless there was none or another process has the name by now.
            with suppress(OSError):
                old.rename(target)
            if not isinstance(error, OSError) or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        shutil.rmtree(old, ignore_errors=True)


def _recover(target: Path) -> None:
    """Clear what dead processes left: put an old run back where it is missing, remove the rest."""
    for left in sorted(target.parent.glob(f".{_escaped(target.name)}.specsim-*-*")):
        role, _, process = left.name.rpartition(".specsim-")[2].partition("-")
        is_ours = process == str(os.getpid())
        if not process.isdigit() or (is_alive(int(process)) and not is_ours):
            continue
        if role == "old" and not target.exists():
            left.rename(target)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _sibling(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}.specsim-{role}-{os.getpid()}")


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
