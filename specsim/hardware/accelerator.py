"""What every kind of accelerator profile has in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from specsim.config.base import Spec, refuse
from specsim.errors import ConfigError
from specsim.hardware.energy import Power
from specsim.hardware.formats import CacheDtype, Dtype
from specsim.hardware.model import ModelSpec
from specsim.hardware.provenance import FittedOn, Source, Sources, is_guess, source_of
from specsim.hardware.step import CostModel
from specsim.registry import Registry
from specsim.units import Bytes, BytesPerSecond

Role: TypeAlias = Literal["target", "draft"]
"""What a model does in a round: a draft pays a launch instead of the host's work of a whole step."""

Effect: TypeAlias = Literal["kv_cache", "prefill", "attention"]
"""What a profile may leave out: the cache's bytes, all work on prompts, attention's time and FLOPs."""

accelerators = Registry("kind of accelerator profile", group="specsim.accelerators")


class Memory(Spec):
    """Memory of one device."""

    bandwidth_bytes_per_s: BytesPerSecond = Field(gt=0)
    """Bandwidth of the datasheet, bytes/s."""
    capacity_bytes: Bytes = Field(gt=0)
    """Capacity, bytes."""


class Price(Spec):
    """Price of one device."""

    usd_per_hour: float = Field(ge=0)
    """US dollars an hour, rented or written off."""


class Placement(Spec):
    """How one model runs on a device: role, devices and number formats."""

    role: Role = "target"
    """Target or draft."""
    tensor_parallel_size: int = Field(default=1, ge=1, le=4096)
    """Devices that share each layer."""
    is_expert_parallel: bool = False
    """The routed experts are spread over the devices whole, not sliced."""
    is_eager: bool = False
    """Kernels are launched one by one from the host, not from a captured graph."""
    weight_dtype: Dtype = "bfloat16"
    """Format of the weights."""
    compute_dtype: Dtype | None = None
    """Format of the arithmetic; left out: the first of bfloat16, float16, float32 that the device has."""
    kv_dtype: CacheDtype = "bfloat16"
    """Format of the KV cache."""


class Accelerator(Spec):
    """Base of all kinds of profile: name, memory, power, price and where the figures come from."""

    computes_energy: ClassVar[bool] = True
    """The kind turns power into energy."""
    computes_communication: ClassVar[bool] = False
    """The kind knows launches and messages between devices, so that they can be chosen."""

    kind: str
    """Kind of profile."""
    name: str = Field(min_length=1)
    """Name in tables and messages."""
    description: str = ""
    """One sentence for lists."""
    memory: Memory | None = None
    """Memory of one device; left out: nothing is checked against it."""
    power: Power | None = None
    """Power of one device; left out: no energy is computed."""
    price: Price | None = None
    """Price of one device."""
    provenance: Sources = Field(default_factory=dict)
    """Sources by the dotted path of a figure; that of a key covers all below it."""
    fitted: FittedOn | None = None
    """What the profile was calibrated on; left out: datasheet figures."""

    @property
    def has_power(self) -> bool:
        """Energy is computed; without it every energy is 0."""
        return self.power is not None

    @property
    def guessed_watts(self) -> tuple[str, ...]:
        """Figures of ``power`` that are guesses, tagged so or without a source, such as ``compute_w``."""
        if self.power is None:
            return ()
        given = self.power.model_dump(exclude_unset=True, exclude_none=True)
        clock = given.pop("clock", {})
        paths = [*given, *(f"clock.{key}" for key in clock)]
        return tuple(path for path in paths if is_guess(self.source_of(f"power.{path}")))

    @property
    def is_power_estimated(self) -> bool:
        """The energy rests on a guess, in part or altogether."""
        return bool(self.guessed_watts)

    @property
    def guessed_waiting_w(self) -> float:
        """The guessed part of ``waiting_w``, W: all of it or nothing."""
        has_own = self.power is not None and self.power.idle_context_w is not None
        figure = "idle_context_w" if has_own else "idle_w"
        return self.waiting_w if figure in self.guessed_watts else 0.0

    @property
    def is_device_energy_estimated(self) -> bool:
        """The floor of the chips' energy rests on a guess; False where there is none."""
        return False

    @property
    def is_fitted(self) -> bool:
        """Step times were calibrated on measurements."""
        return self.fitted is not None and self.fitted.fits_time

    @property
    def held_out_error(self) -> float | None:
        """Mean relative error of step time on rows not fitted to; None where nothing was fitted."""
        return None if self.fitted is None else self.fitted.held_out_error

    @property
    def held_out_power_error(self) -> float | None:
        """Mean relative error of power on rows left out of the fit; None where power was not fitted."""
        return None if self.fitted is None else self.fitted.held_out_power_error

    @property
    def idle_w(self) -> float:
        """Power without a model loaded, W; 0 where the profile has no power."""
        return 0.0 if self.power is None else self.power.idle_w

    @property
    def waiting_w(self) -> float:
        """Power while waiting with a model loaded, W; 0 where the profile has no power."""
        return 0.0 if self.power is None else self.power.waiting_w

    @property
    def draft_launch_s(self) -> float:
        """Time to launch one draft pass, s; also that of a lookup on the host."""
        return 0.0

    @model_validator(mode="after")
    def _check_energy(self) -> Self:
        if self.power is not None and not self.computes_energy:
            refuse([("power", f"kind {self.kind} computes no energy; remove it")])
        return self

    def source_of(self, path: str) -> Source | None:
        """Return the source of a figure by its dotted path, such as ``memory.capacity_bytes``."""
        return source_of(self.provenance, path)

    def cost_model(
        self,
        model: ModelSpec | None,
        *,
        role: Role = "target",
        tensor_parallel_size: int = 1,
        is_expert_parallel: bool = False,
        is_eager: bool = False,
        weight_dtype: Dtype = "bfloat16",
        compute_dtype: Dtype | None = None,
        kv_dtype: CacheDtype = "bfloat16",
    ) -> CostModel:
        """Return the cost of one model's steps on this device.

        Parameters
        ----------
        model
            The model; None for a kind that asks for no shape (``unit``).
        role
            A draft pays ``overhead.draft_step_floor_s`` instead of the host's work of a whole step.
        tensor_parallel_size
            Devices that share each layer.
        is_expert_parallel
            Routed experts are spread over the devices whole.
        is_eager
            Kernels are launched from the host, not from a captured graph.
        weight_dtype, compute_dtype, kv_dtype
            Number formats of the weights, the arithmetic and the KV cache. Without ``compute_dtype``
            the arithmetic is bfloat16 where the device has it, whatever the weights' format.

        Raises
        ------
        ConfigError
            Where the profile lacks a figure that this placement needs.
        """
        placement = Placement(
            role=role,
            tensor_parallel_size=tensor_parallel_size,
            is_expert_parallel=is_expert_parallel,
            is_eager=is_eager,
            weight_dtype=weight_dtype,
            compute_dtype=compute_dtype,
            kv_dtype=kv_dtype,
        )
        return self.place(model, placement)

    def place(self, model: ModelSpec | None, placement: Placement) -> CostModel:
        """Return the cost of one model's steps, placed as said; see ``cost_model``.

        Raises
        ------
        ConfigError
            Where the model, or this kind of profile, has nothing that the placement speaks of.
        """
        if placement.is_expert_parallel and model is not None and not model.num_mixture_layers:
            raise ConfigError(f"model '{model.name}' has no experts to spread over devices")
        chosen = {"expert parallelism": placement.is_expert_parallel, "eager launch": placement.is_eager}
        for choice, is_chosen in chosen.items():
            if is_chosen and not self.computes_communication:
                raise ConfigError(f"profile '{self.name}' of kind {self.kind} does not tell {choice} apart")
        return self.build(model, placement)

    @abstractmethod
    def build(self, model: ModelSpec | None, placement: Placement) -> CostModel:
        """Return the cost model of one placement."""
