"""Error on rows that a fit has not seen: what to leave out, and the errors by phase and by positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from calibrate.law import TimeLaw
from calibrate.measurements import Measurements
from calibrate.observations import observe
from calibrate.predict import Predictor
from calibrate.select import curve_order, leaves_models_out
from specsim.arrays import Bools, Floats
from specsim.hardware import RooflineProfile

_NUM_FOLDS = 5
POSITION_BINS = ((1, 1), (2, 8), (9, 64), (65, 512), (513, 10**9))
"""Positions of a step that errors are shown for."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Error of one part of the cells."""

    name: str
    num_cells: int
    error: float
    """Mean absolute relative error."""
    bias: float
    """Mean relative error; positive: predicted longer, or more, than measured."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Predictions of cells by fits that have not seen them."""

    cells: Measurements
    predicted_s: Floats
    """[R]."""
    scheme: str
    """What was left out at a time."""

    @property
    def relative(self) -> Floats:
        """Predicted over measured time, less one, [R]."""
        return self.predicted_s / self.cells.gpu_s - 1.0

    @property
    def total(self) -> Slice:
        """Error over all cells."""
        return _slice("all", self.relative)

    def by_phase(self) -> list[Slice]:
        """Errors of prefill, decoding and verification."""
        phase = self.cells.phase
        return [_slice(str(name), self.relative[phase == name]) for name in np.unique(phase)]

    def by_positions(self) -> list[Slice]:
        """Errors by positions of the step."""
        positions = self.cells.num_positions
        found = []
        for least, most in POSITION_BINS:
            inside = (positions >= least) & (positions <= most)
            if inside.any():
                name = (
                    str(least)
                    if least == most
                    else f"{least}–{most}"
                    if most < 10**9
                    else f"over {least - 1}"
                )
                found.append(_slice(name, self.relative[inside]))
        return found


def hold_out(
    measurements: Measurements,
    prior: RooflineProfile,
    fit: Callable[[Measurements], RooflineProfile],
) -> HeldOut:
    """Predict every cell by a fit of the others.

    Left out at a time is a model where the others still tell all figures, else every fifth cell of each
    curve.

    Parameters
    ----------
    measurements
        The rows.
    prior
        Profile to start from.
    fit
        From rows to a fitted profile, the choice of form included.
    """
    cells = observe(measurements).rows
    predicted = np.full(len(cells), np.nan)
    scheme, folds = _folds(cells, prior)
    for left_out in folds:
        profile = fit(cells.take(~left_out))
        predicted[left_out] = Predictor(cells.take(left_out))(profile).time_s
    seen = np.isfinite(predicted)
    return HeldOut(cells.take(seen), predicted[seen], scheme)


def _folds(cells: Measurements, prior: RooflineProfile) -> tuple[str, Iterator[Bools]]:
    law = TimeLaw(cells, prior)
    if leaves_models_out(law):
        names = np.array([one.name for one in cells.models])[cells.model]
        return "one model at a time", (names == name for name in np.unique(names))
    rank = curve_order(law)
    return "every fifth cell", (rank % _NUM_FOLDS == fold for fold in range(_NUM_FOLDS))


def _slice(name: str, relative: Floats) -> Slice:
    return Slice(name, len(relative), float(np.mean(np.abs(relative))), float(np.mean(relative)))
