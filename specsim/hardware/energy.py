"""Power of a device as data.

Energy of a step = [active_w + V²·clock_w·f]·time + V²·compute_w·FLOPs/peak + memory_w·bytes/bandwidth,
where peak and bandwidth are those of the datasheet, f is the clock and V its voltage (see ``clock``).
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from specsim.config.base import Spec, refuse
from specsim.hardware.clock import PowerCurve
from specsim.units import Watts

_LOWEST_CLOCK_FRACTION = 0.2
"""Lowest clock under a cap, of the boost clock: 387 of 1,700 MHz on an RTX 3090 at 175 W (thc1006, CC0)."""


class Clock(Spec):
    """How voltage follows the clock: flat up to a knee, then linear."""

    knee_fraction: float = Field(gt=0, le=2)
    """Clock, as a fraction of nominal, above which the voltage rises."""
    slope: float = Field(ge=0)
    """Relative rise of the voltage per unit of clock fraction above the knee."""
    min_fraction: float = Field(default=_LOWEST_CLOCK_FRACTION, gt=0, le=1)
    """Lowest clock, as a fraction of nominal; under a cap that even it exceeds, the clock is gated."""
    max_fraction: float = Field(default=1.0, ge=1, le=2)
    """Highest clock, as a fraction of the nominal clock at which the peak is stated."""


class Power(Spec):
    """Power draw of one device."""

    idle_w: Watts = Field(ge=0)
    """Idle, no model loaded, W."""
    idle_context_w: Watts | None = Field(default=None, ge=0)
    """Waiting with a model loaded, W; left out: ``idle_w``."""
    active_w: Watts = Field(ge=0)
    """Drawn while a step runs, whatever it does, W."""
    memory_w: Watts = Field(ge=0)
    """Added at full memory bandwidth, W."""
    clock_w: Watts = Field(default=0.0, ge=0)
    """Added by the running clock at its nominal frequency, W."""
    compute_w: Watts = Field(ge=0)
    """Added at full peak arithmetic, W."""
    cap_w: Watts = Field(gt=0)
    """Power limit of the board, W."""
    clock: Clock | None = None
    """Voltage against clock; left out: the same voltage at every clock up to nominal."""

    @property
    def waiting_w(self) -> float:
        """Power while waiting with a model loaded, W."""
        return self.idle_w if self.idle_context_w is None else self.idle_context_w

    @property
    def curve(self) -> PowerCurve:
        """Power as a function of the clock."""
        clock = self.clock or Clock(knee_fraction=1.0, slope=0.0)
        return PowerCurve(
            active_w=self.active_w,
            clock_w=self.clock_w,
            cap_w=self.cap_w,
            knee_fraction=clock.knee_fraction,
            slope=clock.slope,
            min_fraction=clock.min_fraction,
            max_fraction=clock.max_fraction,
        )

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        faults = []
        if self.active_w >= self.cap_w:
            message = f"{self.active_w:g} W is not below the cap of {self.cap_w:g} W"
            faults.append(("active_w", message))
        if self.waiting_w > self.active_w:
            key = "idle_w" if self.idle_context_w is None else "idle_context_w"
            message = f"{self.waiting_w:g} W is more than active_w of {self.active_w:g} W"
            faults.append((key, message))
        if self.idle_w > self.waiting_w:
            message = f"{self.idle_w:g} W is more than idle_context_w of {self.waiting_w:g} W"
            faults.append(("idle_w", message))
        refuse(faults)
        return self
