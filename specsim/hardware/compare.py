"""All profiles side by side for one model: limit per token, parallel positions, joules, price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from specsim.arrays import NANOJOULES_PER_JOULE, PICOSECONDS_PER_SECOND, SECONDS_PER_HOUR
from specsim.errors import DomainError
from specsim.hardware.accelerator import Accelerator, Placement
from specsim.hardware.formats import Dtype
from specsim.hardware.guess import is_shown
from specsim.hardware.memory import Resident, plan_memory
from specsim.hardware.model import ModelSpec
from specsim.hardware.provenance import is_guess
from specsim.hardware.roofline_profile import RooflineProfile
from specsim.hardware.step import StepShape
from specsim.hardware.work import WorkCounter

_TOKENS_PER_MTOK = 1e6


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """One device running one model, a single sequence, one token at a time."""

    name: str
    fits: bool
    """Weights and the cache of the sequence fit on one device."""
    limit_s: float
    """Physical limit of one token, s."""
    token_s: float | None
    """Time of one token, s; None outside the range in which the profile was checked."""
    parallel_positions: float
    """Positions that a pass serves before arithmetic sets its time."""
    token_j: float | None
    """Energy of one token, J; None without power or without ``token_s``."""
    guessed_energy_fraction: float | None
    """Share of the energy that guessed watts contribute; None without ``token_j``."""
    usd_per_hour: float | None
    """Price of the device, US dollars an hour; None where it is not known."""
    usd_per_mtok: float | None
    """Price of a million tokens, US dollars; None without a price or without ``token_s``."""
    is_price_estimated: bool
    """The price is a guess."""
    is_fitted: bool
    """Its step times were calibrated on measurements; else they are those of the datasheet."""
    held_out_error: float | None
    """Mean relative error of step time on measurements that were not fitted to; None where not known."""

    @property
    def is_energy_shown(self) -> bool:
        """The energy is known, and guessed watts bear no more of it than is shown."""
        return self.guessed_energy_fraction is not None and is_shown(self.guessed_energy_fraction)


def compare(
    profiles: Iterable[Accelerator],
    model: ModelSpec,
    *,
    context_tokens: int = 2048,
    weight_dtype: Dtype = "bfloat16",
) -> list[DeviceCost]:
    """Return what one token costs on each roofline profile, lowest limit first.

    Profiles of other kinds are left out: they state no peaks to compare.

    Raises
    ------
    ConfigError
        Where a device lacks the arithmetic that the weights need.

    Examples
    --------
    >>> from specsim.hardware.load import load_model, load_profile
    >>> devices = [load_profile(name) for name in ("rtx-4090", "h100-sxm")]
    >>> [row.name for row in compare(devices, load_model("llama-3.2-1b"))]
    ['h100-sxm', 'rtx-4090']
    """
    rooflines = [profile for profile in profiles if isinstance(profile, RooflineProfile)]
    return ranked(_one(profile, model, context_tokens, weight_dtype) for profile in rooflines)


def ranked(rows: Iterable[DeviceCost]) -> list[DeviceCost]:
    """Return comparisons with the lowest limit first."""
    return sorted(rows, key=lambda row: (row.limit_s, row.name))


def _one(profile: RooflineProfile, model: ModelSpec, context_tokens: int, weight_dtype: Dtype) -> DeviceCost:
    one = np.array([1])
    context = np.array([context_tokens])
    shape = StepShape(one, one, one - 1, one, context, context + 1)
    placement = Placement(weight_dtype=weight_dtype)
    work = WorkCounter(model, placement, neglects=profile.neglects).count(shape)
    least_bytes = work.weight_bytes + work.cache_bytes
    plan = plan_memory(profile, [Resident(model, placement)], context_tokens=context_tokens)
    cost = _cost(profile, model, placement, shape)
    hourly = None if profile.price is None else profile.price.usd_per_hour
    return DeviceCost(
        name=profile.name,
        fits=plan.lacking_bytes(1) == 0,
        limit_s=float(profile.limit(placement).time(least_bytes, work.flops)[0]),
        token_s=cost.time_s,
        parallel_positions=profile.ridge_positions,
        token_j=cost.energy_j,
        guessed_energy_fraction=None if not cost.energy_j else min(cost.guessed_j / cost.energy_j, 1.0),
        usd_per_hour=hourly,
        usd_per_mtok=(
            None
            if hourly is None or cost.time_s is None
            else hourly / SECONDS_PER_HOUR * cost.time_s * _TOKENS_PER_MTOK
        ),
        is_price_estimated=hourly is not None and is_guess(profile.source_of("price.usd_per_hour")),
        is_fitted=profile.is_fitted,
        held_out_error=profile.held_out_error,
    )


@dataclass(frozen=True, slots=True)
class _TokenCost:
    """Time and energy of one token; None where they are not known."""

    time_s: float | None = None
    energy_j: float | None = None
    guessed_j: float = 0.0


def _cost(profile: RooflineProfile, model: ModelSpec, placement: Placement, shape: StepShape) -> _TokenCost:
    try:
        costs = profile.place(model, placement).steps(shape)
    except DomainError:
        return _TokenCost()
    time_s = float(costs.duration_ps[0]) / PICOSECONDS_PER_SECOND
    if not profile.has_power:
        return _TokenCost(time_s)
    return _TokenCost(time_s, float(costs.energy_nj[0]) / NANOJOULES_PER_JOULE, float(costs.guessed_j[0]))
