"""From a table in the project's own columns to a checked trace: every bad row is named, none vanishes.

All importers end here, so that each of them only renames and rescales.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibrate.columns import KNOWN_COLUMNS, ROUND_COLUMNS, STEP_COLUMNS, TraceColumn
from calibrate.doubts import dropped_warnings, unit_faults
from calibrate.measurements import PARTS, PHASES, Measurements, RoundMeasurements, Texts, Trace
from specsim.arrays import Bools, Floats, Ints
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
        Steps without a time are unusable; else they are cells to be predicted.

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
    is_round = _is_given(table["k"]) if "k" in table else np.zeros(len(table), dtype=bool)
    found: dict[str, ModelSpec] = dict(models or {})
    dropped: list[tuple[int, str]] = []
    lookup = partial(_model_of, found, file)
    steps = rounds = None
    if not is_round.all():
        rows = _Rows(table[~is_round], STEP_COLUMNS, header, file, numbers[~is_round])
        steps = _steps(rows, lookup, are_timed=are_timed)
        dropped += rows.dropped
    if is_round.any():
        rows = _Rows(table[is_round], ROUND_COLUMNS, header, file, numbers[is_round])
        rounds = _rounds(rows, lookup)
        dropped += rows.dropped
    noted += dropped_warnings(sorted(dropped), file)
    if len(dropped) > MAX_BAD_FRACTION * len(table):
        reasons = [Fault(file, None, None, fault.path, fault.message) for fault in noted[-3:]]
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


class _Rows:
    """Columns of a table under their declared kinds, and the rows that break them."""

    def __init__(
        self,
        table: pd.DataFrame,
        columns: Sequence[TraceColumn],
        header: Mapping[str, str],
        file: str,
        numbers: Ints,
    ) -> None:
        self._table, self._header = table, header
        self.file, self.numbers = file, numbers
        self._reasons: dict[int, str] = {}
        missing = [
            one.name
            for one in columns
            if one.is_required and one.name not in table and one.name not in header
        ]
        # An idle device has no positions, so only a file with steps needs them.
        phases = set(table["phase"]) if "phase" in table else {header.get("phase", "")}
        if phases and all(str(phase).startswith("idle") for phase in phases):
            missing = [name for name in missing if name == "device"]
        if missing:
            given = [str(name) for name in table.columns]
            raise ConfigError([Fault(file, None, None, name, _missing(name, given)) for name in missing])
        self._columns = {one.name: one for one in columns}

    def text(self, name: str) -> Texts:
        """Return a text column."""
        column = self._columns[name]
        if name not in self._table:
            return np.full(len(self._table), self._header.get(name, column.default or ""))
        values = self._table[name]
        fallback = self._header.get(name, column.default or "")
        return np.array(
            [
                str(value).strip() if given else fallback
                for value, given in zip(values.tolist(), _is_given(values).tolist(), strict=True)
            ],
            dtype=np.str_,
        )

    def number(self, name: str, *, where: Bools | None = None) -> Floats:
        """Return a column of numbers; NaN where empty. Bad ones are dropped where ``where`` holds."""
        import pandas as pd

        column = self._columns[name]
        count = len(self._table)
        held = np.ones(count, dtype=bool) if where is None else where
        default = self._header.get(name, column.default)
        if name in self._table:
            raw = self._table[name]
            given = _is_given(raw)
            values = pd.to_numeric(raw, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            self.drop(held & given & ~np.isfinite(values), name, "is not a finite number")
            values = np.where(given, values, np.nan if default is None else float(default))
        else:
            values = np.full(count, np.nan if default is None else _as_number(default, name, self.file))
        if column.is_required:
            self.drop(held & np.isnan(values), name, "is missing")
        is_low = values < 0 if column.may_be_zero else values <= 0
        self.drop(held & is_low, name, "is negative" if column.may_be_zero else "is zero or negative")
        return values

    def whole(self, name: str, *, where: Bools | None = None) -> Ints:
        """Return a column of whole numbers; 0 in rows that are dropped or not in ``where``."""
        values = self.number(name, where=where)
        held = np.ones(len(values), dtype=bool) if where is None else where
        self.drop(held & np.isfinite(values) & (values != np.rint(values)), name, "is not a whole number")
        return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0).astype(np.int64)

    def drop(self, rows: Bools, name: str, why: str) -> None:
        """Mark rows as unusable; the first reason counts."""
        for index in np.flatnonzero(rows):
            self._reasons.setdefault(int(index), f"{name}: {why}")

    @property
    def kept(self) -> Ints:
        """Rows still usable, by index."""
        mask = np.ones(len(self._table), dtype=bool)
        mask[list(self._reasons)] = False
        return np.flatnonzero(mask)

    @property
    def dropped(self) -> list[tuple[int, str]]:
        """Return (row of the file, reason) of what was dropped."""
        return [(int(self.numbers[index]), reason) for index, reason in self._reasons.items()]


def _steps(rows: _Rows, lookup: _Lookup, *, are_timed: bool) -> Measurements | None:
    phase, names = rows.text("phase"), rows.text("model")
    rows.drop(~np.isin(phase, PHASES), "phase", f"is not one of {', '.join(PHASES)}")
    is_step = ~np.char.startswith(phase, "idle")
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
    sm, memory, cap = rows.number("sm_mhz"), rows.number("mem_mhz"), rows.number("power_cap_w")
    lock = rows.number("sm_lock_mhz")
    model, models = _indexed(np.where(is_step, names, ""), rows, lookup)
    kept = rows.kept
    if not kept.size:
        return None
    whole = Measurements(
        device=rows.text("device"),
        models=models,
        model=model,
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
        sm_clock_hz=sm * _MHZ,
        sm_lock_hz=lock * _MHZ,
        memory_clock_hz=memory * _MHZ,
        power_cap_w=cap,
        row=rows.numbers,
    )
    return whole.take(kept)


def _rounds(rows: _Rows, lookup: _Lookup) -> RoundMeasurements | None:
    tokens, length = rows.number("k"), rows.number("acceptance_length")
    # Emitting at most K drafts and a bonus token; means are printed with few digits.
    rows.drop(length > (tokens + 1) * 1.005, "acceptance_length", "is more than k + 1")
    rows.drop(length < 1, "acceptance_length", "is less than 1: it counts the bonus token")
    batch, rate = rows.whole("batch"), rows.number("tokens_per_s")
    power, cap = rows.number("mean_power_w"), rows.number("power_cap_w")
    sm, lock, memory = rows.number("sm_mhz"), rows.number("sm_lock_mhz"), rows.number("mem_mhz")
    model, models = _indexed(rows.text("model"), rows, lookup)
    kept = rows.kept
    if not kept.size:
        return None
    whole = RoundMeasurements(
        device=rows.text("device"),
        models=models,
        model=model,
        group=rows.text("group"),
        num_speculative_tokens=tokens,
        num_sequences=batch,
        acceptance_length=length,
        tokens_per_s=rate,
        power_w=power,
        power_cap_w=cap,
        sm_clock_hz=sm * _MHZ,
        sm_lock_hz=lock * _MHZ,
        memory_clock_hz=memory * _MHZ,
        row=rows.numbers,
    )
    return whole.take(kept)


def _indexed(names: Texts, rows: _Rows, lookup: _Lookup) -> tuple[Ints, tuple[ModelSpec, ...]]:
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
        Fault(file, None, None, name, f"unknown column, not used{_hint(name, KNOWN_COLUMNS)}")
        for name in unknown
    ]


def _missing(name: str, given: Sequence[str]) -> str:
    return f"missing: no such column, and no '# {name}: …' in the header{_hint(name, given)}"


def _hint(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f" (did you mean '{near[0]}'?)" if near else ""


def _is_given(values: pd.Series) -> Bools:
    text = values.astype("string").str.strip().fillna("")
    return (text != "").to_numpy(dtype=bool)


def _as_number(text: str, name: str, file: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            [Fault(file, None, None, name, f"'{text}' in the header is not a number")]
        ) from None


def _error(file: str, message: str) -> ConfigError:
    return ConfigError([Fault(file, None, None, "", message)])
