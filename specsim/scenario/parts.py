"""The blocks of a scenario: target, draft, hardware, workload, scheduler, price."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from specsim.config.base import Spec, refuse
from specsim.errors import ConfigError
from specsim.hardware import AcceleratorProfile, ModelSpec
from specsim.hardware.formats import Dtype
from specsim.scenario.kinds import DistributionsSpec
from specsim.speculation import RatesSpec
from specsim.workload import MAX_PROMPTS, ArrivalSpec, LengthsSpec, RequestClassSpec

MAX_SPECULATIVE_TOKENS = 256

CacheFormat = Literal["auto", "bfloat16", "float16", "fp8", "int8"]
"""Format of a KV cache in vLLM's words; ``auto`` is two bytes."""


class Deployment(Spec):
    """The target model and how it is run."""

    model: ModelSpec | None = None
    """A preset, a path to a config.json, or its fields; may be absent where cost counts target steps."""
    dtype: Dtype = "bfloat16"
    """Format of the weights; the arithmetic is bfloat16, or what the device has in its place."""
    kv_cache_dtype: CacheFormat = "auto"
    """Format of the KV cache; ``auto`` is two bytes."""
    tensor_parallel_size: int = Field(default=1, ge=1, le=64)
    """Devices that share each layer."""
    enable_expert_parallel: bool = False
    """Spread routed experts over the devices whole, those of the draft as well; else each is sliced."""
    enforce_eager: bool = False
    """Launch from the host, not from a captured graph, the draft as well; felt in all-reduces only."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        faults = [
            (name, f"changes nothing on one device; remove it, or set tensor_parallel_size{hint}")
            for name, is_set, hint in (
                ("enable_expert_parallel", self.enable_expert_parallel, ""),
                ("enforce_eager", self.enforce_eager, " (only the launch of all-reduces is told apart)"),
            )
            if is_set and self.tensor_parallel_size == 1
        ]
        if self.enable_expert_parallel and self.model is not None and not self.model.num_mixture_layers:
            faults.append(
                ("enable_expert_parallel", f"model '{self.model.name}' has no experts to spread over devices")
            )
        refuse(faults)
        return self


class SpeculativeConfig(Spec):
    """vLLM's ``speculative_config``, its keys as they are."""

    method: Literal[
        "draft_model", "ngram", "early_exit", "eagle", "eagle3", "medusa", "mtp", "mlp_speculator"
    ] = "draft_model"
    """How drafts are made; ``ngram`` looks them up in the text so far, on the host."""
    model: ModelSpec | None = None
    """Shape of the draft model or head: a preset, a path to a config.json, or its fields inline."""
    num_speculative_tokens: int = Field(ge=0, le=MAX_SPECULATIVE_TOKENS)
    """The most that a round drafts; 0 is the baseline, event for event."""
    draft_tensor_parallel_size: int = Field(default=1, ge=1, le=64)
    """Devices that share each layer of the draft."""
    quantization: Dtype | None = None
    """Format of the draft's weights; the target's where absent."""
    kv_cache_dtype: CacheFormat = "auto"
    """Format of the draft's KV cache."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Longest context of the draft, tokens."""
    prompt_lookup_max: int | None = Field(default=None, ge=1)
    """Longest n-gram looked up, tokens (ngram)."""
    prompt_lookup_min: int | None = Field(default=None, ge=1)
    """Shortest n-gram looked up, tokens (ngram)."""
    parallel_drafting: bool = False
    """All draft tokens in one pass of the draft."""
    num_speculative_tokens_per_batch_size: list[tuple[int, int, int]] | None = None
    """Lookahead by batch size: [lowest, highest, K], both ends included."""
    rejection_sample_method: Literal["standard", "block", "synthetic"] | None = None
    """``standard`` is token verification; ``synthetic`` takes acceptance from the rates below."""
    draft_sample_method: Literal["greedy", "probabilistic"] = "greedy"
    """How draft tokens are drawn; vLLM's default is greedy."""
    synthetic_acceptance_rates: list[Annotated[float, Field(ge=0, le=1)]] | None = None
    """Unconditional acceptance by position, non-increasing (synthetic)."""
    synthetic_acceptance_length: float | None = Field(default=None, ge=1)
    """Mean tokens a round, in [1, K + 1] (synthetic)."""

    @model_validator(mode="after")
    def _is_simulated(self) -> Self:
        unsimulated = {
            "parallel_drafting": self.parallel_drafting,
            "num_speculative_tokens_per_batch_size": self.num_speculative_tokens_per_batch_size,
            "max_model_len": self.max_model_len,
        }
        refuse(
            [
                (name, "is a key of vLLM that this version does not simulate; remove it")
                for name, value in unsimulated.items()
                if value
            ]
        )
        return self

    @model_validator(mode="after")
    def _has_synthetic_rates_if_asked_for(self) -> Self:
        given = [
            name
            for name in ("synthetic_acceptance_rates", "synthetic_acceptance_length")
            if getattr(self, name) is not None
        ]
        if self.rejection_sample_method != "synthetic":
            refuse([(name, "needs rejection_sample_method: synthetic") for name in given])
        elif len(given) == 1:
            refuse(self._synthetic_faults(given[0]))
        else:
            message = "synthetic needs one of synthetic_acceptance_rates and synthetic_acceptance_length"
            refuse([("rejection_sample_method", message)])
        return self

    @model_validator(mode="after")
    def _looks_up_if_asked_to(self) -> Self:
        refuse(self._lookup_faults())
        return self

    def _synthetic_faults(self, name: str) -> list[tuple[str, str]]:
        try:
            RatesSpec.model_validate({name: getattr(self, name)}).unconditional(self.num_speculative_tokens)
        except ValidationError as error:
            message = error.errors()[0]["msg"].removeprefix("Value error, ")
        except ConfigError as error:
            message = str(error)
        else:
            return []
        return [(name, message.removeprefix(f"{name}: "))]

    def _lookup_faults(self) -> list[tuple[str, str]]:
        given = {name: getattr(self, name) for name in ("prompt_lookup_min", "prompt_lookup_max")}
        faults = [
            (name, f"is a key of method ngram; the method is {self.method}")
            for name, value in given.items()
            if value is not None and self.method != "ngram"
        ]
        shortest, longest = given.values()
        if shortest is not None and longest is not None and shortest > longest:
            faults.append(("prompt_lookup_min", f"{shortest} is more than prompt_lookup_max, {longest}"))
        return faults


class Hardware(Spec):
    """The devices that run target and draft."""

    target: AcceleratorProfile
    """Device of the target: a profile's name or path, or its fields inline."""
    draft: Literal["target"] | AcceleratorProfile = "target"
    """Device of the draft: ``target``, or a profile for a device of its own."""


class MixtureClass(RequestClassSpec):
    """One class of a mixture, with its own distributions."""

    distributions: DistributionsSpec | None = None
    """Where p and q of this class come from; the scenario's where absent."""


class Workload(ArrivalSpec, LengthsSpec):
    """The requests: how many, how long, when."""

    classes: tuple[MixtureClass, ...] = ()
    """A mixture of classes; the lengths above serve where a class gives none."""

    @model_validator(mode="after")
    def _shares_sum_to_one(self) -> Self:
        faults = []
        total = sum(entry.share for entry in self.classes)
        if self.classes and abs(total - 1) > 1e-9:
            faults.append(("classes", f"the shares sum to {total:g}, they must sum to 1"))
        names = [entry.name for entry in self.classes]
        faults += [
            (f"classes.{number}.name", f"{name!r} is taken; every class needs a name of its own")
            for number, name in enumerate(names)
            if name in names[:number]
        ]
        for number, entry in enumerate(self.classes):
            try:
                self.lengths_of(entry)
            except ValidationError as error:
                for cause in error.errors():
                    raised = cause.get("ctx", {}).get("error")
                    found = raised.faults if isinstance(raised, ConfigError) else ()
                    faults += [(f"classes.{number}.{fault.path}", fault.message) for fault in found]
        refuse(faults)
        return self

    def lengths_of(self, entry: MixtureClass) -> LengthsSpec:
        """Return the lengths of a class: its own, and those above where it gives none."""
        names = set(LengthsSpec.model_fields)
        own = entry.model_dump(include=names, exclude_unset=True)
        return LengthsSpec.model_validate(self.model_dump(include=names) | own)


class Scheduler(Spec):
    """Limits of a step, as in vLLM."""

    max_num_seqs: int = Field(default=256, ge=1, le=MAX_PROMPTS)
    """Most sequences in a batch."""
    max_num_batched_tokens: int = Field(default=8192, ge=1, le=10**9)
    """Most prompt tokens in a prefill pass; longer prompts are split."""
    block_size: int = Field(default=16, ge=1, le=10**6)
    """Tokens a block of the KV cache; a sequence occupies whole blocks."""


class Cost(Spec):
    """What devices and electricity cost."""

    usd_per_hour: float | None = Field(default=None, ge=0, le=1e6)
    """All devices of the target together, US dollars an hour; absent: the price in their profile."""
    draft_usd_per_hour: float | None = Field(default=None, ge=0, le=1e6)
    """All devices of a draft that has its own, US dollars an hour; absent: the price in their profile."""
    usd_per_kwh: float | None = Field(default=None, gt=0, le=1e3)
    """Electricity, US dollars a kWh, on top of the devices; absent: their price includes it."""
