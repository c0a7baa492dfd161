"""Error of a law of rounds on rounds that a fit has not seen: one depth or one cap at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from calibrate.measurements import RoundMeasurements
from calibrate.rounds import RoundPrediction
from specsim.arrays import Bools, Floats
from specsim.errors import DomainError

Axis: TypeAlias = Literal["k", "power_cap_w"]
"""Column of which one value is left out at a time."""

Quantity: TypeAlias = Literal["tokens_per_s", "power_w", "energy_j"]
"""What is predicted: output of all sequences, power, and the energy of an output token."""

QUANTITIES: tuple[Quantity, ...] = ("tokens_per_s", "power_w", "energy_j")


class RoundLaw(Protocol):
    """What can be fitted to rounds."""

    def predict(self, rounds: RoundMeasurements) -> RoundPrediction:
        """Return time, power and clock of rounds; DomainError where the law does not reach them."""
        ...


@dataclass(frozen=True, slots=True)
class RoundErrors:
    """Errors of R rounds that were left out along one axis."""

    axis: Axis
    values: Floats
    """Value of the axis that each round had, [R]; infinite where there was no cap."""
    relative: Mapping[Quantity, Floats]
    """Predicted over measured, less one, [R] each; what the law does not tell is left out."""
    kept: tuple[float, ...]
    """Values that no fit could do without, or that a fit without them does not reach."""

    def rms(self, quantity: Quantity) -> float:
        """Root of the mean square of the relative errors."""
        return float(np.sqrt(np.mean(np.square(self.relative[quantity]))))

    def mean(self, quantity: Quantity) -> float:
        """Mean relative error; positive: more predicted than measured."""
        return float(np.mean(self.relative[quantity]))

    def take(self, rows: Bools) -> RoundErrors:
        """Return the errors of some rounds, by mask."""
        relative = {name: one[rows] for name, one in self.relative.items()}
        return replace(self, values=self.values[rows], relative=relative)

    @property
    def is_end(self) -> Bools:
        """Rounds at the least or the most of the axis, for which a fit had to reach beyond its rows, [R]."""
        every = np.append(self.values, self.kept)
        is_end: Bools = (self.values == every.min()) | (self.values == every.max())
        return is_end


def hold_out_rounds(
    rounds: RoundMeasurements,
    fit: Callable[[RoundMeasurements], RoundLaw],
    *,
    axes: Sequence[Axis] = ("k", "power_cap_w"),
    on_fit: Callable[[int, int], None] | None = None,
) -> tuple[RoundErrors, ...]:
    """Predict rounds by fits of the others, along each axis of which there are several values.

    Parameters
    ----------
    rounds
        The rows.
    fit
        From rows to a law; it raises DomainError where they are too few.
    axes
        What to leave out by.
    on_fit
        Told after each fit how many of how many are done.
    """
    folds = [(axis, float(value)) for axis in axes for value in _several(np.unique(axis_of(rounds, axis)))]
    said: dict[Axis, dict[float, RoundErrors | None]] = {}
    for done, (axis, value) in enumerate(folds, start=1):
        said.setdefault(axis, {})[value] = _errors(rounds, axis, value, fit)
        if on_fit is not None:
            on_fit(done, len(folds))
    return tuple(_joined(axis, parts) for axis, parts in said.items())


def axis_of(rounds: RoundMeasurements, axis: Axis) -> Floats:
    """Return the column of an axis, [R]; no cap is infinite."""
    if axis == "k":
        return rounds.num_speculative_tokens
    return np.nan_to_num(rounds.power_cap_w, nan=np.inf)


def _several(values: Floats) -> Floats:
    return values if len(values) > 1 else values[:0]


def _errors(
    rounds: RoundMeasurements, axis: Axis, value: float, fit: Callable[[RoundMeasurements], RoundLaw]
) -> RoundErrors | None:
    """Errors of the rounds at one value by a fit of the others; None where those are too few."""
    left_out = axis_of(rounds, axis) == value
    test = rounds.take(left_out)
    try:
        said = fit(rounds.take(~left_out)).predict(test)
    except DomainError:
        return None
    relative: dict[Quantity, Floats] = {
        "tokens_per_s": said.tokens_per_s(test) / test.tokens_per_s - 1.0,
        "power_w": said.power_w / test.power_w - 1.0,
        "energy_j": said.energy_per_token_j(test) * test.tokens_per_s / test.power_w - 1.0,
    }
    return RoundErrors(axis, np.full(len(test), value), relative, ())


def _joined(axis: Axis, parts: Mapping[float, RoundErrors | None]) -> RoundErrors:
    found = [one for one in parts.values() if one is not None]
    relative: dict[Quantity, Floats] = {
        name: np.concatenate([np.zeros(0), *(one.relative[name] for one in found)]) for name in QUANTITIES
    }
    values = np.concatenate([np.zeros(0), *(one.values for one in found)])
    told = {name: one for name, one in relative.items() if np.isfinite(one).all()}
    return RoundErrors(axis, values, told, tuple(value for value, one in parts.items() if one is None))
