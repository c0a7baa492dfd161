"""Capture: measures steps of models on the machine it runs on, and writes them as a trace.

Every repeat visits every cell of every model once, in a random order of its own, so that drift of the
machine falls on all alike. Rows are kept in a journal beside the output until all are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import Field

from calibrate.design import Cell, shuffled
from calibrate.energy_meter import EnergyMeter
from calibrate.journal import Journal, Record
from calibrate.own_format import write_trace
from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.hardware import ModelSpec
from specsim.recording.step_time import StepTime
from specsim.streams import RandomStreams

if TYPE_CHECKING:
    import pandas as pd

_US_PER_S, _MJ_PER_J = 1e6, 1e3


class Bench(Protocol):
    """A model on a device, ready to be timed."""

    @property
    def spec(self) -> ModelSpec:
        """Shape of the model."""
        ...

    @property
    def model(self) -> str:
        """Text of the ``model`` column: a preset or a config as JSON."""
        ...

    @property
    def dtype(self) -> str:
        """Format of the weights."""
        ...

    @property
    def gpu(self) -> str | None:
        """Name of the GPU; None: the processor computes."""
        ...

    def prepare(self, phase: str, num_positions: int, num_sequences: int, context_tokens: int) -> None:
        """Bring the cache to the context of a cell, unmeasured."""
        ...

    def step(self) -> StepTime:
        """Run and time one step of the prepared cell; the cache is as before."""
        ...


class CaptureSettings(Spec):
    """How often cells are measured."""

    num_warmups: int = Field(default=10, ge=0)
    """Steps before the measured ones at every visit of a cell."""
    num_repeats: int = Field(default=30, ge=1)
    """Visits of every cell; each gives a row, the mean of its steps."""
    num_steps: int = Field(default=1, ge=1)
    """Measured steps of a visit."""
    energy_window_s: float = Field(default=5.0, gt=0)
    """Length of the window in which a cell's energy is measured, at its first visit."""
    seed: int = Field(default=0, ge=0)
    """Seed of the order."""


def check_output(output: Path) -> None:
    """Refuse a place that could not be written, before hours of measuring.

    Raises
    ------
    ConfigError
        Where the output is there already, or cannot be written.
    """
    if output.exists():
        raise ConfigError(f"{output}: is there already")
    if output.suffix not in (".csv", ".jsonl", ".parquet"):
        raise ConfigError(f"{output}: a trace is written as .csv, .jsonl or .parquet")
    if not output.parent.is_dir():
        raise ConfigError(f"{output}: no such folder: {output.parent}")


def capture(
    benches: Sequence[Bench],
    cells: Sequence[Cell],
    settings: CaptureSettings,
    output: Path,
    *,
    facts: Mapping[str, str],
    meter: EnergyMeter | None = None,
    idle: Record | None = None,
    on_cell: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Measure all cells and write the trace.

    Parameters
    ----------
    benches
        The models; two of unlike size tell overheads from bandwidth.
    cells
        What is measured of each.
    settings
        How often, and in which order.
    output
        The trace to write: .csv, .jsonl or .parquet.
    facts
        What holds for the whole capture: device, driver, versions, energy counter.
    meter
        Energy counter; None: energy is not measured.
    idle
        Energy of the device before any model was loaded, from `idle_record`.
    on_cell
        Told after each visit how many are done, and of how many.

    Returns
    -------
    Path
        The output.

    Raises
    ------
    ConfigError
        Where the output is there already, cannot be written, or its journal is of another capture, or a
        model is named twice.
    """
    check_output(output)
    texts = [bench.model for bench in benches]
    if len(set(texts)) < len(texts):
        twice = next(bench.spec.name for bench in benches if texts.count(bench.model) > 1)
        raise ConfigError(f"model '{twice}' is named twice; every cell of a model is measured once a repeat")
    shape = {"models": ", ".join(bench.spec.name for bench in benches), "cells": str(len(cells))}
    header = {**facts, **shape, **{name: str(value) for name, value in settings.model_dump().items()}}
    # A capture may go on the day after, but with the same models and cells.
    identity = {key: value for key, value in header.items() if key != "date"}
    identity |= {"shapes": "; ".join(texts), "cells": " ".join(cell.cell_id for cell in cells)}
    journal = Journal(output.with_name(f"{output.name}.partial"), identity)
    if not journal.records:
        for record in _idle_records(idle, settings, meter):
            journal.append(record)
    done = {(str(one["model"]), str(one["cell_id"]), int(one["rep"])) for one in journal.records}
    visits = [
        (repeat, bench, cell)
        for repeat in range(settings.num_repeats)
        for bench, cell in _visits(benches, cells, settings, repeat)
    ]
    for number, (repeat, bench, cell) in enumerate(visits, start=1):
        if (bench.model, cell.cell_id, repeat) not in done:
            journal.append(measure_cell(bench, cell, repeat, settings, meter if repeat == 0 else None))
        on_cell(number, len(visits))
    partial = output.with_name(f".{output.name}.tmp{output.suffix}")
    write_trace(partial, _table(journal.records), header=header)
    partial.replace(output)
    journal.remove()
    return output


def idle_record(phase: Literal["idle", "idle_context"], window_s: float, meter: EnergyMeter) -> Record:
    """Energy of a device that does nothing, with or without a model loaded, over a window."""
    start_j, start_s = meter.read_j(), time.perf_counter()
    time.sleep(window_s)
    return {
        "model": "",
        "cell_id": phase,
        "rep": 0,
        "phase": phase,
        "energy_mj": _MJ_PER_J * (meter.read_j() - start_j),
        "window_s": time.perf_counter() - start_s,
        **meter.state(),
    }


def _idle_records(idle: Record | None, settings: CaptureSettings, meter: EnergyMeter | None) -> list[Record]:
    waiting = [] if meter is None else [idle_record("idle_context", settings.energy_window_s, meter)]
    return [*([] if idle is None else [idle]), *waiting]


def _visits(
    benches: Sequence[Bench], cells: Sequence[Cell], settings: CaptureSettings, repeat: int
) -> list[tuple[Bench, Cell]]:
    # Models take turns: a fresh order of cells for each repeat, all models at each cell.
    return [
        (bench, cell)
        for cell in shuffled(cells, RandomStreams(settings.seed), repeat=repeat)
        for bench in benches
    ]


def measure_cell(
    bench: Bench, cell: Cell, repeat: int, settings: CaptureSettings, meter: EnergyMeter | None
) -> Record:
    """Measure one visit of a cell: the mean of its steps, and their energy where there is a meter."""
    bench.prepare(cell.phase, cell.num_positions, cell.num_sequences, cell.context_tokens)
    for _ in range(settings.num_warmups):
        bench.step()
    times = [bench.step() for _ in range(settings.num_steps)]
    count = len(times)
    record: dict[str, str | int | float] = {
        "model": bench.model,
        "dtype": bench.dtype,
        "cell_id": cell.cell_id,
        "rep": repeat,
        "phase": cell.phase,
        "positions": cell.num_positions,
        "batch": cell.num_sequences,
        "ctx": cell.context_tokens,
        "n_iters": count,
    }
    wall_us = _US_PER_S * sum(one.wall_s for one in times) / count
    host_us = _US_PER_S * sum(one.host_s for one in times) / count
    device_s = [one.device_s for one in times if one.device_s is not None]
    if device_s:
        record["t_gpu_us"] = _US_PER_S * sum(device_s) / len(device_s)
    # Where CPU time is the device's, the clock on the wall shows who else computes; no fit may read the
    # difference as launches.
    is_cpu_time = bool(device_s) and bench.gpu is None
    record |= {"t_host_us": wall_us} if is_cpu_time else {"t_wall_us": wall_us, "t_host_us": host_us}
    if meter is not None:
        record |= {**_energy(bench, settings, meter), **meter.state()}
    return record


def _energy(bench: Bench, settings: CaptureSettings, meter: EnergyMeter) -> dict[str, float]:
    """Energy over a window of whole steps, and its length."""
    window_s, start_j = 0.0, meter.read_j()
    while window_s < settings.energy_window_s:
        window_s += bench.step().wall_s
    return {"energy_mj": _MJ_PER_J * (meter.read_j() - start_j), "window_s": window_s}


def _table(records: Sequence[Record]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(records))
