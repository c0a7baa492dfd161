"""Which form of the law: cross-validation over tiles and corners, and against a table of the points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.law import FORMS, Form, TimeLaw
from calibrate.parameters import Parameter
from specsim.arrays import Bools, Floats, Ints

NUM_FOLDS = 5
TIE = 1.05
"""A tile must be this much better than none, and a table than the law, which alone leaves the points."""
_SCALE = 0.05
"""s of the loss while forms are compared: a few percent, the misfit that the law has on real kernels."""
_MOST_CELLS = 800
"""Cells that forms are compared on; more would tell the same."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The form that won, and what it won against."""

    form: Form
    errors: Mapping[Form, float]
    """Mean absolute relative error of left-out cells, by form."""
    table_error: float | None
    """The same of log-log interpolation between the cells that were kept; None where there is no curve."""

    @property
    def error(self) -> float:
        """Error of the form that won."""
        return self.errors[self.form]

    @property
    def prefers_table(self) -> bool:
        """A table of the measured points predicts left-out points better than the law."""
        return self.table_error is not None and self.table_error * TIE < self.error


def choose_form(
    law: TimeLaw, free: Sequence[Parameter], *, held: Mapping[str, float] | None = None
) -> Choice:
    """Return the form with the least error on cells left out.

    Parameters
    ----------
    law
        The cells.
    free
        Parameters that every form may fit.
    held
        Figures held at other values than the prior's.
    """
    law = thinned(law)
    folds = list(_folds(law))
    misses = {form: _misses(law, free, form, folds, held) for form in FORMS}
    winner = min(FORMS, key=lambda form: float(misses[form].mean()))
    worse = misses[Form(1)] - misses[winner]
    is_by_chance = worse.mean() < np.std(worse) / np.sqrt(len(worse))
    if is_by_chance and worse.mean() < (TIE - 1.0) * misses[winner].mean():
        winner = Form(1)
    if any(one.path == "overhead.smooth_exponent" for one in free):
        hard = Form(winner.tile_positions, winner.tile_fraction, is_smooth=False)
        misses[hard] = _misses(law, free, hard, folds, held)
        winner = min(winner, hard, key=lambda form: float(misses[form].mean()))
    errors = {form: float(miss.mean()) for form, miss in misses.items()}
    return Choice(winner, errors, table_error(law, folds))


def table_error(law: TimeLaw, folds: Sequence[Bools]) -> float | None:
    """Error of log-log interpolation of left-out cells from the others of their curve.

    A curve is one model, format, number of devices, batch and context. Its ends are never left out,
    since a table refuses what is outside it. None where no cell lies between two others.
    """
    curves, x, y = _curves(law), np.log1p(law.cells.num_positions), law.log_times
    residuals = []
    for left_out in folds:
        for curve in np.unique(curves):
            here = curves == curve
            kept = here & ~left_out
            inside = here & left_out & (x > x[here].min()) & (x < x[here].max())
            if inside.any() and kept.sum() >= 2:
                order = np.argsort(x[kept])
                residuals.append(np.interp(x[inside], x[kept][order], y[kept][order]) - y[inside])
    if not residuals:
        return None
    return float(np.mean(np.abs(np.expm1(np.concatenate(residuals)))))


def _misses(
    law: TimeLaw,
    free: Sequence[Parameter],
    form: Form,
    folds: Sequence[Bools],
    held: Mapping[str, float] | None,
) -> Floats:
    """Absolute relative errors of all cells, each predicted while it was left out, fold by fold."""
    free_here = [one for one in free if not held or one.path not in held]
    everywhere = np.ones(len(law.cells), dtype=bool)
    start, _ = law.fit(free_here, form, rows=everywhere, held=held, scale=_SCALE, max_evaluations=40)
    known = {path: value for path, value in start.items() if value is not None}
    residuals: list[Floats] = []
    for left_out in folds:
        values, _ = law.fit(
            free_here, form, rows=~left_out, held=held, start=known, scale=_SCALE, max_evaluations=15
        )
        residuals.append(np.log(law.predict(values, form, left_out)) - law.log_times[left_out])
    return np.abs(np.expm1(np.concatenate(residuals)))


def leaves_models_out(law: TimeLaw) -> bool:
    """Tell whether a fit without one model can still tell bandwidth, time a layer and time a step apart."""
    names = {law.cells.models[index].name for index in law.cells.model.tolist()}
    num_constants = 3 if law.parts(1).has_launch.any() else 2
    return len(names) > num_constants


def _folds(law: TimeLaw) -> Iterator[Bools]:
    """Yield what is left out: a model at a time where that can be, else every fifth cell of a curve.

    A form must hold for a model that it has not seen.
    """
    models = law.cells.model
    if leaves_models_out(law):
        for model in np.unique(models):
            yield models == model
        return
    rank = curve_order(law)
    for fold in range(min(NUM_FOLDS, len(rank))):
        yield rank % NUM_FOLDS == fold


def curve_order(law: TimeLaw) -> Ints:
    """Place of each cell in the order of curves and positions, [R]."""
    order = np.lexsort((law.cells.num_positions, _curves(law)))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _curves(law: TimeLaw) -> Ints:
    cells = law.cells
    columns = (cells.model, cells.dtype, cells.tensor_parallel_size, cells.excludes, cells.phase)
    curve = np.zeros(len(cells), dtype=np.int64)
    for values in (
        *columns,
        cells.num_sequences * (cells.num_sequences != cells.num_positions),
        cells.context_tokens,
    ):
        _, index = np.unique(values, return_inverse=True)
        _, curve = np.unique(curve * (index.max(initial=0) + 1) + index, return_inverse=True)
    return curve


def thinned(law: TimeLaw) -> TimeLaw:
    """Return the law of at most so many cells, evenly taken from every curve."""
    count = len(law.cells)
    if count <= _MOST_CELLS:
        return law
    rank = curve_order(law)
    kept = np.floor(rank * _MOST_CELLS / count) > np.floor((rank - 1) * _MOST_CELLS / count)
    return TimeLaw(law.cells.take(kept), law.prior)
