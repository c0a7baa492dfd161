"""Roofline profiles: a device as bandwidth, peak arithmetic, efficiencies, overheads and power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from specsim.config.base import refuse
from specsim.errors import ConfigError
from specsim.hardware.accelerator import Accelerator, Effect, Memory, Placement, accelerators
from specsim.hardware.formats import ACTIVATION_BYTES, PLAIN_ARITHMETIC, Dtype, is_low_bit
from specsim.hardware.limit import Limit
from specsim.hardware.model import ModelSpec
from specsim.hardware.parallel import AllReduce, Links, num_cache_shards
from specsim.hardware.provenance import is_guess
from specsim.hardware.roofline import Coefficients, RooflineCosts
from specsim.hardware.roofline_figures import (
    Attention,
    DeviceEnergy,
    Efficiency,
    Overhead,
    Valid,
    WeightFormat,
)
from specsim.hardware.step import CostModel
from specsim.hardware.switched import SwitchedCosts
from specsim.hardware.work import WorkCounter
from specsim.units import FlopsPerSecond

_RIDGE_TOLERANCE = 0.01
_BYTES_PER_RIDGE_WEIGHT = 2.0


@accelerators.register
class RooflineProfile(Accelerator):
    """A device whose steps take t = c0 + L·τ + [memory^p + compute^p]^(1/p) + attention + c_B·B.

    ``parallel_positions`` and the peak of the plain arithmetic are two views of one number: the
    positions that one pass over two-byte weights serves before arithmetic, not memory, sets the time,
    peak·e_F·2/(2·bandwidth·e_B). Give either; given both must agree within 1 %.

    Examples
    --------
    >>> profile = RooflineProfile.model_validate(
    ...     {"name": "x", "memory": {"bandwidth_bytes_per_s": "1 TB/s", "capacity_bytes": "24 GB"},
    ...      "parallel_positions": 200}
    ... )
    >>> profile.peak("bfloat16")
    200000000000000.0
    """

    computes_communication: ClassVar[bool] = True

    kind: Literal["roofline"] = "roofline"
    """Kind of profile."""
    memory: Memory
    """Memory of one device."""
    parallel_positions: float | None = Field(default=None, gt=0)
    """Positions a pass serves before arithmetic sets its time, at two-byte weights; left out: by the peak.
    Set over a profile that states its peaks (`--set`, `--vary`), it moves them all by one factor."""
    peak_flops_per_s: Mapping[Dtype, Annotated[FlopsPerSecond, Field(gt=0)]] = Field(default_factory=dict)
    """Dense peak of the datasheet by format of the arithmetic, FLOP/s; left out: from parallel positions."""
    efficiency: Efficiency = Efficiency()
    """Achieved fractions; left out: 1."""
    overhead: Overhead = Overhead()
    """Overheads; left out: none."""
    attention: Attention = Attention()
    """Attention; left out: no floor, and the bandwidth of weights."""
    weight_formats: Mapping[Dtype, WeightFormat] = Field(default_factory=dict)
    """Formats of weights whose kernels behave otherwise."""
    links: Links = Links()
    """Links to other devices; left out: one device only."""
    device_energy: DeviceEnergy | None = None
    """Energy of the chips alone; left out: not known."""
    neglects: tuple[Effect, ...] = ()
    """Effects left out of the cost."""
    valid: Valid = Valid()
    """Where the profile was checked; left out: anywhere."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse([*self._ridge_faults(), *self._clock_faults()])
        return self

    def _ridge_faults(self) -> list[tuple[str, str]]:
        has_peak = any(dtype in self.peak_flops_per_s for dtype in PLAIN_ARITHMETIC)
        if self.parallel_positions is None:
            known = ", ".join(PLAIN_ARITHMETIC)
            return (
                [] if has_peak else [("", f"give parallel_positions or peak_flops_per_s of one of {known}")]
            )
        if has_peak:
            of_peak = self.ridge_positions
            if abs(of_peak / self.parallel_positions - 1.0) > _RIDGE_TOLERANCE:
                message = f"{self.parallel_positions:g} disagrees with {of_peak:.4g} by peak and bandwidth"
                return [("parallel_positions", f"{message}; give one of them, or both within 1 %")]
        return []

    def _clock_faults(self) -> list[tuple[str, str]]:
        if self.power is None:
            return []
        highest = self.power.curve.max_fraction
        given = [self.efficiency.compute, *self.efficiency.compute_by_dtype.values()]
        given += [one.compute_efficiency for one in self.weight_formats.values() if one.compute_efficiency]
        fastest = max(one.value for one in given) * highest
        if fastest <= 1.0:
            return []
        message = f"{highest:g} times the compute efficiency exceeds the datasheet peak ({fastest:.3g} of it)"
        return [("power.clock.max_fraction", message)]

    @property
    def is_device_energy_estimated(self) -> bool:
        """The floor of the chips' energy rests on a guess; False where there is none."""
        given = self.device_energy.model_dump() if self.device_energy else {}
        return any(is_guess(self.source_of(f"device_energy.{key}")) for key in given)

    @property
    def plain_dtype(self) -> Dtype:
        """Format of the arithmetic on weights of any format."""
        given = next((dtype for dtype in PLAIN_ARITHMETIC if dtype in self.peak_flops_per_s), None)
        return given or PLAIN_ARITHMETIC[0]

    @property
    def draft_launch_s(self) -> float:
        """Time to launch one draft pass, s: ``draft_step_floor_s``, or ``step_s`` where that is left out."""
        floor_s = self.overhead.draft_step_floor_s
        return self.overhead.step_s if floor_s is None else floor_s

    @property
    def ridge_positions(self) -> float:
        """Positions that a pass over two-byte weights serves before arithmetic sets its time."""
        if not self.peak_flops_per_s:
            assert self.parallel_positions is not None
            return self.parallel_positions
        achieved_flops = self.peak(self.plain_dtype) * self.compute_efficiency(self.plain_dtype)
        achieved_bytes = self.memory.bandwidth_bytes_per_s * self.efficiency.memory.value
        return achieved_flops * _BYTES_PER_RIDGE_WEIGHT / (2.0 * achieved_bytes)

    def peak(self, dtype: Dtype) -> float:
        """Return the datasheet peak of one format of arithmetic on one device, FLOP/s.

        Raises
        ------
        ConfigError
            Where the profile states none.
        """
        if dtype in self.peak_flops_per_s:
            return self.peak_flops_per_s[dtype]
        if self.parallel_positions is not None and dtype == self.plain_dtype:
            achieved_bytes = self.memory.bandwidth_bytes_per_s * self.efficiency.memory.value
            achieved_flops = self.parallel_positions * 2.0 * achieved_bytes / _BYTES_PER_RIDGE_WEIGHT
            return achieved_flops / self.compute_efficiency(dtype)
        known = ", ".join(self.peak_flops_per_s) or self.plain_dtype
        raise ConfigError(f"profile '{self.name}' has no {dtype} arithmetic (peak_flops_per_s: {known})")

    def compute_efficiency(self, dtype: Dtype) -> float:
        """Return the achieved fraction of the peak of one format of arithmetic."""
        return self.efficiency.compute_by_dtype.get(dtype, self.efficiency.compute).value

    def arithmetic(self, placement: Placement) -> Dtype:
        """Return the format of a placement's arithmetic."""
        if placement.compute_dtype is not None:
            return placement.compute_dtype
        return "float32" if placement.weight_dtype == "float32" else self.plain_dtype

    def limit(self, placement: Placement, *, basis: Literal["board", "device"] = "board") -> Limit:
        """Return the physical limit of a placement.

        Parameters
        ----------
        placement
            Number formats and devices.
        basis
            Joules by the board's own slopes (ε_B = memory_w/bandwidth, ε_F = compute_w/peak), or by the
            chips alone (``device_energy``), a floor that no board reaches.

        Raises
        ------
        ConfigError
            ``device`` where the profile states no energy of the chips.
        """
        devices = placement.tensor_parallel_size
        peak = self.peak(self.arithmetic(placement))
        bandwidth = self.memory.bandwidth_bytes_per_s
        byte_j = self.power.memory_w / bandwidth if self.power else 0.0
        flop_j = self.power.compute_w / peak if self.power else 0.0
        if basis == "device":
            if self.device_energy is None:
                raise ConfigError(f"profile '{self.name}' has no device_energy")
            byte_j, flop_j = self.device_energy.byte_j, self.device_energy.flop_j
        return Limit(
            bandwidth_bytes_per_s=devices * bandwidth,
            peak_flops_per_s=devices * peak,
            energy_per_byte_j=byte_j,
            energy_per_flop_j=flop_j,
            idle_w=devices * self.idle_w,
        )

    def build(self, model: ModelSpec | None, placement: Placement) -> CostModel:
        """Return the roofline of one placement."""
        if model is None:
            raise ConfigError(f"profile '{self.name}' needs the shape of the model that it runs")
        counter = WorkCounter(model, placement, neglects=self.neglects)
        weights = self.weight_formats.get(placement.weight_dtype, WeightFormat())
        own = RooflineCosts(self._coefficients(model, placement, weights), counter, name=self.name)
        if weights.max_positions is None:
            return own
        usual = self._coefficients(model, placement, WeightFormat())
        many = RooflineCosts(usual, counter, name=self.name)
        return SwitchedCosts(own, many, max_positions=weights.max_positions)

    def _coefficients(self, model: ModelSpec, placement: Placement, weights: WeightFormat) -> Coefficients:
        devices = placement.tensor_parallel_size
        over, bandwidth, power = self.overhead, self.memory.bandwidth_bytes_per_s, self.power
        arithmetic = self.arithmetic(placement)
        peak = self.peak(arithmetic)
        memory = weights.memory_efficiency or self.efficiency.memory
        compute = self.compute_efficiency(arithmetic)
        if weights.compute_efficiency is not None and arithmetic == self.plain_dtype:
            compute = weights.compute_efficiency.value
        cache = self.attention.bandwidth_efficiency or self.efficiency.memory
        is_unpacked = is_low_bit(placement.weight_dtype) and arithmetic != placement.weight_dtype
        rate = weights.unpack_weights_per_s
        has_attention = "attention" not in self.neglects
        # The host prepares a whole round once, for the target; a draft pass is only launched.
        is_draft = placement.role == "draft"
        launch_s = self.draft_launch_s if is_draft else over.step_s
        return Coefficients(
            num_devices=devices,
            launch_s=launch_s + model.num_layers * over.layer_s,
            sequence_s=0.0 if is_draft else over.sequence_s,
            memory_bytes_per_s=bandwidth * memory.value,
            flops_per_s=peak * compute,
            smooth_exponent=weights.smooth_exponent or over.smooth_exponent,
            tile_positions=weights.tile_positions or over.tile_positions,
            tile_fraction=over.tile_fraction,
            activation_bytes=over.activation_passes * _activation_bytes(model, devices),
            unpack_s=over.unpack_s if is_unpacked and rate is None else 0.0,
            unpack_weight_s=1.0 / rate if is_unpacked and rate is not None else 0.0,
            attention_floor_s=model.num_layers * self.attention.floor_s if has_attention else 0.0,
            attention_bytes_per_s=bandwidth * cache.value,
            attention_flops_per_s=self.peak(self.plain_dtype) * self.compute_efficiency(self.plain_dtype),
            cache_copies=devices / num_cache_shards(model, devices),
            allreduce=self._allreduce(placement),
            is_expert_parallel=placement.is_expert_parallel,
            power=power.curve if power else None,
            guessed_watts=frozenset(self.guessed_watts),
            byte_j=power.memory_w / bandwidth if power else 0.0,
            flop_j=power.compute_w / peak if power else 0.0,
            limit=self.limit(placement),
            device_limit=self.limit(placement, basis="device") if self.device_energy else None,
            valid_positions=self.valid.num_positions,
            valid_context=self.valid.context_tokens,
        )

    def _allreduce(self, placement: Placement) -> AllReduce | None:
        devices = placement.tensor_parallel_size
        if devices == 1:
            return None
        return self.links.allreduce_of(devices, is_eager=placement.is_eager, device=self.name)


def _activation_bytes(model: ModelSpec, num_devices: int) -> float:
    """Bytes of one position's activations in all layers, on one device: residual stream and feed-forward."""
    elements = model.hidden_size + model.intermediate_size / num_devices
    return model.num_layers * elements * ACTIVATION_BYTES
