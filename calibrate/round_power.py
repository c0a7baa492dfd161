"""Time and power of whole rounds under caps and clocks, by the clock law of the cost code.

A round of K drafts takes T = h0 + h1·K + [((a0 + a1·K)/f)^p + ((b0 + b1·K)/m)^p]^(1/p), with f the clock
and m the memory clock as fractions of nominal, and draws P = P0 + V²(f)·(c·f + w·(1+K)/T) + e/T, f the
largest clock that the cap allows (`specsim.hardware.clock.run_under_cap`). a0 is clock-bound work that does
not grow with positions, such as unpacking low-bit weights; h0 and h1 are the host's, which no clock of the
device changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.figures import Figure, figures_of
from calibrate.measurements import RoundMeasurements
from calibrate.parameters import Parameter, bounds_of, values_of
from calibrate.regression import Regression, solve
from calibrate.rounds import RoundPrediction
from specsim.arrays import Bools, Floats
from specsim.errors import DomainError
from specsim.hardware.clock import PowerCurve, StepTime, run_under_cap

_CELLS = "rounds at two or more depths, caps and locked clocks"
_LOCKS = "rounds at two or more depths and locked clocks"


def _parameter(path: str, meaning: str, upper: float, typical: float) -> Parameter:
    return Parameter(path, meaning, 0.0, upper, typical, "linear", _CELLS)


PARAMETERS: tuple[Parameter, ...] = (
    _parameter("clock_s", "clock-bound time of a round whatever its depth, a0, s", 10.0, 1e-2),
    _parameter("clock_s_per_draft", "clock-bound time of one more draft token, a1, s", 10.0, 5e-3),
    _parameter("memory_s", "memory-bound time of a round whatever its depth, b0, s", 10.0, 2e-2),
    _parameter("memory_s_per_draft", "memory-bound time of one more draft token, b1, s", 10.0, 2e-3),
    Parameter(
        "host_s", "host's time of a round whatever its depth, h0, s", 0.0, 10.0, 1e-3, "linear", _LOCKS
    ),
    Parameter(
        "host_s_per_draft", "host's time of one more draft token, h1, s", 0.0, 10.0, 1e-3, "linear", _LOCKS
    ),
    Parameter("exponent", "sharpness of the corner, p", 1.0, 100.0, 4.0, "log", _CELLS),
    _parameter("active_w", "drawn while a round runs, P0, W", 2000.0, 100.0),
    _parameter("clock_w", "drawn by the clock, c, W", 2000.0, 70.0),
    _parameter("position_j", "energy of the arithmetic of one position, w, J", 1000.0, 0.5),
    _parameter("round_j", "energy of the bytes of one round, e, J", 1000.0, 2.0),
    Parameter("meter_fraction", "what the meter shows of what the board draws", 0.9, 1.1, 1.0, "log", _CELLS),
    Parameter("knee_fraction", "clock above which the voltage rises", 0.5, 1.2, 0.8, "log", _CELLS),
    _parameter("slope", "rise of the voltage above the knee", 6.0, 1.5),
)
"""Figures of the law."""

_KNEES = (0.82, 0.6)
"""Starts for the knee of the voltage: an RTX 3090's (fit of thc1006's rows, CC0 1.0, 2025), and one below the
clocks that a board under a cap keeps. The better fit counts."""

_HOST = ("host_s", "host_s_per_draft")
"""Told by locked clocks alone: what is left as the clock rises. Else 0, and within the other times."""

_NO_HOST = dict.fromkeys(_HOST, 0.0)

_LEANING = {"active_w": 1.0, "clock_w": 1.0, "position_j": 1.0, "round_j": 1.0}
"""Few rows tell how power splits: it leans towards an RTX 3090's, by relative distance in these units."""
_LEANING_UNLOCKED = {**_LEANING, "knee_fraction": 0.25}
"""Without locked clocks so does the clock above which the voltage rises, towards the lower of `_KNEES`."""
_PULL, _PULL_UNLOCKED = 0.02, 0.06
"""Weight of one unit, as the relative error of one cell; caps alone tell less."""
_MIN_FRACTION = 0.2
"""Lowest clock under a cap: 387 of 1,700 MHz on an RTX 3090 at 175 W (thc1006, CC0 1.0, 2025)."""
_MOST_ACTIVE_SHARE = 0.9
"""Most of a cap that active power takes while a fit looks for it."""


@dataclass(frozen=True, slots=True)
class RoundPowerFit:
    """A fitted law of rounds under caps."""

    figures: tuple[Figure, ...]
    nominal_sm_hz: float
    nominal_memory_hz: float
    highest_fraction: float
    """Clock that a board runs at where nothing holds it down, as a fraction of nominal."""
    regression: Regression

    @property
    def values(self) -> dict[str, float]:
        """Figures by name; the host's are 0 where the rows could not tell them."""
        return {**_NO_HOST, **{one.path: one.value for one in self.figures}}

    @property
    def least_cap_w(self) -> float:
        """Cap that active power nearly fills, W: below it the law is not that of the figures."""
        return self.values["active_w"] / _MOST_ACTIVE_SHARE

    def predict(self, rounds: RoundMeasurements) -> RoundPrediction:
        """Return time, power and clock of rounds; a row without a cap is not capped."""
        return predict_rounds(
            self.values,
            rounds,
            nominal_sm_hz=self.nominal_sm_hz,
            nominal_memory_hz=self.nominal_memory_hz,
            highest_fraction=self.highest_fraction,
        )


def fit_round_power(
    rounds: RoundMeasurements, *, nominal_sm_hz: float | None = None, nominal_memory_hz: float | None = None
) -> RoundPowerFit:
    """Fit time and power of rounds together.

    Parameters
    ----------
    rounds
        Rows with power; the cap, the clocks and the clock limit where they were set.
    nominal_sm_hz, nominal_memory_hz
        What f and m are fractions of; left out: the highest clocks in the rows.

    Raises
    ------
    DomainError
        Where fewer figures were measured than the law has.
    """
    if np.isnan(rounds.power_w).any():
        raise DomainError("rounds without power cannot tell a power law")
    sm_hz = nominal_sm_hz or _highest(rounds.sm_lock_hz, rounds.sm_clock_hz)
    memory_hz = nominal_memory_hz or _highest(rounds.memory_clock_hz)
    highest = max(1.0, _highest(rounds.sm_clock_hz, fallback=sm_hz) / sm_hz)
    locks = np.unique(rounds.sm_lock_hz[np.isfinite(rounds.sm_lock_hz)])
    tells_clocks = len(locks) > 1
    free = [one for one in PARAMETERS if tells_clocks or one.path not in _HOST]
    measured_s, measured_w = np.log(rounds.round_s), np.log(rounds.power_w)
    knows_clock = np.isfinite(rounds.sm_clock_hz)
    starts = [_start(rounds, free, knee_fraction=knee) for knee in _KNEES]
    leaning = _leaning(free, starts[-1], tells_clocks=tells_clocks)

    def residuals(internal: Floats) -> Floats:
        said = predict_rounds(
            {**_NO_HOST, **values_of(free, internal)},
            rounds,
            nominal_sm_hz=sm_hz,
            nominal_memory_hz=memory_hz,
            highest_fraction=highest,
        )
        clock = np.log(said.clock_fraction * sm_hz)[knows_clock] - np.log(rounds.sm_clock_hz[knows_clock])
        leant = (leaning * (internal - starts[-1]))[leaning > 0.0]
        return np.concatenate(
            [np.log(said.round_s) - measured_s, np.log(said.power_w) - measured_w, clock, leant]
        )

    lower, upper = bounds_of(free)
    runs = [
        solve(residuals, at, lower, upper, scale=0.03, max_evaluations=100, tolerance=1e-6) for at in starts
    ]
    solved = min(runs, key=lambda run: run.cost)
    return RoundPowerFit(figures_of(free, solved), sm_hz, memory_hz, highest, solved)


def predict_rounds(
    values: Mapping[str, float],
    rounds: RoundMeasurements,
    *,
    nominal_sm_hz: float,
    nominal_memory_hz: float,
    highest_fraction: float = 1.0,
) -> RoundPrediction:
    """Return time, power and clock of rounds by the law.

    Parameters
    ----------
    values
        Figures of `PARAMETERS` by name.
    rounds
        Depths, batches, caps, clock limits and memory clocks; what was measured is not looked at.
    nominal_sm_hz, nominal_memory_hz
        What f and m are fractions of.
    highest_fraction
        Clock that a board runs at where nothing holds it down.
    """
    drafts = rounds.num_speculative_tokens.astype(np.float64)
    memory = np.where(np.isnan(rounds.memory_clock_hz), 1.0, rounds.memory_clock_hz / nominal_memory_hz)
    nothing = np.zeros(len(rounds))
    step = StepTime(
        fixed_s=values["host_s"] + values["host_s_per_draft"] * drafts,
        memory_s=(values["memory_s"] + values["memory_s_per_draft"] * drafts) / memory + 1e-12,
        compute_s=values["clock_s"] + values["clock_s_per_draft"] * drafts + 1e-12,
        attention_memory_s=nothing,
        attention_compute_s=nothing,
        smooth_exponent=values["exponent"],
    )
    compute_j = values["position_j"] * (1.0 + drafts) * rounds.num_sequences
    memory_j = np.full(len(rounds), values["round_j"])
    time_s, power_w, clock = nothing.copy(), nothing.copy(), nothing.copy()
    for rows, cap_w, highest in _settings(rounds, nominal_sm_hz, highest_fraction):
        curve = PowerCurve(
            active_w=min(values["active_w"], _MOST_ACTIVE_SHARE * cap_w),
            clock_w=values["clock_w"],
            cap_w=cap_w,
            knee_fraction=values["knee_fraction"],
            slope=values["slope"],
            min_fraction=min(_MIN_FRACTION, highest),
            max_fraction=highest,
        )
        found = run_under_cap(
            step.take(np.flatnonzero(rows)), curve, compute_j=compute_j[rows], memory_j=memory_j[rows]
        )
        time_s[rows], clock[rows] = found.time_s, found.clock_fraction
        power_w[rows] = values["meter_fraction"] * found.energy_j / found.time_s
    return RoundPrediction(time_s, power_w, clock)


def _settings(rounds: RoundMeasurements, sm_hz: float, highest: float) -> list[tuple[Bools, float, float]]:
    """Rows under one cap and one highest clock."""
    cap = np.where(np.isnan(rounds.power_cap_w), np.inf, rounds.power_cap_w)
    lock = np.where(np.isnan(rounds.sm_lock_hz), highest, rounds.sm_lock_hz / sm_hz)
    keys = list(zip(cap.tolist(), lock.tolist(), strict=True))
    return [(np.array([one == key for one in keys]), *key) for key in dict.fromkeys(keys)]


def _start(rounds: RoundMeasurements, free: Sequence[Parameter], *, knee_fraction: float) -> Floats:
    """Rough values: most of the shortest round bound by either side, and power split as on an RTX 3090.

    The split is that of a fit of thc1006's rows (CC0 1.0, 2025): active power and clock take 28 % each of the
    watts of a baseline step, one position 4 %, the bytes 19 %.
    """
    shortest_s, power_w = float(rounds.round_s.min()), float(np.median(rounds.power_w))
    start = {
        "clock_s": 0.6 * shortest_s,
        "clock_s_per_draft": 0.2 * shortest_s,
        "memory_s": 0.9 * shortest_s,
        "memory_s_per_draft": 0.1 * shortest_s,
        "knee_fraction": knee_fraction,
        "active_w": 0.28 * power_w,
        "clock_w": 0.28 * power_w,
        "position_j": 0.04 * power_w * shortest_s,
        "round_j": 0.19 * power_w * shortest_s,
    }
    return np.array([one.to_internal(start.get(one.path, one.typical)) for one in free])


def _leaning(free: Sequence[Parameter], towards: Floats, *, tells_clocks: bool) -> Floats:
    """Weight of each figure's distance from where it leans, on the fit's own scale, [K]; 0 does not lean."""
    units, pull = (_LEANING, _PULL) if tells_clocks else (_LEANING_UNLOCKED, _PULL_UNLOCKED)
    sizes = [
        units.get(one.path, np.inf) * (1.0 if one.transform == "log" else at)
        for one, at in zip(free, towards, strict=True)
    ]
    return pull / np.array(sizes)


def _highest(*clocks: Floats, fallback: float = 1.0) -> float:
    known = np.concatenate(clocks)
    known = known[np.isfinite(known)]
    return float(known.max()) if known.size else fallback
