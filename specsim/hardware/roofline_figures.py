"""Figures of a roofline profile beside bandwidth and peaks: efficiencies, overheads, kernels, range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from specsim.config.base import Spec, refuse
from specsim.hardware.formats import Dtype
from specsim.units import Seconds


class EfficiencyValue(Spec):
    """Achieved fraction of a datasheet peak; a bare number is the value."""

    value: float = Field(gt=0, le=1)
    """Fraction."""
    standard_error: float | None = Field(default=None, ge=0)
    """Standard error of the fit."""


def _wrap_number(given: object) -> object:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return {"value": given} if is_number else given


_Fraction = Annotated[
    EfficiencyValue, BeforeValidator(_wrap_number, json_schema_input_type=EfficiencyValue | float)
]


class Efficiency(Spec):
    """Achieved fractions of bandwidth and peak arithmetic."""

    memory: _Fraction = EfficiencyValue(value=1.0)
    """Of the bandwidth, reading weights."""
    compute: _Fraction = EfficiencyValue(value=1.0)
    """Of the peak arithmetic."""
    compute_by_dtype: Mapping[Dtype, _Fraction] = Field(default_factory=dict)
    """Of the peak arithmetic in one format, where it differs."""


class Overhead(Spec):
    """Time that neither bytes nor arithmetic explain, and the grain of the kernels. What is left out is 0."""

    step_s: Seconds = Field(default=0.0, ge=0)
    """Host and launch time of a step, s."""
    layer_s: Seconds = Field(default=0.0, ge=0)
    """Launches and small kernels of one layer, s."""
    sequence_s: Seconds = Field(default=0.0, ge=0)
    """Host work for one sequence of the batch, once a round, s."""
    draft_step_floor_s: Seconds | None = Field(default=None, ge=0)
    """Launch of one draft pass in place of ``step_s``, s; left out: ``step_s``."""
    smooth_exponent: float | None = Field(default=None, ge=1, le=100)
    """p in (memory^p + compute^p)^(1/p); left out: the larger of the two."""
    tile_positions: int = Field(default=1, ge=1, le=65536)
    """Positions are computed in multiples of this."""
    tile_fraction: float = Field(default=1.0, ge=0, le=1)
    """Share of the arithmetic that is computed in whole tiles; the rest grows with every position."""
    activation_passes: float = Field(default=0.0, ge=0, le=1000)
    """Times that a layer's small kernels move each activation of a position through memory."""
    unpack_s: Seconds = Field(default=0.0, ge=0)
    """Clock-bound work of a step on low-bit weights that does not grow with positions, s."""


class Attention(Spec):
    """Attention apart from the linear layers."""

    floor_s: Seconds = Field(default=0.0, ge=0)
    """Least time of one layer's attention, s."""
    bandwidth_efficiency: _Fraction | None = None
    """Achieved fraction of the bandwidth, reading the KV cache; left out: as for weights."""


class WeightFormat(Spec):
    """How kernels for one format of weights differ from the profile's own figures."""

    memory_efficiency: _Fraction | None = None
    """Achieved fraction of the bandwidth, reading weights."""
    compute_efficiency: _Fraction | None = None
    """Achieved fraction of the peak arithmetic."""
    smooth_exponent: float | None = Field(default=None, ge=1, le=100)
    """p of the smooth maximum."""
    tile_positions: int | None = Field(default=None, ge=1, le=65536)
    """Positions are computed in multiples of this."""
    unpack_weights_per_s: float | None = Field(default=None, gt=0)
    """Weights unpacked in a second at the nominal clock; takes the place of ``overhead.unpack_s``."""
    max_positions: int | None = Field(default=None, ge=1)
    """Most positions of a step that these kernels serve; beyond, the profile's own figures hold."""


class DeviceEnergy(Spec):
    """Energy of the chips alone, below which no board can go."""

    byte_j: float = Field(ge=0)
    """Energy of one byte from memory, J."""
    flop_j: float = Field(ge=0)
    """Energy of one floating-point operation, J."""


class Valid(Spec):
    """Range in which the profile was checked; a step outside is refused."""

    num_positions: tuple[int, int] | None = None
    """Least and most positions of a step."""
    context_tokens: tuple[int, int] | None = None
    """Least and most cached tokens of a sequence, mean over the batch."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        ranges = {"num_positions": self.num_positions, "context_tokens": self.context_tokens}
        refuse(
            [
                (key, f"{list(given)} is not a range [least, most]")
                for key, given in ranges.items()
                if given is not None and not 0 <= given[0] <= given[1]
            ]
        )
        return self
