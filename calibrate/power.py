"""Power from measured energy: the cost code's own power curve, with its clock under a cap.

P = active + V²·clock·f + V²·compute·FLOP/s/peak + memory·(bytes/s)/bandwidth, f the largest clock that the
cap allows (`specsim.hardware.clock`). Where a trace holds caps or locked clocks, time and power are
fitted together, since a cap stretches the clock-bound part of the time; else the times' fit stands, and
power is fitted to what was moved and computed in the measured time, so that no misfit of the times enters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrate.components import Components, components_of
from calibrate.diagnose import NotIdentified
from calibrate.figures import Figure, figures_of
from calibrate.fit import TimeFit
from calibrate.measurements import Measurements
from calibrate.observations import observe
from calibrate.parameters import PARAMETERS, POWER_PARAMETERS, Parameter, bounds_of, value_of, with_values
from calibrate.regression import Regression, solve
from specsim.arrays import Bools, Floats, Ints
from specsim.errors import DomainError
from specsim.hardware import Clock, Power, RooflineProfile
from specsim.hardware.clock import PowerCurve

_IDLE = ("power.idle_w", "power.idle_context_w")
_CLOCK = ("power.clock_w", "power.clock.knee_fraction", "power.clock.slope")
_WEAK = 0.5
"""A relative standard error above this leaves a figure to the prior."""
_NEAR_CAP = 0.96
"""Share of its cap from which a board is taken to be held by it."""
_LEAST_BUSY = 0.3


@dataclass(frozen=True, slots=True)
class _Setting:
    """Cells under one cap, clock limit and memory clock."""

    rows: Ints
    parts: Components
    cap_w: float
    max_fraction: float
    memory_fraction: float


@dataclass(frozen=True, slots=True)
class PowerFit:
    """A fitted power curve."""

    profile: RooflineProfile
    """The time fit's profile with the power figures in place."""
    values: Mapping[str, float | None]
    """All figures as fitted, also those that the profile leaves to the prior: for rows of the same kind."""
    figures: tuple[Figure, ...]
    not_identified: tuple[NotIdentified, ...]
    cells: Measurements
    """Cells with energy."""
    regression: Regression
    is_joint: bool
    """Times and power were fitted together, since caps or clocks vary."""
    nominal_hz: float
    """The clock at which the peak is stated."""

    def predict_power(self, cells: Measurements, time_s: Floats) -> Floats:
        """Return the power of cells of the same kind as were fitted, at given times, W, [R].

        At the given time and within the cap; by the clock's solution where times were fitted too.
        """
        law = PowerLaw(cells.with_columns({"gpu_s": time_s}), self.profile, nominal_hz=self.nominal_hz)
        if self.is_joint:
            return law.predict(self.values)[1]
        return np.minimum(law.power_at(self.values, time_s), law.allowed_w(self.values))

    def relative_power_error(self, rows: Measurements) -> Floats:
        """Return predicted over measured power, less one, of rows with energy, [R]."""
        cells = observe(rows).rows
        return self.predict_power(cells, cells.gpu_s) / cells.power_w - 1.0


class PowerLaw:
    """Power and time of measured cells as a function of a profile's figures.

    Parameters
    ----------
    cells
        Steps with time in ``gpu_s`` and energy.
    profile
        Gives bandwidth, peak, power cap, and the form of the law of times.
    nominal_hz
        The clock at which the peak is stated; left out: the highest that was measured or allowed.
    """

    def __init__(
        self, cells: Measurements, profile: RooflineProfile, *, nominal_hz: float | None = None
    ) -> None:
        if profile.power is None:
            raise DomainError(f"profile '{profile.name}' has no power to start from")
        self.cells, self.profile, self.power = cells, profile, profile.power
        self._bandwidth = profile.memory.bandwidth_bytes_per_s
        self._peak = profile.peak(profile.plain_dtype)
        self.nominal_hz = nominal_hz or _highest(cells)
        self._settings = self._settings_of()

    @property
    def clocks_vary(self) -> bool:
        """The trace holds several caps, clock limits or memory clocks."""
        return len(self._settings) > 1

    @property
    def busy_fraction(self) -> Floats:
        """FLOP/s over the datasheet peak, [R]."""
        return self._per_cell(lambda one: one.parts.flops / self.cells.gpu_s[one.rows] / self._peak)

    @property
    def is_at_cap(self) -> Bools:
        """Cells that draw their cap, [R]."""
        cap_w = self._per_cell(lambda one: one.cap_w * one.parts.num_devices)
        return self.cells.power_w > _NEAR_CAP * cap_w

    def allowed_w(self, values: Mapping[str, float | None]) -> Floats:
        """Return the power at which a cap binds, of all devices, W, [R]."""
        return self._per_cell(lambda one: self._curve(values, one).allowed_w * one.parts.num_devices)

    def predict(self, values: Mapping[str, float | None]) -> tuple[Floats, Floats, Floats]:
        """Return time in s, power of all devices in W and clock fraction of the cells, [R] each."""
        time_s, power_w, clock = (np.zeros(len(self.cells)) for _ in range(3))
        for one in self._settings:
            curve = self._curve(values, one)
            parts = one.parts
            if one.memory_fraction != 1.0:
                parts = replace(
                    parts,
                    memory_s=parts.memory_s / one.memory_fraction,
                    cache_s=parts.cache_s / one.memory_fraction,
                    activation_s=parts.activation_s / one.memory_fraction,
                )
            found = parts.operate(values, curve, bandwidth=self._bandwidth, peak=self._peak)
            time_s[one.rows] = found.time_s
            power_w[one.rows] = found.energy_j / found.time_s * parts.num_devices
            clock[one.rows] = found.clock_fraction
        return time_s, power_w, clock

    def power_at(self, values: Mapping[str, float | None], time_s: Floats) -> Floats:
        """Return the power of steps of given length, W, [R], at the nominal clock and without a cap."""
        power_w = np.zeros(len(self.cells))
        for one in self._settings:
            curve, parts = self._curve(values, one), one.parts
            here_s = time_s[one.rows]
            compute_j, memory_j = parts.work_energy(values, bandwidth=self._bandwidth, peak=self._peak)
            energy_j = curve.energy(here_s, np.ones_like(here_s), compute_j, memory_j)
            power_w[one.rows] = energy_j / here_s * parts.num_devices
        return power_w

    def _per_cell(self, of: Callable[[_Setting], Floats | float]) -> Floats:
        found = np.zeros(len(self.cells))
        for one in self._settings:
            found[one.rows] = of(one)
        return found

    def _curve(self, values: Mapping[str, float | None], one: _Setting) -> PowerCurve:
        known = {path: value for path, value in values.items() if value is not None}
        clock = self.power.clock or Clock(knee_fraction=1.0, slope=0.0)
        highest = min(one.max_fraction, max(clock.max_fraction, 1.0))
        return PowerCurve(
            active_w=min(known.get("power.active_w", self.power.active_w), 0.95 * one.cap_w),
            clock_w=known.get("power.clock_w", self.power.clock_w),
            cap_w=one.cap_w,
            knee_fraction=known.get("power.clock.knee_fraction", clock.knee_fraction),
            slope=known.get("power.clock.slope", clock.slope),
            min_fraction=min(clock.min_fraction, highest),
            max_fraction=highest,
        )

    def _settings_of(self) -> list[_Setting]:
        cells = self.cells
        tile = self.profile.overhead.tile_positions
        parts = components_of(cells, self.profile, tile_positions=tile)
        cap = np.where(np.isnan(cells.power_cap_w), self.power.cap_w, cells.power_cap_w)
        lock = np.where(np.isnan(cells.sm_lock_hz), np.inf, cells.sm_lock_hz / self.nominal_hz)
        highest = np.nanmax(cells.memory_clock_hz) if np.isfinite(cells.memory_clock_hz).any() else 1.0
        memory = np.where(np.isnan(cells.memory_clock_hz), 1.0, cells.memory_clock_hz / highest)
        keys = list(zip(cap.tolist(), lock.tolist(), memory.tolist(), strict=True))
        found = []
        for key in dict.fromkeys(keys):
            mask = np.array([one == key for one in keys])
            found.append(_Setting(np.flatnonzero(mask), parts.take(mask), *key))
        return found


def fit_power(
    measurements: Measurements, timed: TimeFit, *, nominal_hz: float | None = None
) -> PowerFit | None:
    """Fit the power curve to the energy of a trace; None where it holds none.

    Parameters
    ----------
    measurements
        All rows, idle phases included.
    timed
        The fit of the times.
    nominal_hz
        The clock at which the peak is stated.

    Raises
    ------
    DomainError
        Where the prior has no power cap, or there are too few cells with energy.
    """
    cells = observe(measurements).rows
    cells = cells.take(np.isfinite(cells.energy_j))
    if not len(cells):
        return None
    profile = _with_idle(timed.profile, measurements)
    law = PowerLaw(cells, profile, nominal_hz=nominal_hz)
    return _fitted(law, profile, timed)


def _fitted(law: PowerLaw, profile: RooflineProfile, timed: TimeFit) -> PowerFit:
    candidates = [
        one
        for one in POWER_PARAMETERS
        if one.path not in _IDLE and (law.clocks_vary or one.path not in _CLOCK)
    ]
    timing = [PARAMETERS[one.path] for one in timed.figures] if law.clocks_vary else []
    base = {one.path: value_of(profile, one.path) for one in PARAMETERS.values()}
    base |= {
        "overhead.tile_fraction": profile.overhead.tile_fraction,
        "overhead.smooth_exponent": profile.overhead.smooth_exponent,
    }
    missing: list[NotIdentified] = []
    while True:
        power = [one for one in candidates if one.path not in {held.path for held in missing}]
        values, solved = _solve(law, [*timing, *power], base)
        worst = _least_told(power, solved, profile, first=len(timing))
        if worst is None:
            break
        missing.append(worst)
    figures = figures_of([*timing, *power], solved)
    untold = _idle_arithmetic(law, profile, values)
    if untold is not None and untold.path not in {one.path for one in missing}:
        missing.append(untold)
        figures = tuple(one for one in figures if one.path != untold.path)
    fitted = {one.path: one.value for one in figures}
    return PowerFit(
        values=values,
        profile=_profile(profile, fitted, {one.path: one.standard_error or 0.0 for one in figures}),
        figures=figures,
        not_identified=tuple(missing),
        cells=law.cells,
        regression=solved,
        is_joint=bool(timing),
        nominal_hz=law.nominal_hz,
    )


def _solve(
    law: PowerLaw, free: Sequence[Parameter], base: Mapping[str, float | None]
) -> tuple[dict[str, float | None], Regression]:
    measured_w, measured_s = np.log(law.cells.power_w), np.log(law.cells.gpu_s)

    def figures(internal: Floats) -> dict[str, float | None]:
        return {**base, **{one.path: one.to_value(float(at)) for one, at in zip(free, internal, strict=True)}}

    def residuals(internal: Floats) -> Floats:
        if not law.clocks_vary:
            over = np.log(law.power_at(figures(internal), law.cells.gpu_s)) - measured_w
            # At the cap a step would have drawn more: there only too little power is wrong.
            return np.where(law.is_at_cap, np.minimum(over, 0.0), over)
        time_s, power_w, _ = law.predict(figures(internal))
        return np.concatenate([np.log(time_s) - measured_s, np.log(power_w) - measured_w])

    start = np.array([one.to_internal(base[one.path] or one.typical) for one in free])
    solved = solve(residuals, start, *bounds_of(free), tolerance=1e-6)
    return figures(solved.values), solved


def _idle_arithmetic(
    law: PowerLaw, profile: RooflineProfile, values: Mapping[str, float | None]
) -> NotIdentified | None:
    """Power of the arithmetic, left to the prior where no cell keeps it busy.

    It then stands for all that grows with the batch, such as the prompts that a server computes in
    between and no row tells of: with their length it moves 3–6 times. The other figures hardly move.
    """
    busy, path = float(law.busy_fraction.max()), "power.compute_w"
    fitted_w = values.get(path)
    if busy >= _LEAST_BUSY or profile.power is None or fitted_w is None:
        return None
    reason = (
        f"the arithmetic is busy for at most {busy:.0%} of a step, where the best value, {fitted_w:.0f} W, "
        "stands for prompts served in between as well"
    )
    return NotIdentified(path, profile.power.compute_w, reason, PARAMETERS[path].identifying_cells)


def _least_told(
    power: Sequence[Parameter], solved: Regression, profile: RooflineProfile, *, first: int
) -> NotIdentified | None:
    """Return the power figure that the data tell least, where that is not enough."""
    worst: tuple[float, NotIdentified] | None = None
    for index, one in enumerate(power, start=first):
        internal, error = float(solved.values[index]), float(solved.standard_errors[index])
        value = one.to_value(internal)
        if solved.is_at_bound[index]:
            share, reason = np.inf, f"the best value is the bound {value:.4g}"
        else:
            share = error if one.transform == "log" else error / max(abs(internal), 1e-12)
            reason = f"its standard error is {share:.0%} of it"
        if share > _WEAK and (worst is None or share > worst[0]):
            held = value_of(profile, one.path)
            prior = one.typical if held is None else held
            worst = (float(share), NotIdentified(one.path, prior, reason, one.identifying_cells))
    return None if worst is None else worst[1]


def _with_idle(profile: RooflineProfile, rows: Measurements) -> RooflineProfile:
    """Return the profile with the idle powers that were measured."""
    power = profile.power
    if power is None:
        return profile
    measured = {
        name: float(
            np.median(rows.power_w[rows.phase == phase] / rows.tensor_parallel_size[rows.phase == phase])
        )
        for name, phase in (("idle_w", "idle"), ("idle_context_w", "idle_context"))
        if (rows.phase == phase).any()
    }
    return profile.model_copy(update={"power": power.model_copy(update=measured)})


def _profile(
    profile: RooflineProfile, values: Mapping[str, float], errors: Mapping[str, float]
) -> RooflineProfile:
    assert profile.power is not None
    if profile.power.clock is None and any(path.startswith("power.clock.") for path in values):
        clock = Clock(knee_fraction=1.0, slope=0.0)
        profile = profile.model_copy(update={"power": profile.power.model_copy(update={"clock": clock})})
    profile = with_values(profile, values, standard_errors=errors)
    power = profile.power
    assert power is not None
    # A prior's idle power may exceed what the fit gives a running device.
    waiting_w = min(power.waiting_w, power.active_w)
    checked = {**dict(power), "idle_w": min(power.idle_w, waiting_w), "idle_context_w": waiting_w}
    return profile.model_copy(update={"power": Power(**checked)})


def _highest(cells: Measurements) -> float:
    known = np.concatenate([cells.sm_clock_hz, cells.sm_lock_hz])
    known = known[np.isfinite(known)]
    return float(known.max()) if known.size else 1.0
