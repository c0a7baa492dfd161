"""What a profile says of measured cells: the simulation's own cost code on the shapes of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.measurements import PARTS, Measurements
from specsim.arrays import NANOJOULES_PER_JOULE, PICOSECONDS_PER_SECOND, Floats, Ints
from specsim.hardware import ModelSpec, RooflineProfile, StepCosts, StepShape
from specsim.hardware.formats import Dtype
from specsim.hardware.parallel import Links

_UNLIMITED_LINKS = Links(intra_node_bandwidth_bytes_per_s=1e15, allreduce_latency_s=0.0)
"""Stands in where communication was not measured and the profile knows no links."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a profile says of R rows."""

    time_s: Floats
    """Time of what the row covers, s, [R]; NaN in an idle phase."""
    power_w: Floats
    """Mean power of all devices, W, [R]; NaN without a power model."""
    clock_fraction: Floats
    """Clock as a fraction of the nominal one, [R]."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that one cost model serves."""

    rows: Ints
    model: ModelSpec
    dtype: Dtype
    tensor_parallel_size: int
    power_cap_w: float
    shape: StepShape
    lacks_communication: bool


class Predictor:
    """Predictions for the rows of a trace, prepared once for many profiles.

    Parameters
    ----------
    measurements
        The rows. Times that leave parts out are predicted without them.
    """

    def __init__(self, measurements: Measurements) -> None:
        self._measurements = measurements
        self._groups = _groups(measurements)
        self._lacks = {part: np.char.find(measurements.excludes, part) >= 0 for part in PARTS}
        layers = np.array([float(one.num_layers) for one in measurements.models] or [0.0])
        self._num_layers = layers[measurements.model]

    def __call__(self, profile: RooflineProfile, *, with_power: bool = False) -> Prediction:
        """Return what a profile says of the rows.

        Parameters
        ----------
        profile
            The profile; its range of validity is not checked.
        with_power
            Solve for clock and power as well; without it no power cap binds.

        Raises
        ------
        ConfigError
            Where the profile lacks a figure, such as the links of several devices.
        """
        costs = self.costs(profile, with_power=with_power)
        rows = self._measurements
        whole_s = costs.duration_ps / PICOSECONDS_PER_SECOND
        launch_s = costs.overhead_s - self._num_layers * profile.overhead.layer_s
        covered_s = whole_s - self._lacks["attention"] * costs.attention_s - self._lacks["launch"] * launch_s
        covered_s = covered_s - self._lacks["communication"] * costs.communication_s
        time_s = np.where(self._lacks["linear"], costs.attention_s, covered_s)
        time_s = np.where(rows.is_step, time_s, np.nan)
        power_w = np.full(len(rows), np.nan)
        if with_power:
            power_w[rows.is_step] = (costs.energy_nj / NANOJOULES_PER_JOULE)[rows.is_step] / whole_s[
                rows.is_step
            ]
        if profile.power is not None and with_power:
            phase, parallel = self._measurements.phase, self._measurements.tensor_parallel_size
            power_w[phase == "idle"] = (profile.power.idle_w * parallel)[phase == "idle"]
            power_w[phase == "idle_context"] = (profile.power.waiting_w * parallel)[phase == "idle_context"]
        return Prediction(time_s, power_w, costs.clock_fraction)

    def costs(self, profile: RooflineProfile, *, with_power: bool = False) -> StepCosts:
        """Return the costs of all rows as whole steps, [R]; zeros in an idle phase."""
        fields = StepCosts.__dataclass_fields__
        whole = {name: np.zeros(len(self._measurements)) for name in fields}
        for group in self._groups:
            costs = (
                self._profile(profile, group, with_power)
                .cost_model(
                    group.model,
                    tensor_parallel_size=group.tensor_parallel_size,
                    weight_dtype=group.dtype,
                )
                .steps(group.shape)
            )
            for name in fields:
                whole[name][group.rows] = getattr(costs, name)
        return StepCosts(**whole)  # type: ignore[arg-type]

    def _profile(self, profile: RooflineProfile, group: _Group, with_power: bool) -> RooflineProfile:
        update: dict[str, object] = {
            "valid": profile.valid.model_copy(update={"num_positions": None, "context_tokens": None})
        }
        if not with_power:
            update["power"] = None
        elif profile.power is not None and np.isfinite(group.power_cap_w):
            update["power"] = profile.power.model_copy(update={"cap_w": group.power_cap_w})
        if group.tensor_parallel_size > 1 and group.lacks_communication:
            update["links"] = _UNLIMITED_LINKS
        return profile.model_copy(update=update)


def _groups(rows: Measurements) -> list[_Group]:
    shape = rows.shape()
    found: list[_Group] = []
    caps = np.nan_to_num(rows.power_cap_w, nan=-1.0)
    keys = list(
        zip(
            rows.model.tolist(),
            rows.dtype.tolist(),
            rows.tensor_parallel_size.tolist(),
            caps.tolist(),
            strict=True,
        )
    )
    for key in dict.fromkeys(keys):
        chosen = np.flatnonzero(np.array([one == key for one in keys]) & rows.is_step)
        if not chosen.size:
            continue
        model, dtype, parallel, cap = key
        found.append(
            _Group(
                rows=chosen,
                model=rows.models[model],
                dtype=dtype,
                tensor_parallel_size=parallel,
                power_cap_w=cap if cap > 0 else np.nan,
                shape=StepShape(
                    **{name: getattr(shape, name)[chosen] for name in StepShape.__dataclass_fields__}
                ),
                lacks_communication=bool((np.char.find(rows.excludes[chosen], "communication") >= 0).all()),
            )
        )
    return found
