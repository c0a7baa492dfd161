"""A scenario: the whole input of a run, and the checks across its blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self, cast

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from specsim.config.base import Spec, refuse
from specsim.config.validate import nearest
from specsim.errors import ConfigError
from specsim.hardware import AcceleratorProfile
from specsim.scenario.kinds import (
    DistributionsSpec,
    DraftSourceSpec,
    LookaheadSpec,
    VerifierSpec,
    chain_draft,
    fixed_lookahead,
    rates,
    verifier_named,
)
from specsim.scenario.parts import Cost, Deployment, Hardware, Scheduler, SpeculativeConfig, Workload
from specsim.speculation import DISTRIBUTIONS, BuildContext, NgramSpec, RatesSpec, TraceSpec
from specsim.workload import LengthsSpec

_STATISTICS = ("mean", "median", "std", "p90", "p99")
_LATENCIES = ("ttft", "tpot", "itl", "e2el")


def _objective(metric: str) -> str:
    """Return the metric of an objective as it is.

    Raises
    ------
    ValueError
        If it is none that a limit can be put on.
    """
    known = [f"{statistic}_{latency}_ms" for latency in _LATENCIES for statistic in _STATISTICS]
    if metric in known:
        return metric
    near = nearest(metric, known)
    meant = f"did you mean '{near}'? " if near else ""
    statistics, latencies = ", ".join(_STATISTICS), ", ".join(_LATENCIES)
    raise ValueError(
        f"unknown metric ({meant}allowed: {{{statistics}}}_{{{latencies}}}_ms, as in 'p99_ttft_ms: 200')"
    )


_Objective = Annotated[
    str,
    AfterValidator(_objective),
    WithJsonSchema({"type": "string", "pattern": f"^({'|'.join(_STATISTICS)})_({'|'.join(_LATENCIES)})_ms$"}),
]


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
    lookahead: LookaheadSpec = Field(default_factory=fixed_lookahead)
    """How many tokens a round drafts."""
    distributions: DistributionsSpec | None = None
    """Where p and q come from; required with speculation, there is no default acceptance."""
    draft_source: DraftSourceSpec | None = None
    """Who drafts where p and q are known after any prefix: chain, tree, lookup; a chain if absent."""
    verifier: VerifierSpec | None = None
    """Verification rule; excludes rejection_sample_method."""
    hardware: Hardware
    """Devices."""
    workload: Workload
    """Requests."""
    scheduler: Scheduler = Scheduler()
    """Limits of a step."""
    slo: dict[_Objective, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Service objectives by metric, such as ``p99_ttft_ms: 200``."""
    cost: Cost | None = None
    """Prices of devices and electricity, for the cost of a token."""
    shorten_last_draft: bool = False
    """Draft no more than may still be emitted; vLLM does not."""
    show_estimated_energy: bool = False
    """Show joules although they rest on guessed watts for more than half; they are marked."""

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

    def _distribution_faults(self) -> list[tuple[str, str]]:
        classes = self.workload.classes
        lacking = [entry.name for entry in classes if entry.distributions is None]
        has_all = self.distributions is not None or (bool(classes) and not lacking)
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
        return faults

    def _rate_faults(self) -> list[tuple[str, str]]:
        """Find rates that do not cover the draft tokens of a round."""
        named = {"distributions": self.distributions}
        for number, entry in enumerate(self.workload.classes):
            named[f"workload.classes.{number}.distributions"] = entry.distributions
        faults = []
        for path, distributions in named.items():
            try:
                if isinstance(distributions, RatesSpec):
                    distributions.unconditional(self.num_speculative_tokens)
            except ConfigError as error:
                key, _, message = str(error).partition(": ")
                faults.append((f"{path}.{key}", message))
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
        shared, drafting = self.target.tensor_parallel_size, config.draft_tensor_parallel_size
        if self.hardware.draft == "target" and draft_device.kind != "unit" and drafting > shared:
            faults.append(
                (
                    "speculative_config.draft_tensor_parallel_size",
                    f"{drafting} is more than the {shared} of target.tensor_parallel_size, on whose devices"
                    " the draft runs; name its own under hardware.draft",
                )
            )
        if (draft_device.kind == "unit") != (self.hardware.target.kind == "unit"):
            faults.append(
                ("hardware.draft", "kind unit counts in target steps: use it for both devices or none")
            )
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

    def _price_faults(self) -> list[tuple[str, str]]:
        if self.cost is None or self.cost.draft_usd_per_hour is None or self.hardware.draft != "target":
            return []
        message = "the draft has no devices of its own; remove it, or name them under hardware.draft"
        return [("cost.draft_usd_per_hour", message)]

    @model_validator(mode="after")
    def _knows_acceptance(self) -> Self:
        refuse(self._distribution_faults())
        return self

    @model_validator(mode="after")
    def _rates_cover_the_drafts(self) -> Self:
        refuse(self._rate_faults())
        return self

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        config = self.speculative_config
        if self.verifier is not None and config is not None and config.rejection_sample_method is not None:
            refuse([("verifier", "excludes speculative_config.rejection_sample_method; give one")])
        return self

    @model_validator(mode="after")
    def _has_models(self) -> Self:
        refuse(self._model_faults())
        return self

    @model_validator(mode="after")
    def _knows_lengths(self) -> Self:
        refuse(self._length_faults())
        return self

    @model_validator(mode="after")
    def _prices_what_there_is(self) -> Self:
        refuse(self._price_faults())
        return self

    def request_classes(self) -> tuple[RequestClass, ...]:
        """Classes of requests with their lengths and distributions; one nameless class without a mixture."""
        distributions = self._rates_of_synthetic() or self.distributions
        if not self.workload.classes:
            return (RequestClass("", 1.0, self.workload, distributions),)
        return tuple(
            RequestClass(
                entry.name,
                entry.share,
                self.workload.lengths_of(entry),
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
        return rates(**{key: value for key, value in given.items() if value is not None})

    def trace_files(self) -> tuple[str, ...]:
        """Paths of the recorded traces and n-gram counts that the requests rest on, class by class."""
        kinds = [entry.distributions for entry in self.request_classes()]
        # Specs of kinds have no common type that names a file.
        return tuple(
            cast("TraceSpec", kind).path for kind in kinds if isinstance(kind, TraceSpec | NgramSpec)
        )

    def build_context(self) -> BuildContext:
        """Return what the specs of distributions, policy and verifier are built with."""
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
        return verifier_named("block" if method == "block" else "token")

    @property
    def draft_source_spec(self) -> DraftSourceSpec:
        """Draft source: the named one, else a chain."""
        return self.draft_source or chain_draft()

    @property
    def draft_profile(self) -> AcceleratorProfile:
        """Profile of the device that drafts."""
        return self.hardware.target if isinstance(self.hardware.draft, str) else self.hardware.draft
