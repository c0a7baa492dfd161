"""What the data can tell: structure of the cells, rank and condition of the Jacobian, profile likelihood.

A bandwidth and an overhead of each layer are told apart only by models whose weights a layer differ: at
few positions both add a constant to the time of a layer. One curve seems to separate them by the shape of
its corner, and then gives 2–7 times the datasheet's bandwidth; what is not told is therefore decided by
the cells, not by the size of a standard error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.law import Form, TimeLaw
from calibrate.parameters import PARAMETERS, Parameter, value_of
from calibrate.regression import Regression
from specsim.arrays import Floats, Ints

_LEAST_RATIO = 1.5
"""Weights a layer, or numbers of layers, must differ this much to be told apart."""
_WEAK = 0.35
"""A relative standard error above this leaves an efficiency or an exponent to the prior."""
_WEAK_OVERHEAD = 0.8
"""The same of a figure that may be nothing: it then says little more than that."""
_CHI_SQUARED_95 = 3.841
_LEAST_CORNER_CELLS = 8
"""Fewer cells around the corner cannot say that it is sharp: a kernel's step looks the same."""
_MOST_CONDITION = 1e5
"""Beyond it the Jacobian's smallest direction is noise."""
_HAIR_S = 1e-9
_LEAST_STEP = 0.01
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class NotIdentified:
    """A figure that the data cannot tell."""

    path: str
    value: float
    """What it is held at, the prior's figure."""
    reason: str
    cells: str
    """What to measure."""

    def __str__(self) -> str:
        """Return the message."""
        held = f"held at the prior's {self.value:.4g}"
        return f"{self.path}: not identifiable: {self.reason}; {held}; to identify it measure {self.cells}"


@dataclass(frozen=True, slots=True)
class Rank:
    """Singular values of the Jacobian, its columns scaled to length one."""

    num_parameters: int
    rank: int
    condition: float
    """Largest over smallest singular value."""


def structural(law: TimeLaw, free: Sequence[Parameter]) -> list[NotIdentified]:
    """Return what the cells cannot tell by their structure, whatever their times."""
    parts = law.parts(1)
    linear = parts.has_linear
    paths = {one.path for one in free}
    found: list[NotIdentified] = []
    if not linear.any():
        return found
    layers = parts.num_layers[linear]
    if "overhead.step_s" in paths and layers.max() < _LEAST_RATIO * layers.min():
        count = (
            f"{layers.min():.0f} layers"
            if layers.min() == layers.max()
            else f"{layers.min():.0f}–{layers.max():.0f} layers"
        )
        reason = f"every model has {count}, so that a time a step and a time a layer look alike"
        found.append(_held(law, "overhead.step_s", reason))
    each = parts.memory_s[linear] / layers * law.prior.memory.bandwidth_bytes_per_s
    if {"efficiency.memory", "overhead.layer_s"} <= paths and each.max() < _LEAST_RATIO * each.min():
        what = "one model" if len(np.unique(law.cells.model[linear])) == 1 else "models of one size"
        size = f"{each.mean() / 1e6:.0f} MB a layer and device"
        reason = f"{what} ({size}): the time of the weights and that of the launches look alike"
        path = "efficiency.memory"
        trial = [one for one in free if one.path not in (path, *(held.path for held in found))]
        values, _ = law.fit(trial, Form(1), scale=0.05)
        layer_s = values["overhead.layer_s"]
        if layer_s is not None and layer_s < _HAIR_S:
            # The prior's bandwidth is less than was achieved, so that it is the one to be fitted.
            path = "overhead.layer_s"
        found.append(_held(law, path, reason))
    return found


def other_way_round(law: TimeLaw, missing: Sequence[NotIdentified]) -> list[NotIdentified]:
    """Return what is not identified with the time of a layer held in place of the bandwidth."""
    swapped = []
    for one in missing:
        is_swapped = one.path == "efficiency.memory"
        swapped.append(_held(law, "overhead.layer_s", one.reason) if is_swapped else one)
    return swapped


def weak(
    law: TimeLaw,
    free: Sequence[Parameter],
    solved: Regression,
    values: Mapping[str, float | None],
    *,
    inflation: float,
) -> NotIdentified | None:
    """Return the figure that a fit tells least, if it is less than it takes; None where all are told.

    Efficiencies at the datasheet are told: a bound of physics holds them.
    """
    worst = _degenerate(law, free, solved)
    errors = solved.standard_errors * np.sqrt(inflation)
    for index, one in enumerate(free):
        internal = float(solved.values[index])
        value, error = one.to_value(internal), float(errors[index])
        is_sharp = one.path == "overhead.smooth_exponent" and value > one.typical
        if is_sharp and num_corner_cells(law, values) >= _LEAST_CORNER_CELLS:
            # How sharp a sharp corner is means nothing, but that it is not the prior's does.
            prior = value_of(law.prior, one.path) or one.typical
            if internal - one.to_internal(prior) > 2.0 * error:
                continue
        if solved.is_at_bound[index]:
            if not is_sharp:
                continue
            relative, reason = np.inf, "the corner between memory and compute is not resolved"
        else:
            relative, reason = weakness(one, internal, error, solved.jacobian[:, index])
        if relative > 1.0 and (worst is None or relative > worst[0]):
            worst = (float(relative), _held(law, one.path, reason))
    return None if worst is None else worst[1]


def weakness(parameter: Parameter, internal: float, error: float, slope: Floats) -> tuple[float, str]:
    """Return how little is known of a figure, above 1 where that is too little, and why, in words.

    Parameters
    ----------
    parameter
        The figure.
    internal, error
        Its value and standard error on the fit's own scale.
    slope
        Derivative of the logarithm of each measured quantity by it, [R].
    """
    if parameter.transform == "log":
        return error / _WEAK, f"its standard error is {error:.0%}"
    # A figure that may be nothing is told when it is small against what it adds to.
    size = float(np.sqrt(np.mean(np.square(slope)))) * error
    share = error / max(abs(internal), 1e-12) if size > 0.02 else 0.0
    return share / _WEAK_OVERHEAD, f"its standard error is {share:.0%} of it"


def num_corner_cells(law: TimeLaw, values: Mapping[str, float | None]) -> int:
    """Return how many cells have memory and compute time within a factor of two of each other."""
    step = law.parts(1).step_time(values)
    ratio = step.compute_s / step.memory_s
    return int(np.sum((ratio > 0.5) & (ratio < 2.0)))


def _degenerate(
    law: TimeLaw, free: Sequence[Parameter], solved: Regression
) -> tuple[float, NotIdentified] | None:
    """Return the figure that lies most in a direction which no residual sees; None where there is none."""
    inside = np.flatnonzero(~solved.is_at_bound)
    columns = solved.jacobian[:, inside]
    lengths = np.linalg.norm(columns, axis=0) if inside.size else np.zeros(0)
    if not inside.size or rank_of(solved).condition <= _MOST_CONDITION:
        return None
    _, _, directions = np.linalg.svd(columns / np.where(lengths > 0.0, lengths, 1.0))
    path = free[int(inside[np.argmax(np.abs(directions[-1]))])].path
    return float("inf"), _held(law, path, "no cell tells it from the others")


def rank_of(solved: Regression) -> Rank:
    """Rank and condition of the Jacobian of the parameters that no bound holds."""
    columns = solved.jacobian[:, ~solved.is_at_bound]
    if not columns.size:
        return Rank(0, 0, 1.0)
    lengths = np.linalg.norm(columns, axis=0)
    singular = np.linalg.svd(columns / np.where(lengths > 0.0, lengths, 1.0), compute_uv=False)
    rank = int(np.sum(singular > singular[0] / _MOST_CONDITION))
    condition = float(singular[0] / singular[-1]) if singular[-1] > 0.0 else float("inf")
    return Rank(len(lengths), rank, condition)


def inflation_of(law: TimeLaw, residuals: Floats, order: Ints) -> float:
    """Factor by which common misfit of neighbouring cells widens variances: (1+ρ)/(1−ρ).

    ρ is the correlation of residuals next to each other along a curve; 1 where it is within chance.
    """
    ordered = residuals[np.argsort(order, kind="stable")]
    centred = ordered - ordered.mean()
    total = float(centred @ centred)
    if len(ordered) < 8 or total == 0.0:
        return 1.0
    correlation = float(centred[1:] @ centred[:-1]) / total
    if correlation < 2.0 / np.sqrt(len(ordered)):
        return 1.0
    return float((1.0 + correlation) / (1.0 - min(correlation, 0.95)))


def profile_interval(
    law: TimeLaw,
    free: Sequence[Parameter],
    form: Form,
    solved: Regression,
    values: Mapping[str, float | None],
    parameter: Parameter,
    *,
    inflation: float,
    held: Mapping[str, float],
) -> tuple[float, float]:
    """Return the 95 % interval of one figure by profile likelihood: all others are fitted anew at each value.

    A limit that no value reaches is the bound of physics itself.
    """
    index = [one.path for one in free].index(parameter.path)
    best = float(solved.values[index])
    lower, upper = parameter.internal_bounds
    allowed = solved.cost + _CHI_SQUARED_95 * inflation * solved.deviance_unit
    others = [one for one in free if one.path != parameter.path]
    start = {path: value for path, value in values.items() if value is not None}
    step = max(float(solved.standard_errors[index]) * math.sqrt(inflation), _LEAST_STEP)

    def cost(internal: float) -> float:
        fixed = {**held, parameter.path: parameter.to_value(internal)}
        _, refit = law.fit(others, form, start=start, held=fixed, scale=solved.scale, max_evaluations=12)
        return refit.cost

    def limit(side: int) -> float:
        bound = upper if side > 0 else lower
        inside, reach = best, step
        for _ in range(_MOST_DOUBLINGS):
            outside = float(min(max(best + side * reach, lower), upper))
            if cost(outside) > allowed:
                break
            inside = outside
            if outside == bound:
                return bound
            reach *= 2.0
        else:
            return bound
        for _ in range(5):
            middle = 0.5 * (inside + outside)
            inside, outside = (inside, middle) if cost(middle) > allowed else (middle, outside)
        return 0.5 * (inside + outside)

    return parameter.to_value(limit(-1)), parameter.to_value(limit(+1))


def _held(law: TimeLaw, path: str, reason: str) -> NotIdentified:
    parameter = PARAMETERS[path]
    given = value_of(law.prior, path)
    value = given if given is not None else parameter.typical
    return NotIdentified(path, value, reason, parameter.identifying_cells)
