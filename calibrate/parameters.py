"""Parameters of a fit: figures of a roofline profile by their dotted path, with bounds from physics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import BaseModel

from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.hardware import RooflineProfile
from specsim.hardware.roofline_figures import EfficiencyValue


@dataclass(frozen=True, slots=True)
class Parameter:
    """One figure of a profile that may be fitted."""

    path: str
    """Where the profile holds it; an efficiency is its ``value``."""
    meaning: str
    lower: float
    upper: float
    """Bounds from physics: no efficiency above the datasheet, no negative time or power."""
    typical: float
    """Start of a fit where the prior says nothing, and the size of one unit inside it."""
    transform: Literal["log", "linear"]
    """A quantity that cannot be zero is fitted as its logarithm."""
    identifying_cells: str
    """What to measure where the data cannot tell it."""

    def to_internal(self, value: float) -> float:
        """Return the value on the fit's own scale, of order one."""
        if self.transform == "log":
            return float(np.log(min(max(value, self.lower), self.upper)))
        return min(max(value, self.lower), self.upper) / self.typical

    def to_value(self, internal: float) -> float:
        """Return the figure from the fit's own scale."""
        value = float(np.exp(internal)) if self.transform == "log" else internal * self.typical
        return min(max(value, self.lower), self.upper)

    def value_slope(self, internal: float) -> float:
        """Return the derivative of the figure by the fit's own scale."""
        return self.to_value(internal) if self.transform == "log" else self.typical

    @property
    def internal_bounds(self) -> tuple[float, float]:
        """Return both bounds on the fit's own scale."""
        if self.transform == "log":
            return float(np.log(self.lower)), float(np.log(self.upper))
        return self.lower / self.typical, self.upper / self.typical


_TWO_SIZES = "two models whose weights a layer differ at least twofold, at 1 to 8 positions, batch 1"
_MANY = "256 to 1024 positions at batch 1 on a model of 7 billion weights or more"

TIME_PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "efficiency.memory", "fraction of the bandwidth, reading weights", 0.02, 1.0, 0.8, "log", _TWO_SIZES
    ),
    Parameter("efficiency.compute", "fraction of the peak arithmetic", 0.005, 1.0, 0.6, "log", _MANY),
    Parameter(
        "overhead.step_s",
        "host and launch time of a step, s",
        0.0,
        1.0,
        3e-4,
        "linear",
        "two models with unlike numbers of layers, at 1 position",
    ),
    Parameter(
        "overhead.layer_s", "launches and small kernels of a layer, s", 0.0, 0.1, 3e-5, "linear", _TWO_SIZES
    ),
    Parameter(
        "overhead.sequence_s",
        "host work for one sequence, s",
        0.0,
        0.1,
        3e-5,
        "linear",
        "batch 1, 4, 16, 64 with 1 position each, by the host's clock",
    ),
    Parameter(
        "overhead.smooth_exponent",
        "sharpness of the corner between memory and compute",
        1.0,
        100.0,
        2.5,
        "log",
        "32, 64, 96, 128, 192, 256 positions, around the corner",
    ),
    Parameter(
        "overhead.activation_passes",
        "times that small kernels move each activation",
        0.0,
        1000.0,
        5.0,
        "linear",
        "1 and 256 to 512 positions on a small and on a large model",
    ),
    Parameter(
        "overhead.unpack_s",
        "clock-bound work of a step on low-bit weights, s",
        0.0,
        1.0,
        1e-3,
        "linear",
        "1, 2, 4, 8 positions on low-bit weights at two locked clocks",
    ),
    Parameter(
        "attention.floor_s",
        "least time of one layer's attention, s",
        0.0,
        0.1,
        1e-5,
        "linear",
        "contexts of 128 and 1,024 tokens at batch 1",
    ),
    Parameter(
        "attention.bandwidth_efficiency",
        "fraction of the bandwidth, reading the KV cache",
        0.005,
        1.0,
        0.7,
        "log",
        "contexts of 4,096 and 16,384 tokens at batch 1 and 16",
    ),
)

_LARGE = "prefill of 512 to 4,096 positions, and decoding at batch 1 and 64"

POWER_PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "power.idle_w", "idle, no model loaded, W", 0.0, 2000.0, 50.0, "linear", "an idle window of 5 s"
    ),
    Parameter(
        "power.idle_context_w",
        "waiting with a model loaded, W",
        0.0,
        2000.0,
        80.0,
        "linear",
        "an idle window of 5 s with a model loaded",
    ),
    Parameter(
        "power.active_w",
        "drawn while a step runs, W",
        0.0,
        2000.0,
        100.0,
        "linear",
        "a model small enough to be bound by launches, batch 1",
    ),
    Parameter(
        "power.memory_w",
        "added at full bandwidth, W",
        0.0,
        5000.0,
        300.0,
        "linear",
        "decoding at batch 1 of a small and of a large model",
    ),
    Parameter("power.compute_w", "added at full peak arithmetic, W", 0.0, 5000.0, 300.0, "linear", _LARGE),
    Parameter(
        "power.clock_w",
        "added by the running clock, W",
        0.0,
        2000.0,
        50.0,
        "linear",
        "one cell at three locked clocks",
    ),
    Parameter(
        "power.clock.knee_fraction",
        "clock above which the voltage rises",
        0.3,
        1.5,
        0.8,
        "log",
        "one cell at five locked clocks",
    ),
    Parameter(
        "power.clock.slope",
        "rise of the voltage above the knee",
        0.0,
        10.0,
        1.5,
        "linear",
        "one cell at five locked clocks",
    ),
)

PARAMETERS: Mapping[str, Parameter] = {one.path: one for one in (*TIME_PARAMETERS, *POWER_PARAMETERS)}


def value_of(profile: RooflineProfile, path: str) -> float | None:
    """Return a figure of a profile by its path; None where the profile leaves it out.

    Examples
    --------
    >>> from specsim.hardware import load_profile
    >>> value_of(load_profile("h100-sxm.datasheet"), "efficiency.memory")
    0.88
    """
    found: object = profile
    for name in path.split("."):
        if found is None:
            return None
        found = getattr(found, name)
    if isinstance(found, EfficiencyValue):
        return found.value
    return None if found is None else float(found)  # type: ignore[arg-type]


def with_values(
    profile: RooflineProfile,
    values: Mapping[str, float],
    *,
    standard_errors: Mapping[str, float] | None = None,
) -> RooflineProfile:
    """Return a profile with some figures replaced, within bounds that are not checked anew.

    A fit calls this thousands of times; what is written to a file is validated there.
    """
    by_section: dict[str, dict[str, float]] = {}
    for path, value in values.items():
        section, _, name = path.rpartition(".")
        by_section.setdefault(section, {})[name] = value
    errors = standard_errors or {}
    for section, figures in sorted(by_section.items(), key=lambda item: -item[0].count(".")):
        profile = _with_section(profile, section.split("."), figures, errors, section)
    return profile


def _with_section(
    owner: RooflineProfile,
    names: Sequence[str],
    figures: Mapping[str, float],
    errors: Mapping[str, float],
    section: str,
) -> RooflineProfile:
    chain: list[BaseModel] = [owner]
    for name in names:
        child = getattr(chain[-1], name)
        if not isinstance(child, BaseModel):
            raise DomainError(f"profile '{owner.name}' has no {section}")
        chain.append(child)
    updated = chain[-1].model_copy(
        update={name: _figure(f"{section}.{name}", value, errors) for name, value in figures.items()}
    )
    for parent, name in zip(reversed(chain[:-1]), reversed(names), strict=True):
        updated = parent.model_copy(update={name: updated})
    assert isinstance(updated, RooflineProfile)
    return updated


def _figure(path: str, value: float, errors: Mapping[str, float]) -> object:
    is_efficiency = path.startswith("efficiency.") or path.endswith("_efficiency")
    return EfficiencyValue(value=value, standard_error=errors.get(path)) if is_efficiency else value


def internal_of(parameters: Sequence[Parameter], profile: RooflineProfile) -> Floats:
    """Start of a fit at a profile's figures, [K]; typical values where it has none."""
    return np.array([one.to_internal(value_of(profile, one.path) or one.typical) for one in parameters])


def bounds_of(parameters: Sequence[Parameter]) -> tuple[Floats, Floats]:
    """Lower and upper bounds on the fit's own scale, [K] each."""
    pairs = [one.internal_bounds for one in parameters]
    return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])


def values_of(parameters: Sequence[Parameter], internal: Floats) -> dict[str, float]:
    """Figures by path from the fit's own scale."""
    return {one.path: one.to_value(float(at)) for one, at in zip(parameters, internal, strict=True)}
