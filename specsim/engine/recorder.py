"""The recorder of a run: appends arrays as they happen, and stacks them at the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from specsim.arrays import NANOJOULES_PER_JOULE, PICOSECONDS_PER_SECOND, Bools, Floats, Ints
from specsim.engine.pair import Block
from specsim.results.table import Labels
from specsim.speculation.rounds import Rounds

PHASES = ("prefill", "decode")
_ROUNDS: tuple[tuple[str, type[np.generic]], ...] = (
    ("step", np.int32),
    ("request", np.int32),
    ("num_drafted", np.int32),
    ("num_accepted", np.int32),
    ("num_emitted", np.int32),
    ("is_censored", np.bool_),
)
_SI = {"_ps": ("_s", PICOSECONDS_PER_SECOND), "_nj": ("_j", NANOJOULES_PER_JOULE)}


class Recorder:
    """Steps and rounds as they happen, and when each request had its first and last token.

    Parameters
    ----------
    num_requests
        Requests in the run.
    progress
        Told now and then how many tokens were emitted.
    """

    def __init__(self, num_requests: int, *, progress: Callable[[int], None] | None = None) -> None:
        self.num_steps = 0
        self._num_emitted = 0
        self._progress = progress
        self._first_token_ps: Ints = np.zeros(num_requests, dtype=np.int64)
        self._finish_ps: Ints = np.zeros(num_requests, dtype=np.int64)
        self._num_output_tokens: Ints = np.zeros(num_requests, dtype=np.int64)
        self._steps: dict[str, list[NDArray[np.generic]]] = {}
        self._rounds: dict[str, list[NDArray[np.generic]]] = {
            name: [np.zeros(0, dtype)] for name, dtype in _ROUNDS
        }

    def add_rounds(self, request: Ints, rounds: Rounds, *, is_censored: Bools) -> None:
        """Append R rounds of the sequences of ``request`` [B], which are the next R steps."""
        num_rounds, num_sequences = is_censored.shape
        step = np.arange(self.num_steps, self.num_steps + num_rounds, dtype=np.int32)
        block = {
            "step": np.repeat(step, num_sequences),
            "request": np.tile(request, num_rounds),
            "num_drafted": rounds.num_drafted.ravel(),
            "num_accepted": rounds.num_accepted.ravel(),
            "num_emitted": rounds.num_emitted.ravel(),
            "is_censored": is_censored.ravel(),
        }
        _append(self._rounds, {name: block[name].astype(dtype) for name, dtype in _ROUNDS})

    def add_steps(self, phase: str, start_ps: int, block: Block) -> None:
        """Append the steps of a block that begins at ``start_ps``."""
        ends_ps = start_ps + np.cumsum(block.duration_ps)
        count = ends_ps.size
        own: dict[str, NDArray[np.generic]] = {
            "step": np.arange(self.num_steps, self.num_steps + count, dtype=np.int32),
            "phase": np.full(count, PHASES.index(phase), dtype=np.uint8),
            "start_ps": ends_ps - block.duration_ps,
        }
        _append(self._steps, own | block.columns)
        self.num_steps += count
        if self._progress is not None:
            self._num_emitted += int(block.columns["num_emitted"].sum())
            self._progress(self._num_emitted)

    def first_token(self, request: Ints, time_ps: Ints) -> None:
        """Note when requests emitted their first token."""
        self._first_token_ps[request] = time_ps

    def finish(self, request: Ints, time_ps: int, *, num_output_tokens: Ints | int) -> None:
        """Note when requests emitted their last token, and how many they emitted."""
        self._finish_ps[request] = time_ps
        self._num_output_tokens[request] = num_output_tokens

    @property
    def first_token_s(self) -> Floats:
        """Time of each request's first token, s."""
        return self._first_token_ps / PICOSECONDS_PER_SECOND

    @property
    def finish_s(self) -> Floats:
        """Time of each request's last token, s."""
        return self._finish_ps / PICOSECONDS_PER_SECOND

    @property
    def num_output_tokens(self) -> Ints:
        """Tokens that each request emitted."""
        return self._num_output_tokens

    def take_steps(self) -> dict[str, NDArray[np.generic] | Labels]:
        """Return the columns of all steps in SI units, and forget them."""
        columns = _stack(self._steps)
        return columns | {"phase": Labels(np.asarray(columns["phase"], dtype=np.uint8), PHASES)}

    def take_rounds(self) -> dict[str, NDArray[np.generic]]:
        """Return the columns of all rounds, and forget them."""
        return _stack(self._rounds)


def _append(columns: dict[str, list[NDArray[np.generic]]], block: dict[str, NDArray[np.generic]]) -> None:
    for name, values in block.items():
        columns.setdefault(name, []).append(values)


def _stack(columns: dict[str, list[NDArray[np.generic]]]) -> dict[str, NDArray[np.generic]]:
    stacked = {}
    for name in list(columns):
        # Popped as it goes, so that a million steps do not exist twice.
        values = np.concatenate(columns.pop(name))
        suffix, per_unit = _SI.get(name[-3:], (name[-3:], 0))
        stacked[name[:-3] + suffix] = values / per_unit if per_unit else values
    return stacked
