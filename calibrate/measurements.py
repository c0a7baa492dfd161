"""Measurements as columns: timed steps, timed rounds of speculation, and the trace that holds both.

Everything is SI here; the units of files stay in the modules that read them. A figure that was not
measured is NaN, and only the columns that say so may hold one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specsim.arrays import Bools, Floats, Ints
from specsim.errors import Fault
from specsim.hardware import ModelSpec, StepShape

Texts: TypeAlias = NDArray[np.str_]

Phase: TypeAlias = Literal["prefill", "decode", "verify", "idle", "idle_context"]
"""What a row measured. The idle phases hold power only: without, and with, a model loaded."""

PHASES: tuple[Phase, ...] = ("prefill", "decode", "verify", "idle", "idle_context")

Part: TypeAlias = Literal["attention", "communication", "head", "launch", "linear"]
"""A part of a step that a measurement may leave out, such as a table of operators without attention.

``launch``: host work and gaps between kernels, once a step and once a sequence; ``linear``: everything but
attention, so that a row without it timed attention alone.
"""

PARTS: tuple[Part, ...] = ("attention", "communication", "head", "launch", "linear")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Timed passes of models; every array is a column over R rows.

    A row of a step has ``gpu_s`` or ``wall_s`` or both; a row of an idle phase has energy only. Lists
    of models are shared by rows: ``models[model[i]]`` is the model of row i.
    """

    device: Texts
    """Name of the device."""
    models: tuple[ModelSpec, ...]
    """The models that were measured; not a column."""
    model: Ints
    """Index into ``models``; −1 in an idle phase."""
    dtype: Texts
    """Format of the weights, a name of `specsim.hardware.formats`."""
    tensor_parallel_size: Ints
    """Devices that share each layer; times and energies are those of one rank's step, energy of all."""
    phase: Texts
    """One of `PHASES`."""
    excludes: Texts
    """Parts of `PARTS` that the times leave out, sorted and joined by ``+``; empty: a whole step."""
    num_positions: Ints
    """Positions of the step over the whole batch."""
    num_sequences: Ints
    """Sequences of the batch."""
    context_tokens: Ints
    """Cached tokens of each sequence before the step."""
    gpu_s: Floats
    """Time by the device's own timers, s; NaN where not measured."""
    wall_s: Floats
    """Time by the host's clock, s; NaN where not measured."""
    energy_j: Floats
    """Energy of all devices over the window, J; NaN where not measured."""
    window_s: Floats
    """Length of the window of the energy, which may hold many equal steps, s; NaN where not measured."""
    sm_clock_hz: Floats
    """Mean clock of the arithmetic, Hz; NaN where not measured."""
    sm_lock_hz: Floats
    """Highest clock that was allowed, Hz; NaN where the clock was free."""
    memory_clock_hz: Floats
    """Clock of the memory, Hz; NaN where not measured."""
    power_cap_w: Floats
    """Power limit of one device, W; NaN where not stated."""
    row: Ints
    """Row of the file, for messages: its line in a CSV or JSONL file, else its number from 1."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row)

    @classmethod
    def of(
        cls,
        *,
        device: str | Sequence[str] | Texts,
        models: Sequence[ModelSpec],
        num_positions: Sequence[int] | Ints,
        model: int | Sequence[int] | Ints = 0,
        dtype: str | Sequence[str] | Texts = "bfloat16",
        tensor_parallel_size: int | Sequence[int] | Ints = 1,
        phase: str | Sequence[str] | Texts = "decode",
        excludes: str | Sequence[str] | Texts = "",
        num_sequences: int | Sequence[int] | Ints = 1,
        context_tokens: int | Sequence[int] | Ints = 0,
        gpu_s: float | Sequence[float] | Floats = np.nan,
        wall_s: float | Sequence[float] | Floats = np.nan,
        energy_j: float | Sequence[float] | Floats = np.nan,
        window_s: float | Sequence[float] | Floats = np.nan,
        sm_clock_hz: float | Sequence[float] | Floats = np.nan,
        sm_lock_hz: float | Sequence[float] | Floats = np.nan,
        memory_clock_hz: float | Sequence[float] | Floats = np.nan,
        power_cap_w: float | Sequence[float] | Floats = np.nan,
        row: Sequence[int] | Ints | None = None,
    ) -> Self:
        """Return measurements from columns, a single value standing for all rows.

        Examples
        --------
        >>> from specsim.hardware import load_model
        >>> timed = Measurements.of(
        ...     device="h100-sxm", models=[load_model("llama-3.1-8b")], num_positions=[1, 8], gpu_s=0.008
        ... )
        >>> len(timed), timed.phase.tolist()
        (2, ['decode', 'decode'])
        """
        count = len(num_positions)

        def texts(given: str | Sequence[str] | Texts) -> Texts:
            return np.broadcast_to(np.asarray(given, dtype=np.str_), count).copy()

        def ints(given: int | Sequence[int] | Ints) -> Ints:
            return np.broadcast_to(np.asarray(given, dtype=np.int64), count).copy()

        def floats(given: float | Sequence[float] | Floats) -> Floats:
            return np.broadcast_to(np.asarray(given, dtype=np.float64), count).copy()

        return cls(
            device=texts(device),
            models=tuple(models),
            model=ints(model),
            dtype=texts(dtype),
            tensor_parallel_size=ints(tensor_parallel_size),
            phase=texts(phase),
            excludes=texts(excludes),
            num_positions=ints(num_positions),
            num_sequences=ints(num_sequences),
            context_tokens=ints(context_tokens),
            gpu_s=floats(gpu_s),
            wall_s=floats(wall_s),
            energy_j=floats(energy_j),
            window_s=floats(window_s),
            sm_clock_hz=floats(sm_clock_hz),
            sm_lock_hz=floats(sm_lock_hz),
            memory_clock_hz=floats(memory_clock_hz),
            power_cap_w=floats(power_cap_w),
            row=np.arange(1, count + 1) if row is None else ints(row),
        )

    @property
    def is_step(self) -> Bools:
        """Rows that timed a pass, not an idle device."""
        return ~np.char.startswith(self.phase, "idle")

    @property
    def time_s(self) -> Floats:
        """Time of the step, s: the device's own where measured, else the host's."""
        return np.where(np.isnan(self.gpu_s), self.wall_s, self.gpu_s)

    @property
    def power_w(self) -> Floats:
        """Mean power of all devices over the window, W; NaN where not measured."""
        return self.energy_j / self.window_s

    def take(self, rows: Bools | Ints) -> Self:
        """Return some of the rows, by mask or by index."""
        return replace(
            self, **{one.name: getattr(self, one.name)[rows] for one in fields(self) if one.name != "models"}
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return several sets of measurements as one; equal models become one."""
        models: list[ModelSpec] = []
        columns = _joined_columns(parts, models)
        return cls(models=tuple(models), **columns)  # type: ignore[arg-type]

    def with_columns(self, columns: Mapping[str, Texts | Ints | Floats]) -> Self:
        """Return the measurements with some columns replaced, all of one length."""
        return replace(self, **columns)  # type: ignore[arg-type]

    def shape(self) -> StepShape:
        """Return the shapes of the steps, [R].

        The positions of a step are spread evenly over its sequences; each attends to the context of its
        sequence and to the positions before it. A prefill asks for one position's logits a sequence,
        decoding and verification for those of every position.
        """
        each = self.num_positions / np.maximum(self.num_sequences, 1)
        attended = self.num_positions * (self.context_tokens + 0.5 * (each + 1.0))
        is_prefill = self.phase == "prefill"
        has_head = np.char.find(self.excludes, "head") < 0
        return StepShape(
            num_sequences=self.num_sequences,
            num_positions=self.num_positions,
            num_prefill_positions=self.num_positions * is_prefill,
            num_logit_positions=np.where(is_prefill, self.num_sequences, self.num_positions) * has_head,
            context_tokens=self.context_tokens * self.num_sequences,
            position_context=np.rint(attended).astype(np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundMeasurements:
    """Speculative decoding timed end to end; every array is a column over R rows."""

    device: Texts
    """Name of the device."""
    models: tuple[ModelSpec, ...]
    """The targets; not a column. May be empty: fits that need no arithmetic of the model do without."""
    model: Ints
    """Index into ``models``; −1 where it is not known."""
    group: Texts
    """What is left out as one in validation, such as the benchmark; empty: the row by itself."""
    num_speculative_tokens: Floats
    """K: tokens drafted a round, their mean where it varies; 0 is the baseline without speculation."""
    num_sequences: Ints
    """Sequences decoding at once."""
    acceptance_length: Floats
    """Tokens emitted a round, bonus token included."""
    tokens_per_s: Floats
    """Output tokens a second of all sequences together."""
    power_w: Floats
    """Mean power, W; NaN where not measured."""
    power_cap_w: Floats
    """Power limit, W; NaN where not stated."""
    sm_clock_hz: Floats
    """Mean clock of the arithmetic, Hz; NaN where not measured."""
    sm_lock_hz: Floats
    """Highest clock that was allowed, Hz; NaN where the clock was free."""
    memory_clock_hz: Floats
    """Clock of the memory, Hz; NaN where not measured."""
    row: Ints
    """Row of the file, for messages."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return several sets of rounds as one; equal models become one."""
        models: list[ModelSpec] = []
        columns = _joined_columns(parts, models)
        return cls(models=tuple(models), **columns)  # type: ignore[arg-type]

    @property
    def round_s(self) -> Floats:
        """Time of one round of the whole batch, s."""
        return self.num_sequences * self.acceptance_length / self.tokens_per_s

    def take(self, rows: Bools | Ints) -> Self:
        """Return some of the rows, by mask or by index."""
        return replace(
            self, **{one.name: getattr(self, one.name)[rows] for one in fields(self) if one.name != "models"}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one file, or several, held: rows of steps, rows of rounds, and what could not be used."""

    steps: Measurements | None = None
    """Timed steps; None where the file has none."""
    rounds: RoundMeasurements | None = None
    """Timed rounds; None where the file has none."""
    header: Mapping[str, str] = field(default_factory=dict)
    """What the file says of itself: source, licence, date, driver, engine."""
    num_rows: int = 0
    """Rows that the file holds."""
    num_dropped: int = 0
    """Rows of them that were dropped; each is named in ``warnings``."""
    warnings: tuple[Fault, ...] = ()
    """What the reader should know, one line each, with the rows concerned."""
    name: str = ""
    """The file."""


def is_outside(values: Floats | Ints, measured: Floats | Ints) -> Bools:
    """Tell which values lie below the least or above the most that was measured, along the last axis."""
    least, most = measured.min(axis=-1, keepdims=True), measured.max(axis=-1, keepdims=True)
    outside: Bools = (values < least) | (values > most)
    return outside


def _joined_columns(
    parts: Sequence[Measurements] | Sequence[RoundMeasurements], models: list[ModelSpec]
) -> dict[str, NDArray[np.generic]]:
    """Columns of several parts one after the other; models are collected, each once."""
    indices: list[Ints] = []
    for part in parts:
        places = []
        for model in part.models:
            if model not in models:
                models.append(model)
            places.append(models.index(model))
        indices.append(np.array([*places, -1], dtype=np.int64)[part.model])
    names = [one.name for one in fields(parts[0]) if one.name not in ("models", "model")]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return {**columns, "model": np.concatenate(indices)}
