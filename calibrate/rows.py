"""From a table in the project's own columns to a checked trace: every bad row is named, none vanishes.

All importers end here, so that each of them only renames and rescales.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np

from calibrate.columns import KNOWN_COLUMNS, ROUND_CELL_COLUMNS, ROUND_COLUMNS, STEP_COLUMNS
from calibrate.declared_rows import DeclaredRows, is_given, nearest_hint
from calibrate.doubts import dropped_warnings, unit_faults
from calibrate.measurements import PARTS, PHASES, Measurements, RoundMeasurements, Texts, Trace
from specsim.arrays import Floats, Ints
from specsim.config import parse, validate
from specsim.errors import ConfigError, Fault
from specsim.hardware import ModelSpec, load_model
from specsim.hardware.formats import BYTES_PER_VALUE

if TYPE_CHECKING:
    import pandas as pd

MAX_BAD_FRACTION = 0.1
"""A file of which more rows are unusable is refused whole."""

_DTYPE_SPELLINGS = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "half": "float16",
    "fp32": "float32",
    "fp8": "float8",
}
_US, _MJ, _MHZ = 1e-6, 1e-3, 1e6

_Lookup: TypeAlias = Callable[[str, int], ModelSpec]
"""The model of a text in the ``model`` column of a row."""


def trace_of(
    table: pd.DataFrame,
    *,
    file: str,
    header: Mapping[str, str] | None = None,
    row: Ints | None = None,
    models: Mapping[str, ModelSpec] | None = None,
    warnings: Sequence[Fault] = (),
    are_timed: bool = True,
) -> Trace:
    """Return the checked trace of a table in the columns of `calibrate.columns`.

    Parameters
    ----------
    table
        The rows, text or numbers. Rows whose ``k`` is filled are rounds, all others steps.
    file
        The file, for messages; relative model paths are looked up beside it.
    header
        Values that hold for every row, where the table has no such column.
    row
        Number of each row in the file, [rows]; left out: 1, 2, 3 …
    models
        Models by the text of the ``model`` column, before presets and paths are searched.
    warnings
        What the importer has to say already.
    are_timed
        Rows without a time are unusable; else they are cells to be predicted.

    Raises
    ------
    ConfigError
        Where a column is missing, a time must be in another unit, no row is left, or more than a tenth
        of the rows cannot be used. Single bad rows are dropped, counted and named in ``warnings``.
    """
    header = dict(header or {})
    numbers = np.arange(1, len(table) + 1) if row is None else np.asarray(row, dtype=np.int64)
    if not len(table):
        raise _error(file, "holds no rows")
    noted = [*warnings, *_unknown_columns(table, file)]
    is_round = is_given(table["k"]) if "k" in table else np.zeros(len(table), dtype=bool)
    if "k" in table and {"phase", "positions"}.isdisjoint({*table.columns, *header}):
        is_round[:] = True  # No row can be a step: one without k is a faulty round.
    found: dict[str, ModelSpec] = dict(models or {})
    dropped: list[tuple[int, str]] = []
    lookup = partial(_model_of, found, file)
    steps = rounds = None
    if not is_round.all():
        rows = DeclaredRows(table[~is_round], STEP_COLUMNS, header, file, numbers[~is_round])
        steps = _steps(rows, lookup, are_timed=are_timed)
        dropped += rows.dropped
    if is_round.any():
        columns = ROUND_COLUMNS if are_timed else ROUND_CELL_COLUMNS
        rows = DeclaredRows(table[is_round], columns, header, file, numbers[is_round])
        rounds = _rounds(rows, lookup)
        dropped += rows.dropped
    reasons = dropped_warnings(sorted(dropped), file)
    noted += reasons
    if len(dropped) > MAX_BAD_FRACTION * len(table):
        raise ConfigError(
            [Fault(file, None, None, "", f"{len(dropped)} of {len(table)} rows cannot be used"), *reasons]
        )
    if steps is not None and are_timed:
        noted += unit_faults(steps, file)
    return Trace(
        steps=steps,
        rounds=rounds,
        header=header,
        num_rows=len(table),
        num_dropped=len(dropped),
        warnings=tuple(noted),
        name=file,
    )


class _Shared(TypedDict):
    """Columns that steps and rounds have in common."""

    device: Texts
    models: tuple[ModelSpec, ...]
    model: Ints
    sm_clock_hz: Floats
    sm_lock_hz: Floats
    memory_clock_hz: Floats
    power_cap_w: Floats
    row: Ints


def _shared(rows: DeclaredRows, names: Texts, lookup: _Lookup) -> _Shared:
    """Read what steps and rounds have in common, last: models are looked up for usable rows only."""
    clocks = {name: _MHZ * rows.number(name) for name in ("sm_mhz", "sm_lock_mhz", "mem_mhz")}
    cap_w = rows.number("power_cap_w")
    device = rows.text("device")
    model, models = _indexed(names, rows, lookup)
    return {
        "device": device,
        "models": models,
        "model": model,
        "sm_clock_hz": clocks["sm_mhz"],
        "sm_lock_hz": clocks["sm_lock_mhz"],
        "memory_clock_hz": clocks["mem_mhz"],
        "power_cap_w": cap_w,
        "row": rows.numbers,
    }


def _steps(rows: DeclaredRows, lookup: _Lookup, *, are_timed: bool) -> Measurements | None:
    phase = rows.text("phase")
    rows.drop(~np.isin(phase, PHASES), "phase", f"is not one of {', '.join(PHASES)}")
    is_step = ~np.char.startswith(phase, "idle")
    names = rows.text("model", where=is_step)
    dtype = np.array([_DTYPE_SPELLINGS.get(one, one) for one in rows.text("dtype")], dtype=np.str_)
    rows.drop(
        is_step & ~np.isin(dtype, list(BYTES_PER_VALUE)),
        "dtype",
        f"is not one of {', '.join(BYTES_PER_VALUE)}",
    )
    excludes = np.array(
        ["+".join(sorted(filter(None, one.split("+")))) for one in rows.text("excludes")], dtype=np.str_
    )
    has_unknown = np.array([bool(set(filter(None, one.split("+"))) - set(PARTS)) for one in excludes])
    rows.drop(has_unknown, "excludes", f"is not made of {', '.join(PARTS)}")
    positions, batch = rows.whole("positions", where=is_step), rows.whole("batch", where=is_step)
    rows.drop(
        is_step & (positions < batch), "positions", "is less than batch: positions counts the whole batch"
    )
    gpu, wall = rows.number("t_gpu_us", where=is_step), rows.number("t_wall_us", where=is_step)
    if are_timed:
        rows.drop(is_step & np.isnan(gpu) & np.isnan(wall), "t_gpu_us", "is missing, and so is t_wall_us")
    energy, window = rows.number("energy_mj"), rows.number("window_s")
    rows.drop(np.isfinite(energy) & np.isnan(window), "energy_mj", "has no window_s")
    rows.drop(~is_step & np.isnan(energy), "energy_mj", "is missing in an idle phase")
    context, parallel = rows.whole("ctx", where=is_step), rows.whole("tp", where=is_step)
    shared = _shared(rows, np.where(is_step, names, ""), lookup)
    kept = rows.kept
    if not kept.size:
        return None
    whole = Measurements(
        **shared,
        dtype=dtype,
        tensor_parallel_size=np.maximum(parallel, 1),
        phase=phase,
        excludes=excludes,
        num_positions=positions,
        num_sequences=batch,
        context_tokens=context,
        gpu_s=gpu * _US,
        wall_s=wall * _US,
        energy_j=energy * _MJ,
        window_s=window,
    )
    return whole.take(kept)


def _rounds(rows: DeclaredRows, lookup: _Lookup) -> RoundMeasurements | None:
    tokens, length = rows.number("k"), rows.number("acceptance_length")
    # Emitting at most K drafts and a bonus token; means are printed with few digits.
    rows.drop(length > (tokens + 1) * 1.005, "acceptance_length", "is more than k + 1")
    rows.drop(length < 1, "acceptance_length", "is less than 1: it counts the bonus token")
    batch, rate = rows.whole("batch"), rows.number("tokens_per_s")
    power = rows.number("mean_power_w")
    shared = _shared(rows, rows.text("model"), partial(_named_target, lookup))
    kept = rows.kept
    if not kept.size:
        return None
    whole = RoundMeasurements(
        **shared,
        group=rows.text("group"),
        num_speculative_tokens=tokens,
        num_sequences=batch,
        acceptance_length=length,
        tokens_per_s=rate,
        power_w=power,
    )
    return whole.take(kept)


def _named_target(lookup: _Lookup, name: str, number: int) -> ModelSpec:
    """Return the target of rounds, or say that rounds do without."""
    try:
        return lookup(name, number)
    except ConfigError as error:
        hint = "rounds may leave model out"
        raise ConfigError([replace(one, message=f"{one.message}; {hint}") for one in error.faults]) from None


def _indexed(names: Texts, rows: DeclaredRows, lookup: _Lookup) -> tuple[Ints, tuple[ModelSpec, ...]]:
    """Index of each row's model and the models, in the order of their first row."""
    models: list[ModelSpec] = []
    index_of: dict[str, int] = {"": -1}
    for index in rows.kept:
        name = str(names[index])
        if name not in index_of:
            spec = lookup(name, int(rows.numbers[index]))
            index_of[name] = len(models)
            models.append(spec)
    return np.array([index_of.get(str(name), -1) for name in names], dtype=np.int64), tuple(models)


def _model_of(found: dict[str, ModelSpec], file: str, name: str, number: int) -> ModelSpec:
    if name not in found:
        try:
            if name.lstrip().startswith("{"):
                json.loads(name)
                found[name] = validate(ModelSpec, parse(name, file=file))
            else:
                folder = Path(file).parent
                found[name] = load_model(name, beside=folder if folder.is_dir() else None)
        except json.JSONDecodeError as error:
            raise ConfigError([Fault(file, number, None, "model", f"is not JSON: {error.msg}")]) from None
        except ConfigError as error:
            raise ConfigError(
                [Fault(file, number, None, "model", str(fault)) for fault in error.faults]
            ) from None
    return found[name]


def _unknown_columns(table: pd.DataFrame, file: str) -> list[Fault]:
    unknown = [str(name) for name in table.columns if str(name) not in KNOWN_COLUMNS]
    return [
        Fault(file, None, None, name, f"unknown column, not used{nearest_hint(name, KNOWN_COLUMNS)}")
        for name in unknown
    ]


def _error(file: str, message: str) -> ConfigError:
    return ConfigError([Fault(file, None, None, "", message)])
