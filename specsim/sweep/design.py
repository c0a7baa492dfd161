"""Designs: which points of the space that the axes span are simulated."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats
from specsim.errors import ConfigError
from specsim.streams import Purpose, RandomStreams
from specsim.sweep.axes import Axis, Label, Value

MAX_POINTS = 1_000_000
"""Most points of a design."""


@dataclass(frozen=True, slots=True)
class Point:
    """One value of every axis, in the order of the axes."""

    number: int
    values: tuple[Value, ...]

    @property
    def labels(self) -> tuple[Label, ...]:
        """What the values are called."""
        return tuple(value.label for value in self.values)


def grid(axes: Sequence[Axis]) -> list[Point]:
    """Every combination of the listed values; the last axis runs fastest."""
    listed = [axis.listed() for axis in axes]
    _check_number(int(np.prod([float(len(values)) for values in listed])))
    return [Point(number, values) for number, values in enumerate(itertools.product(*listed))]


def zipped(axes: Sequence[Axis]) -> list[Point]:
    """Take the first values of all axes together, then the second ones, and so on.

    Raises
    ------
    ConfigError
        If the axes have unequal numbers of values.
    """
    listed = [axis.listed() for axis in axes]
    if len({len(values) for values in listed}) > 1:
        numbers = ", ".join(
            f"{axis.key} has {len(values)}" for axis, values in zip(axes, listed, strict=True)
        )
        raise ConfigError(f"zip needs as many values on every axis: {numbers}")
    return [Point(number, values) for number, values in enumerate(zip(*listed, strict=True))]


def sampled(axes: Sequence[Axis], fractions: Floats) -> list[Point]:
    """Points at given fractions of every axis.

    Parameters
    ----------
    axes
        The axes.
    fractions
        In [0, 1], [points, axes].
    """
    _check_number(len(fractions))
    return [
        Point(number, tuple(axis.at(fraction) for axis, fraction in zip(axes, row, strict=True)))
        for number, row in enumerate(fractions.tolist())
    ]


def uniform_fractions(num_points: int, num_axes: int, streams: RandomStreams) -> Floats:
    """Independent uniform fractions, [points, axes]; the first of many are those of few."""
    return streams.generator(Purpose.SWEEP_DESIGN).random((num_points, num_axes))


def latin_hypercube_fractions(num_points: int, num_axes: int, streams: RandomStreams) -> Floats:
    """Return a Latin hypercube, [points, axes]: one point in each of ``num_points`` slices of every axis.

    McKay, Beckman and Conover 1979, "A Comparison of Three Methods for Selecting Values of Input
    Variables in the Analysis of Output from a Computer Code".
    """
    from scipy.stats import qmc

    generator = streams.generator(Purpose.SWEEP_DESIGN)
    return np.asarray(qmc.LatinHypercube(num_axes, rng=generator).random(num_points))


def _check_number(num_points: int) -> None:
    if num_points > MAX_POINTS:
        raise ConfigError(f"the design has {num_points} points; at most {MAX_POINTS} are simulated")
