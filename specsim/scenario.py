"""A scenario: the whole input of a run, and the checks across its fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from specsim.config.base import Spec, refuse
from specsim.config import Document, expand, find, override, parse, read, validate
from specsim.config.catalog import Kind
from specsim.config.nodes import Items, Scalar
from specsim.hardware import AcceleratorProfile, ModelSpec
from specsim.hardware.formats import Dtype
from specsim.speculation import DISTRIBUTIONS, LOOKAHEAD_POLICIES, VERIFIERS, BuildContext, TraceSpec
from specsim.speculation.distributions import Distributions
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.verify.rule import Verifier
from specsim.workload import ArrivalSpec, LengthsSpec, RequestClassSpec

if TYPE_CHECKING:

    class DistributionsSpec(Spec):
        """Any registered kind of distributions."""

        kind: str

        def build(self, context: BuildContext) -> Distributions:
            """Return the distributions."""
            ...

    class LookaheadSpec(Spec):
        """Any registered lookahead policy."""

        kind: str

        def build(self, context: BuildContext) -> LookaheadPolicy:
            """Return the policy."""
            ...

    class VerifierSpec(Spec):
        """Any registered verification rule."""

        kind: str

        def build(self, context: BuildContext) -> Verifier:
            """Return the rule."""
            ...

else:
    DistributionsSpec = DISTRIBUTIONS.union()
    LookaheadSpec = LOOKAHEAD_POLICIES.union()
    VerifierSpec = VERIFIERS.union()

MAX_SPECULATIVE_TOKENS = 256

CacheFormat = Literal["auto", "bfloat16", "float16", "fp8", "int8"]
"""Format of a KV cache in vLLM's words; ``auto`` is two bytes."""

REFERENCES: dict[str, Kind] = {
    "target.model": "models",
    "speculative_config.model": "models",
    "hardware.target": "hardware_profiles",
    "hardware.draft": "hardware_profiles",
}
"""Keys whose value may be the name or path of another file, and the catalogue it is looked up in."""


class Deployment(Spec):
    """The target model and how it is run."""

    model: ModelSpec | None = None
    """A preset, a path to a config.json, or its fields inline; may be absent where cost is of kind ``unit``."""
    dtype: Dtype = "bfloat16"
    """Format of the weights, and of the arithmetic where the device has it."""
    kv_cache_dtype: CacheFormat = "auto"
    """Format of the KV cache; ``auto`` is two bytes."""
    tensor_parallel_size: int = Field(default=1, ge=1, le=64)
    """Devices that share each layer."""


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
    def _is_consistent(self) -> Self:
        unsimulated = {
            "parallel_drafting": self.parallel_drafting,
            "num_speculative_tokens_per_batch_size": self.num_speculative_tokens_per_batch_size,
            "max_model_len": self.max_model_len,
        }
        faults = [
            (name, "is a key of vLLM that this version does not simulate; remove it")
            for name, value in unsimulated.items()
            if value
        ]
        given = [
            name
            for name in ("synthetic_acceptance_rates", "synthetic_acceptance_length")
            if getattr(self, name) is not None
        ]
        if self.rejection_sample_method == "synthetic" and len(given) != 1:
            faults.append(
                (
                    "rejection_sample_method",
                    "synthetic needs one of synthetic_acceptance_rates and synthetic_acceptance_length",
                )
            )
        if self.rejection_sample_method != "synthetic":
            faults += [(name, "needs rejection_sample_method: synthetic") for name in given]
        refuse(faults)
        return self


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
        total = sum(entry.share for entry in self.classes)
        if self.classes and abs(total - 1) > 1e-9:
            raise ValueError(f"classes: the shares sum to {total:g}, they must sum to 1")
        names = [entry.name for entry in self.classes]
        if len(set(names)) < len(names):
            raise ValueError("classes: every class needs a name of its own")
        return self


class Scheduler(Spec):
    """Limits of a step, as in vLLM."""

    max_num_seqs: int = Field(default=256, ge=1)
    """Most sequences in a batch."""
    max_num_batched_tokens: int = Field(default=8192, ge=1)
    """Most prompt tokens in a prefill pass; longer prompts are split."""
    block_size: int = Field(default=16, ge=1)
    """Tokens a block of the KV cache; a sequence occupies whole blocks."""


class Cost(Spec):
    """What the devices cost."""

    usd_per_hour: float = Field(gt=0)
    """Price of all devices together, US dollars per hour."""


@dataclass(frozen=True, slots=True)
class RequestClass:
    """One class of requests as it is simulated."""

    name: str
    share: float
    lengths: LengthsSpec
    distributions: DistributionsSpec | None


class Scenario(Spec):
    """The whole input of a run."""

    name: str = Field(default="scenario", min_length=1)
    """Short name."""
    description: str = ""
    """The question that the scenario asks, in one sentence."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """One seed, one result."""
    target: Deployment = Deployment()
    """The model that is served."""
    speculative_config: SpeculativeConfig | None = None
    """vLLM's keys; absent or null: no speculation."""
    lookahead: LookaheadSpec = Field(default_factory=lambda: LOOKAHEAD_POLICIES["fixed"].model_validate({"kind": "fixed"}))
    """How many tokens a round drafts."""
    distributions: DistributionsSpec | None = None
    """Where p and q come from; required with speculation, there is no default acceptance."""
    verifier: VerifierSpec | None = None
    """Verification rule; excludes rejection_sample_method."""
    hardware: Hardware
    """Devices."""
    workload: Workload
    """Requests."""
    scheduler: Scheduler = Scheduler()
    """Limits of a step."""
    slo: dict[str, Annotated[float, Field(gt=0)]] = {}
    """Service objectives by metric, such as ``p99_ttft_ms: 200``."""
    cost: Cost | None = None
    """Prices."""
    shorten_last_draft: bool = False
    """Draft no more than may still be emitted; vLLM does not."""
    show_estimated_energy: bool = False
    """Show joules although they rest on guessed watts; they are marked."""

    @property
    def num_speculative_tokens(self) -> int:
        """Most draft tokens a round; 0 without speculation."""
        return self.speculative_config.num_speculative_tokens if self.speculative_config else 0

    @property
    def max_num_sequences(self) -> int:
        """Most sequences in a batch: users of a closed loop, as far as the scheduler lets them in."""
        return min(self.workload.max_concurrency or self.scheduler.max_num_seqs, self.scheduler.max_num_seqs)

    @property
    def is_synthetic(self) -> bool:
        """Acceptance comes from the rates in ``speculative_config``."""
        config = self.speculative_config
        return config is not None and config.rejection_sample_method == "synthetic"

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        refuse([*self._distribution_faults(), *self._model_faults(), *self._length_faults()])
        return self

    def _distribution_faults(self) -> list[tuple[str, str]]:
        classes = self.workload.classes
        lacking = [entry.name for entry in classes if entry.distributions is None]
        has_all = self.distributions is not None or (bool(classes) and not lacking)
        config = self.speculative_config
        faults = []
        if self.is_synthetic and (self.distributions is not None or len(lacking) < len(classes)):
            faults.append(
                ("distributions", "rejection_sample_method: synthetic stands for rates; give one, not both")
            )
        if self.num_speculative_tokens > 0 and not has_all and not self.is_synthetic:
            faults.append(
                (
                    "distributions",
                    "missing: there is no default acceptance, say where p and q come from"
                    f" (kind: {', '.join(DISTRIBUTIONS.kinds())})",
                )
            )
        if self.verifier is not None and config is not None and config.rejection_sample_method is not None:
            faults.append(("verifier", "excludes speculative_config.rejection_sample_method; give one"))
        return faults

    def _model_faults(self) -> list[tuple[str, str]]:
        faults = []
        config = self.speculative_config
        if self.hardware.target.kind != "unit" and self.target.model is None:
            faults.append(("target.model", "missing: name a preset, a path to a config.json, or its fields"))
        if config is None or config.num_speculative_tokens == 0:
            return faults
        draft_device = self.draft_profile
        if draft_device.kind != "unit" and config.method != "ngram" and config.model is None:
            faults.append(
                (
                    "speculative_config.model",
                    f"missing: method {config.method} needs the shape of its draft"
                    " (a preset, a path to a config.json, or its fields)",
                )
            )
        if config.method == "ngram" and config.model is not None:
            faults.append(("speculative_config.model", "method ngram has no draft model; remove one of them"))
        if (draft_device.kind == "unit") != (self.hardware.target.kind == "unit"):
            faults.append(("hardware.draft", "kind unit counts in target steps: use it for both devices or none"))
        return faults

    def _length_faults(self) -> list[tuple[str, str]]:
        return [
            (
                f"workload.{key}",
                f"missing{f' for class {entry.name}' if entry.name else ''}:"
                " only a recorded trace brings its own lengths",
            )
            for entry in self.request_classes()
            if not isinstance(entry.distributions, TraceSpec)
            for key in ("prompt_tokens", "output_tokens")
            if getattr(entry.lengths, key) is None
        ]

    def request_classes(self) -> tuple[RequestClass, ...]:
        """Classes of requests with their lengths and distributions; one nameless class without a mixture."""
        common = {name: getattr(self.workload, name) for name in LengthsSpec.model_fields}
        distributions = self._rates_of_synthetic() or self.distributions
        if not self.workload.classes:
            return (RequestClass("", 1.0, LengthsSpec.model_validate(common), distributions),)
        return tuple(
            RequestClass(
                entry.name,
                entry.share,
                LengthsSpec.model_validate(common | entry.model_dump(include=set(LengthsSpec.model_fields), exclude_unset=True)),
                entry.distributions or distributions,
            )
            for entry in self.workload.classes
        )

    def _rates_of_synthetic(self) -> DistributionsSpec | None:
        config = self.speculative_config
        if config is None or not self.is_synthetic:
            return None
        given = {
            "synthetic_acceptance_rates": config.synthetic_acceptance_rates,
            "synthetic_acceptance_length": config.synthetic_acceptance_length,
        }
        return DISTRIBUTIONS["rates"].model_validate(
            {"kind": "rates"} | {key: value for key, value in given.items() if value is not None}
        )

    def trace_files(self) -> tuple[str, ...]:
        """Paths of the recorded traces that the requests replay, class by class."""
        return tuple(
            entry.distributions.path
            for entry in self.request_classes()
            if isinstance(entry.distributions, TraceSpec)
        )

    def build_context(self) -> BuildContext:
        """What the specs of distributions, policy and verifier are built with."""
        config = self.speculative_config
        return BuildContext(
            num_speculative_tokens=self.num_speculative_tokens,
            draft_sample_method=config.draft_sample_method if config else "greedy",
        )

    @property
    def verifier_spec(self) -> VerifierSpec:
        """Verification rule: the named one, else that of ``rejection_sample_method``, else token."""
        if self.verifier is not None:
            return self.verifier
        method = self.speculative_config.rejection_sample_method if self.speculative_config else None
        kind = "block" if method == "block" else "token"
        return VERIFIERS[kind].model_validate({"kind": kind})

    @property
    def draft_profile(self) -> AcceleratorProfile:
        """Profile of the device that drafts."""
        return self.hardware.target if isinstance(self.hardware.draft, str) else self.hardware.draft


def load_scenario(source: str | Path, *, overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario by name, path or YAML text.

    Parameters
    ----------
    source
        Name of a shipped scenario, path of a file, or YAML text (more than one line).
    overrides
        Settings such as ``workload.num_prompts=8``, applied in order.

    Raises
    ------
    ConfigError
        Every fault of the scenario and of the files that it names.

    Examples
    --------
    >>> load_scenario("two_token_example").num_speculative_tokens
    4
    """
    if isinstance(source, str) and "\n" in source:
        return scenario_of(parse(source), overrides=overrides)
    return scenario_of(read(find("scenarios", str(source))), overrides=overrides)


def scenario_of(document: Document, *, overrides: Sequence[str] = ()) -> Scenario:
    """Validate a document as a scenario, with the files that it names and settings put over it.

    A setting may name a file (``hardware.target=rtx-4090``) or change a figure inside a named one
    (``hardware.target.memory.bandwidth_bytes_per_s=4e12``).
    """
    document = expand(document, REFERENCES)
    for setting in overrides:
        document = expand(override(document, [setting]), REFERENCES)
    return validate(Scenario, _with_found_traces(document))


def _with_found_traces(document: Document) -> Document:
    """Return the document with traces that lie beside its file named by their full path."""
    folder = Path(document.file).parent
    if not Path(document.file).is_file():
        return document
    classes = document.get("workload.classes")
    count = len(classes.items) if isinstance(classes, Items) else 0
    for owner in ("distributions", *(f"workload.classes.{number}.distributions" for number in range(count))):
        node = document.get(f"{owner}.path")
        if isinstance(node, Scalar) and isinstance(node.value, str) and (folder / node.value).is_file():
            found = Scalar(str((folder / node.value).resolve()), node.place)
            document = document.put(f"{owner}.path", found)
    return document
