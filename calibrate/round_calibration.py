"""Calibration of whole rounds by target: their cost, their law under caps, and its error on rows left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrate.measurements import RoundMeasurements, Texts, is_outside
from calibrate.round_held_out import RoundErrors, axis_of, hold_out_rounds
from calibrate.round_power import PARAMETERS, RoundPowerFit, fit_round_power
from calibrate.round_told import Untold, time_spread, untold
from calibrate.rounds import RoundCost, fit_rounds
from specsim.arrays import Floats
from specsim.errors import DomainError


@dataclass(frozen=True, slots=True)
class RoundPower:
    """The law of rounds under caps, fitted to rounds of one target that hold watts."""

    fit: RoundPowerFit
    rounds: RoundMeasurements
    """The rows that it was fitted to."""
    untold: tuple[Untold, ...]
    """Figures that the rows cannot tell."""
    spread: float
    """Relative spread of measured times about the law."""
    num_degrees: float
    """Degrees of freedom of that spread."""
    held_out: tuple[RoundErrors, ...]
    """Errors on depths, and on caps, that were left out."""

    @classmethod
    def of(
        cls, fit: RoundPowerFit, rounds: RoundMeasurements, *, held_out: tuple[RoundErrors, ...] = ()
    ) -> Self:
        """Return a fitted law with what its rows tell of it."""
        spread, num_degrees = time_spread(fit, rounds)
        return cls(fit, rounds, untold(fit, rounds), spread, num_degrees, held_out)

    @property
    def watches_sm_clock(self) -> bool:
        """A row holds a clock of the arithmetic or a limit of it, so that a limit can be predicted."""
        return bool(np.isfinite([self.rounds.sm_lock_hz, self.rounds.sm_clock_hz]).any())

    @property
    def watches_memory_clock(self) -> bool:
        """A row holds a clock of the memory."""
        return bool(np.isfinite(self.rounds.memory_clock_hz).any())

    def misfit(self, cells: RoundMeasurements) -> Floats:
        """Relative spread of times of rounds about the law, [R].

        At a depth or a cap that was not measured, it is that of those that were left out: of the ones in
        between for a cell in between.
        """
        misfit = np.full(len(cells), self.spread)
        for errors in self.held_out:
            if not len(errors.values):
                continue
            measured, asked = axis_of(self.rounds, errors.axis), axis_of(cells, errors.axis)
            beyond = is_outside(asked, measured)
            inner = errors.take(~errors.is_end) if (~errors.is_end).any() else errors
            off = np.where(beyond, errors.rms("tokens_per_s"), inner.rms("tokens_per_s"))
            misfit = np.where(np.isin(asked, measured), misfit, np.maximum(misfit, off))
        return misfit


@dataclass(frozen=True, slots=True)
class RoundCalibration:
    """What the rounds of one target gave."""

    target: str
    """Name of the model; empty where the rows name none."""
    rounds: RoundMeasurements
    cost: RoundCost | str
    """Cost of a round, or why there is none."""
    held_out: tuple[RoundErrors, ...]
    """Errors of the cost on depths, between others, that were left out; none where there are none."""
    power: RoundPower | str | None
    """The law under caps, or why there is none; None where the rounds hold no watts."""

    @property
    def error(self) -> float | None:
        """Largest rms error of tokens/s on depths or caps left out, relative; None where none could be.

        Of the law under caps where there is one, else of the cost.
        """
        held_out = self.power.held_out if isinstance(self.power, RoundPower) else self.held_out
        return max((one.rms("tokens_per_s") for one in held_out if len(one.values)), default=None)

    def passes(self, threshold: float) -> bool:
        """Tell whether the error on rounds left out, where there is one, is within a threshold."""
        return self.error is None or self.error <= threshold


def calibrate_rounds(
    rounds: RoundMeasurements, *, on_fit: Callable[[int, int], None] | None = None
) -> dict[str, RoundCalibration]:
    """Fit the rounds of each target, by its name.

    Parameters
    ----------
    rounds
        Rows of one or several targets; with watts for the law under caps.
    on_fit
        Told after each fit without some rounds how many of how many are done for a target.
    """
    names = targets_of(rounds)
    return {
        str(name): _calibrated(str(name), rounds.take(names == name), on_fit) for name in np.unique(names)
    }


def targets_of(rounds: RoundMeasurements) -> Texts:
    """Return the name of each row's target, [R]; empty where a row names none."""
    return np.array([*(one.name for one in rounds.models), ""], dtype=np.str_)[rounds.model]


def _calibrated(
    target: str, rounds: RoundMeasurements, on_fit: Callable[[int, int], None] | None
) -> RoundCalibration:
    devices = np.unique(rounds.device)
    if len(devices) > 1:
        mixed = f"rows of several devices ({', '.join(devices)}); choose one with --device"
        return RoundCalibration(target, rounds, mixed, (), None)
    cost: RoundCost | str
    held_out: tuple[RoundErrors, ...] = ()
    try:
        cost = fit_rounds(rounds)
        # Without a depth the baseline must not step in as another one: it is no round.
        used = rounds if cost.has_baseline else rounds.take(rounds.num_speculative_tokens > 0)
        held_out = hold_out_rounds(used, fit_rounds, axes=("k",))
    except DomainError as error:
        cost = str(error)
    metered = rounds.take(np.isfinite(rounds.power_w))
    power = _powered(metered, on_fit) if len(metered) else None
    return RoundCalibration(target, rounds, cost, held_out, power)


def _powered(rounds: RoundMeasurements, on_fit: Callable[[int, int], None] | None) -> RoundPower | str:
    try:
        fit = _fit(rounds)
    except DomainError as error:
        return str(error)
    nominal_hz = (fit.nominal_sm_hz, fit.nominal_memory_hz)
    held_out = hold_out_rounds(rounds, lambda rows: _fit(rows, *nominal_hz), on_fit=on_fit)
    return RoundPower.of(fit, rounds, held_out=held_out)


def _fit(
    rounds: RoundMeasurements, nominal_sm_hz: float | None = None, nominal_memory_hz: float | None = None
) -> RoundPowerFit:
    """Fit the law under caps; DomainError where the rows cannot tell even its outline."""
    batches = np.unique(rounds.num_sequences)
    if len(batches) > 1:
        held = ", ".join(str(one) for one in batches)
        raise DomainError(f"no law of rounds under caps: it is of one batch; the rounds hold {held}")
    needed = [
        (len(np.unique(rounds.num_speculative_tokens)), 2, "depths"),
        (num_settings(rounds), 2, "caps or locked clocks"),
        (_num_measured(rounds), len(PARAMETERS) + 1, "measured times, watts and clocks"),
    ]
    missing = [f"{least} {what} (there are {count})" for count, least, what in needed if count < least]
    if missing:
        raise DomainError(f"no law of rounds under caps: it needs {', and '.join(missing)}")
    return fit_round_power(rounds, nominal_sm_hz=nominal_sm_hz, nominal_memory_hz=nominal_memory_hz)


def num_settings(rounds: RoundMeasurements) -> int:
    """Return how many pairs of a cap and a locked clock rounds ran under; one may be free."""
    pairs = np.column_stack([rounds.power_cap_w, rounds.sm_lock_hz])
    return len(np.unique(np.nan_to_num(pairs, nan=np.inf), axis=0))


def _num_measured(rounds: RoundMeasurements) -> int:
    return 2 * len(rounds) + int(np.isfinite(rounds.sm_clock_hz).sum())
