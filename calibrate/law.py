"""The law of step times as a regression: measured cells, one form of the law, and the figures left free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibrate.components import Components, components_of
from calibrate.measurements import Measurements
from calibrate.parameters import PARAMETERS, TIME_PARAMETERS, Parameter, bounds_of, value_of
from calibrate.regression import Regression, solve
from specsim.arrays import Bools, Floats
from specsim.hardware import RooflineProfile


@dataclass(frozen=True, slots=True, order=True)
class Form:
    """One form of the law: the grain of the kernels and the sharpness of the corner."""

    tile_positions: int
    """Positions of a whole tile."""
    tile_fraction: float = 1.0
    """Share of the arithmetic in whole tiles."""
    is_smooth: bool = True
    """Smooth maximum; else the larger of memory and compute time."""

    def __str__(self) -> str:
        """Return the form in words."""
        corner = "smooth max" if self.is_smooth else "hard max"
        if self.tile_positions == 1:
            return f"{corner}, no tile"
        share = "" if self.tile_fraction == 1.0 else f", {self.tile_fraction:.0%} of the arithmetic"
        return f"{corner}, tile {self.tile_positions}{share}"


FORMS: tuple[Form, ...] = (
    Form(1),
    *(Form(tile, share) for tile in (16, 32, 64, 128) for share in (1.0, 0.75, 0.5)),
)
"""Smooth forms that are compared; the hard maximum is tried with the tile that wins."""


@dataclass(slots=True)
class TimeLaw:
    """Times of measured cells as a function of a profile's figures.

    Parameters
    ----------
    cells
        Steps with their time in ``gpu_s``.
    prior
        The profile that the fit starts from; figures that are not free keep its values.
    """

    cells: Measurements
    prior: RooflineProfile
    _parts: dict[int, Components] = field(default_factory=dict)

    @property
    def log_times(self) -> Floats:
        """Logarithm of the measured times, [R]."""
        return np.log(self.cells.gpu_s)

    def parts(self, tile_positions: int) -> Components:
        """Return the cells taken apart at one tile."""
        if tile_positions not in self._parts:
            self._parts[tile_positions] = components_of(self.cells, self.prior, tile_positions=tile_positions)
        return self._parts[tile_positions]

    def candidates(self) -> list[Parameter]:
        """Return the parameters that the cells could say anything about."""
        parts, cells = self.parts(1), self.cells
        is_long = parts.has_attention & (cells.context_tokens > 0)
        present = {
            "efficiency.memory": parts.has_linear.any(),
            "efficiency.compute": parts.has_linear.any(),
            "overhead.step_s": parts.has_launch.any(),
            "overhead.layer_s": parts.has_linear.any(),
            "overhead.sequence_s": parts.has_launch.any() and len(set(cells.num_sequences.tolist())) > 1,
            "overhead.smooth_exponent": parts.has_linear.any(),
            "overhead.activation_passes": parts.has_linear.any()
            and len(set(cells.num_positions.tolist())) > 1,
            "overhead.unpack_s": parts.is_unpacked.any(),
            "attention.floor_s": parts.has_attention.any(),
            "attention.bandwidth_efficiency": is_long.any(),
        }
        return [one for one in TIME_PARAMETERS if present[one.path]]

    def fixed(self, free: Sequence[Parameter], form: Form) -> dict[str, float | None]:
        """Figures that a fit of some parameters leaves alone."""
        values: dict[str, float | None] = {
            one.path: value_of(self.prior, one.path) for one in TIME_PARAMETERS
        }
        values["overhead.tile_fraction"] = form.tile_fraction
        if not form.is_smooth:
            values["overhead.smooth_exponent"] = None
        elif values["overhead.smooth_exponent"] is None:
            values["overhead.smooth_exponent"] = PARAMETERS["overhead.smooth_exponent"].typical
        for one in free:
            values.pop(one.path, None)
        return values

    def predict(self, values: Mapping[str, float | None], form: Form, rows: Bools | None = None) -> Floats:
        """Return the times of the cells, s, at some figures."""
        parts = self.parts(form.tile_positions)
        return (parts if rows is None else parts.take(rows)).time(values)

    def fit(
        self,
        free: Sequence[Parameter],
        form: Form,
        *,
        rows: Bools | None = None,
        start: Mapping[str, float] | None = None,
        held: Mapping[str, float] | None = None,
        scale: float | None = None,
        max_evaluations: int = 60,
    ) -> tuple[dict[str, float | None], Regression]:
        """Fit some parameters to the logarithms of the times.

        Parameters
        ----------
        free
            The parameters.
        form
            The form of the law.
        rows
            Cells to use; left out: all.
        start
            Figures to start from, where they differ from the prior's.
        held
            Figures to hold at other values than the prior's.
        scale
            s of the loss; left out: by the residuals' spread.
        max_evaluations
            Bound on the solver's iterations.

        Returns
        -------
        tuple
            All figures by path, and the solved problem.
        """
        free = [one for one in free if form.is_smooth or one.path != "overhead.smooth_exponent"]
        parts = self.parts(form.tile_positions)
        logs = self.log_times
        if rows is not None:
            parts, logs = parts.take(rows), logs[rows]
        fixed = {**self.fixed(free, form), **(held or {})}

        def figures(internal: Floats) -> dict[str, float | None]:
            pairs = zip(free, internal, strict=True)
            return {**fixed, **{one.path: one.to_value(float(at)) for one, at in pairs}}

        def residuals(internal: Floats) -> Floats:
            return np.log(parts.time(figures(internal))) - logs

        first = np.array([one.to_internal(self._start(one, start)) for one in free])
        solved = solve(residuals, first, *bounds_of(free), scale=scale, max_evaluations=max_evaluations)
        return figures(solved.values), solved

    def _start(self, parameter: Parameter, start: Mapping[str, float] | None) -> float:
        if start is not None and start.get(parameter.path) is not None:
            return start[parameter.path]
        # A prior of exactly nothing is a poor place to start from: the slope of a bound.
        return value_of(self.prior, parameter.path) or parameter.typical
