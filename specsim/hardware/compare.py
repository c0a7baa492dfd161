"""All profiles side by side for one model: limit per token, parallel positions, joules, price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from specsim.hardware.accelerator import Accelerator, Placement
from specsim.hardware.formats import Dtype
from specsim.hardware.memory import Resident, plan_memory
from specsim.hardware.model import ModelSpec
from specsim.hardware.roofline_profile import RooflineProfile
from specsim.hardware.step import StepShape

_SECONDS_PER_HOUR = 3600.0
_TOKENS_PER_MTOK = 1e6


@dataclass(frozen=True, slots=True)
class Comparison:
    """One device running one model, a single sequence, one token at a time."""

    name: str
    fits: bool
    """Weights and the cache of the sequence fit on one device."""
    limit_s: float
    """Physical limit of one token, s."""
    token_s: float
    """Time of one token, s."""
    parallel_positions: float
    """Positions that a pass serves before arithmetic sets its time."""
    token_j: float | None
    """Energy of one token, J; None without power."""
    is_power_estimated: bool
    """The energy rests on a guess."""
    usd_per_mtok: float | None
    """Price of a million tokens, US dollars; None without a price."""


def compare(
    profiles: Iterable[Accelerator],
    model: ModelSpec,
    *,
    context_tokens: int = 2048,
    weight_dtype: Dtype = "bfloat16",
) -> list[Comparison]:
    """Return what one token costs on each roofline profile, lowest limit first.

    Profiles of other kinds are left out: they state no peaks to compare.

    Examples
    --------
    >>> from specsim.hardware.load import load_model, load_profile
    >>> devices = [load_profile(name) for name in ("rtx-4090", "h100-sxm")]
    >>> [row.name for row in compare(devices, load_model("llama-3.2-1b"))]
    ['h100-sxm', 'rtx-4090']
    """
    rooflines = [profile for profile in profiles if isinstance(profile, RooflineProfile)]
    rows = [_one(profile, model, context_tokens, weight_dtype) for profile in rooflines]
    return sorted(rows, key=lambda row: (row.limit_s, row.name))


def _one(profile: RooflineProfile, model: ModelSpec, context_tokens: int, weight_dtype: Dtype) -> Comparison:
    one = np.array([1])
    context = np.array([context_tokens])
    shape = StepShape(one, one, one - 1, one, context, context)
    costs = profile.cost_model(model, weight_dtype=weight_dtype).steps(shape)
    resident = Resident(model, Placement(weight_dtype=weight_dtype))
    plan = plan_memory(profile, [resident], context_tokens=context_tokens)
    token_s = float(costs.duration_ps[0]) * 1e-12
    hourly = None if profile.price is None else profile.price.usd_per_hour
    return Comparison(
        name=profile.name,
        fits=plan.lacking_bytes(1) == 0,
        limit_s=float(costs.limit_s[0]),
        token_s=token_s,
        parallel_positions=profile.ridge_positions,
        token_j=float(costs.energy_nj[0]) * 1e-9 if profile.has_power else None,
        is_power_estimated=profile.is_power_estimated,
        usd_per_mtok=None if hourly is None else hourly / _SECONDS_PER_HOUR * token_s * _TOKENS_PER_MTOK,
    )
