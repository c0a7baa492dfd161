"""From measured steps to the figures of a profile: which can be told, which form holds, how far off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate.diagnose import (
    NotIdentified,
    Rank,
    inflation_of,
    other_way_round,
    profile_interval,
    rank_of,
    structural,
    weak,
)
from calibrate.figures import Figure, covariance_of, figures_of
from calibrate.law import Form, TimeLaw
from calibrate.measurements import Measurements
from calibrate.observations import observe
from calibrate.parameters import Parameter, with_values
from calibrate.regression import Regression
from calibrate.select import Choice, choose_form, curve_order, thinned
from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.hardware import RooflineProfile
from specsim.hardware.roofline_figures import Overhead

LEAST_CELLS = 6
"""Fewer cells say nothing about a law of five figures."""


@dataclass(frozen=True, slots=True)
class TimeFit:
    """A fitted law of step times."""

    profile: RooflineProfile
    """The prior with the fitted figures in place."""
    figures: tuple[Figure, ...]
    not_identified: tuple[NotIdentified, ...]
    choice: Choice | None
    """The forms that were compared; None where the form was given."""
    form: Form
    cells: Measurements
    """The cells of the fit, their times in ``gpu_s``."""
    repeat_spread: float | None
    regression: Regression
    covariance: Floats
    """Of the figures, in their order, [K, K]."""
    rank: Rank
    inflation: float
    """Factor on variances for common misfit of neighbouring cells."""

    @property
    def log_residuals(self) -> Floats:
        """Logarithm of predicted over measured time, [R]."""
        return self.regression.residuals


def fit_time(
    measurements: Measurements,
    prior: RooflineProfile,
    *,
    form: Form | None = None,
    free: Sequence[Parameter] | None = None,
    with_intervals: bool = True,
) -> TimeFit:
    """Fit the law of step times to measurements.

    Parameters
    ----------
    measurements
        Rows of steps of one device; idle phases are left out.
    prior
        Profile of the device's datasheet: bandwidth, peak, and what the data cannot tell.
    form
        The form of the law; left out: chosen by cross-validation.
    free
        Parameters to fit, whether told or not; left out: all that the data can tell.
    with_intervals
        Compute the intervals by profile likelihood, else from the standard errors.

    Raises
    ------
    DomainError
        Where there are too few cells.

    References
    ----------
    Huber (1967) and White (1980) for the standard errors; Murphy and van der Vaart (2000) for the
    profile likelihood.
    """
    observed = observe(measurements)
    if len(observed.rows) < LEAST_CELLS:
        raise DomainError(f"{len(observed.rows)} timed cells; a fit needs at least {LEAST_CELLS}")
    law = TimeLaw(observed.rows, _without_formats(prior, observed.rows))
    if free is None:
        told, missing = _told(law, form or Form(1), structural(law, law.candidates()))
    else:
        told, missing = list(free), []
    held = {one.path: one.value for one in missing}
    choice = choose_form(law, told, held=held) if form is None else None
    chosen = form or (choice.form if choice is not None else Form(1))
    if free is None:
        told, missing = _told(law, chosen, missing)
        held = {one.path: one.value for one in missing}
    values, solved = law.fit(told, chosen, held=held)
    if free is None and "efficiency.memory" in held and (values["overhead.layer_s"] or 0.0) < 1e-9:
        # No overhead is left beside the prior's bandwidth, which was exceeded: that is the one to fit.
        told, missing = _told(law, chosen, other_way_round(law, missing))
        held = {one.path: one.value for one in missing}
        values, solved = law.fit(told, chosen, held=held)
    fitted = [one for one in told if chosen.is_smooth or one.path != "overhead.smooth_exponent"]
    inflation = inflation_of(law, solved.residuals, curve_order(law))
    intervals = _intervals(law, fitted, chosen, solved, values, inflation, held) if with_intervals else None
    figures = figures_of(fitted, solved, inflation=inflation, intervals=intervals)
    return TimeFit(
        profile=_profile(law.prior, chosen, values, figures),
        figures=figures,
        not_identified=tuple(missing),
        choice=choice,
        form=chosen,
        cells=observed.rows,
        repeat_spread=observed.repeat_spread,
        regression=solved,
        covariance=covariance_of(fitted, solved, inflation=inflation),
        rank=rank_of(solved),
        inflation=inflation,
    )


def _told(
    law: TimeLaw, form: Form, missing: Sequence[NotIdentified]
) -> tuple[list[Parameter], list[NotIdentified]]:
    """Parameters that the cells can tell, and the others: held one by one, the least told first."""
    free = [one for one in law.candidates() if form.is_smooth or one.path != "overhead.smooth_exponent"]
    missing = list(missing)
    law = thinned(law)
    while True:
        held = {one.path: one.value for one in missing}
        left = [one for one in free if one.path not in held]
        values, solved = law.fit(left, form, held=held)
        inflation = inflation_of(law, solved.residuals, curve_order(law))
        least = weak(law, left, solved, values, inflation=inflation)
        if least is None:
            return left, missing
        missing = [*missing, least]


def _intervals(
    law: TimeLaw,
    fitted: Sequence[Parameter],
    form: Form,
    solved: Regression,
    values: Mapping[str, float | None],
    inflation: float,
    held: Mapping[str, float],
) -> list[tuple[float, float]]:
    few = thinned(law)
    if len(few.cells) < len(law.cells):
        inflation *= len(few.cells) / len(law.cells)
        values, solved = few.fit(fitted, form, held=held, start=_known(values), scale=solved.scale)
    return [
        profile_interval(few, fitted, form, solved, values, one, inflation=inflation, held=held)
        for one in fitted
    ]


def _profile(
    prior: RooflineProfile, form: Form, values: Mapping[str, float | None], figures: Sequence[Figure]
) -> RooflineProfile:
    errors = {one.path: one.standard_error for one in figures if one.standard_error is not None}
    profile = with_values(prior, {one.path: one.value for one in figures}, standard_errors=errors)
    grain = {
        "tile_positions": form.tile_positions,
        "tile_fraction": form.tile_fraction,
        "smooth_exponent": values["overhead.smooth_exponent"],
    }
    return profile.model_copy(update={"overhead": Overhead(**{**dict(profile.overhead), **grain})})


def _without_formats(prior: RooflineProfile, cells: Measurements) -> RooflineProfile:
    """Return the prior without its own figures for the formats that were measured, which the fit replaces."""
    measured = set(cells.dtype.tolist())
    kept = {name: spec for name, spec in prior.weight_formats.items() if name not in measured}
    return prior.model_copy(update={"weight_formats": kept, "parallel_positions": None})


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {path: value for path, value in values.items() if value is not None}
