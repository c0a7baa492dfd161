"""Steps of a trace taken apart: what each figure of a profile multiplies.

Every part is read off the simulation's own cost code at a reference profile, and the parts are put
together again by its own smooth maximum and its own solution for the clock. A test holds the sum equal to
``profile.cost_model(...)``; this way costs a few array operations for all models of a trace together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibrate.measurements import Measurements
from calibrate.predict import Predictor
from specsim.arrays import Bools, Floats
from specsim.hardware import RooflineProfile, StepCosts
from specsim.hardware.accelerator import Effect
from specsim.hardware.clock import Operation, PowerCurve, StepTime, run_under_cap

Values = Mapping[str, float | None]
"""Figures of a profile by their path; a ``smooth_exponent`` of None is the hard maximum."""

_ABSENT = ("launch", "communication", "attention", "linear")


@dataclass(frozen=True, slots=True)
class Components:
    """Parts of R steps at efficiencies of one; arrays [R], times in s."""

    memory_s: Floats
    """Weights at the datasheet bandwidth."""
    tiled_s: Floats
    """Arithmetic in whole tiles, at the datasheet peak."""
    untiled_s: Floats
    """Arithmetic of the positions alone, at the datasheet peak."""
    activation_s: Floats
    """One pass of the activations, at the datasheet bandwidth."""
    cache_s: Floats
    """KV cache at the datasheet bandwidth."""
    attention_compute_s: Floats
    """Attention's arithmetic at the datasheet peak."""
    communication_s: Floats
    num_layers: Floats
    num_sequences: Floats
    has_launch: Bools
    has_linear: Bools
    has_attention: Bools
    is_unpacked: Bools
    """Weights are unpacked before the arithmetic."""
    flops: Floats
    """Of one device."""
    bytes: Floats
    """Of one device."""
    num_devices: Floats

    def take(self, rows: Bools) -> Components:
        """Return the parts of some rows."""
        return Components(*(getattr(self, name)[rows] for name in Components.__dataclass_fields__))

    def step_time(self, values: Values) -> StepTime:
        """Return the time of the steps by its parts, of one profile's figures."""
        memory, compute = _of(values, "efficiency.memory"), _of(values, "efficiency.compute")
        share = _of(values, "overhead.tile_fraction")
        launch_s = _of(values, "overhead.step_s") + _of(values, "overhead.sequence_s") * self.num_sequences
        fixed_s = (
            self.has_launch * launch_s
            + self.has_linear * self.num_layers * _of(values, "overhead.layer_s")
            + self.communication_s
            + self.activation_s * (_of(values, "overhead.activation_passes") / memory)
        )
        arithmetic_s = (share * self.tiled_s + (1.0 - share) * self.untiled_s) / compute
        cache = values.get("attention.bandwidth_efficiency") or memory
        floor_s = self.num_layers * _of(values, "attention.floor_s")
        return StepTime(
            fixed_s=fixed_s,
            memory_s=self.memory_s / memory,
            compute_s=arithmetic_s + self.is_unpacked * _of(values, "overhead.unpack_s"),
            attention_memory_s=np.maximum(floor_s, self.cache_s / cache) * self.has_attention,
            attention_compute_s=self.attention_compute_s / compute,
            smooth_exponent=values.get("overhead.smooth_exponent"),
        )

    def time(self, values: Values) -> Floats:
        """Time of the steps at the nominal clock, s, [R]."""
        return self.step_time(values).at(1.0)

    def operate(self, values: Values, curve: PowerCurve, *, bandwidth: float, peak: float) -> Operation:
        """Clock, time and energy of one device under its cap, [R]."""
        compute_j, memory_j = self.work_energy(values, bandwidth=bandwidth, peak=peak)
        return run_under_cap(self.step_time(values), curve, compute_j=compute_j, memory_j=memory_j)

    def work_energy(self, values: Values, *, bandwidth: float, peak: float) -> tuple[Floats, Floats]:
        """Energy of the arithmetic at V = 1 and of the bytes moved, J, [R] each, of one device."""
        compute_j = self.flops * (_of(values, "power.compute_w") / peak)
        return compute_j, self.bytes * (_of(values, "power.memory_w") / bandwidth)


def components_of(measurements: Measurements, profile: RooflineProfile, *, tile_positions: int) -> Components:
    """Take the steps of a trace apart.

    Parameters
    ----------
    measurements
        Steps, without idle phases.
    profile
        Gives bandwidth, peak and links; its efficiencies and overheads do not matter.
    tile_positions
        The tile of ``tiled_s``.
    """
    lacks = {part: np.char.find(measurements.excludes, part) >= 0 for part in _ABSENT}
    whole = replace(measurements, excludes=_without_absent(measurements))
    costs = _Reference(whole, profile)
    plain = costs.at()
    has_linear = ~lacks["linear"]
    has_attention = ~lacks["attention"]
    devices = measurements.tensor_parallel_size.astype(np.float64)
    layers = np.array([float(one.num_layers) for one in measurements.models])[measurements.model]
    return Components(
        memory_s=plain.memory_s * has_linear + _TINY,
        tiled_s=costs.at(tile=tile_positions).compute_s * has_linear,
        untiled_s=plain.compute_s * has_linear,
        activation_s=(costs.at(passes=1.0).memory_s - plain.memory_s) * has_linear,
        cache_s=costs.at(neglects=("attention",)).attention_s * has_attention,
        attention_compute_s=costs.at(neglects=("kv_cache",)).attention_s * has_attention,
        communication_s=plain.communication_s * ~lacks["communication"] * has_linear,
        num_layers=layers,
        num_sequences=measurements.num_sequences.astype(np.float64),
        has_launch=~lacks["launch"] & has_linear,
        has_linear=has_linear,
        has_attention=has_attention,
        is_unpacked=(costs.at(unpack_s=1.0).compute_s > plain.compute_s + 0.5) & has_linear,
        flops=plain.flops / devices,
        bytes=plain.bytes / devices,
        num_devices=devices,
    )


_TINY = 1e-30
"""The smooth maximum is not defined where both sides are 0."""


def _without_absent(measurements: Measurements) -> np.ndarray:
    kept = [
        "+".join(part for part in one.split("+") if part and (part not in _ABSENT or part == "communication"))
        for one in measurements.excludes.tolist()
    ]
    return np.array(kept, dtype=np.str_)


class _Reference:
    """The cost of a trace's steps by profiles that differ in one figure."""

    def __init__(self, measurements: Measurements, profile: RooflineProfile) -> None:
        self._predictor = Predictor(measurements)
        self._profile = profile

    def at(
        self,
        *,
        tile: int = 1,
        passes: float = 0.0,
        unpack_s: float = 0.0,
        neglects: tuple[Effect, ...] = (),
    ) -> StepCosts:
        plain = self._profile.overhead.model_copy(
            update={
                "step_s": 0.0,
                "layer_s": 0.0,
                "sequence_s": 0.0,
                "draft_step_floor_s": None,
                "smooth_exponent": None,
                "tile_positions": tile,
                "tile_fraction": 1.0,
                "activation_passes": passes,
                "unpack_s": unpack_s,
            }
        )
        return self._predictor.costs(
            self._profile.model_copy(
                update={
                    "efficiency": type(self._profile.efficiency)(),
                    "overhead": plain,
                    "attention": type(self._profile.attention)(),
                    "weight_formats": {},
                    "neglects": neglects,
                    "power": None,
                }
            )
        )


def _of(values: Values, path: str) -> float:
    found = values.get(path)
    return 0.0 if found is None else found
