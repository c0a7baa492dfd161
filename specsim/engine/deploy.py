"""From a scenario to what serves it: target and draft on their devices, and whether they fit there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specsim.engine.draft_cache import FirstPass
from specsim.hardware import Accelerator, CostModel, ModelSpec, Placement
from specsim.hardware.formats import CacheDtype
from specsim.hardware.limited import LimitedCosts
from specsim.hardware.lookup import HostLookup
from specsim.hardware.memory import Resident, check_fit, plan_memory
from specsim.scenario import Scenario

_CACHE_DTYPES: dict[str, CacheDtype] = {
    "auto": "bfloat16",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "fp8": "float8",
    "int8": "int8",
}

_FIRST_PASSES: dict[str, FirstPass] = {
    "draft_model": "unseen",
    "eagle": "emitted",
    "eagle3": "emitted",
    "mtp": "emitted",
    # It reads and writes the target's cache.
    "early_exit": "newest",
    # They read the last hidden state, no cache.
    "medusa": "newest",
    "mlp_speculator": "newest",
    "ngram": "newest",
}


@dataclass(frozen=True, slots=True)
class Deployed:
    """One model on its devices."""

    profile: Accelerator
    cost: CostModel
    resident: Resident | None
    """What it keeps in their memory; None for a lookup, or where the cost model knows no shapes."""
    num_devices: int
    """Devices that work during its passes; 0 where the host does."""
    has_own_devices: bool
    """It runs on devices of its own, not on the target's."""
    first_pass: FirstPass = "newest"
    """What it takes in at the start of a round, as a draft."""

    @property
    def prefills(self) -> bool:
        """It has a cache that a new prompt must fill."""
        return self.num_devices > 0

    @property
    def waiting_w(self) -> float:
        """Power of all its devices while they wait with a model loaded, W."""
        return self.num_devices * self.profile.waiting_w

    @property
    def guessed_waiting_w(self) -> float:
        """The part of it that is a guess, W."""
        return self.num_devices * self.profile.guessed_waiting_w


def deploy_target(scenario: Scenario) -> Deployed:
    """Return the target on its devices."""
    target = scenario.target
    placement = Placement(
        role="target",
        tensor_parallel_size=target.tensor_parallel_size,
        is_expert_parallel=target.enable_expert_parallel,
        is_eager=target.enforce_eager,
        weight_dtype=target.dtype,
        kv_dtype=_CACHE_DTYPES[target.kv_cache_dtype],
    )
    return _deployed(scenario.hardware.target, target.model, placement, has_own_devices=True)


def deploy_draft(scenario: Scenario) -> Deployed | None:
    """Return the draft on its devices, or None where nothing is drafted."""
    config, profile = scenario.speculative_config, scenario.draft_profile
    if config is None or config.num_speculative_tokens == 0:
        return None
    if config.method == "ngram" and profile.kind != "unit":
        lookup = HostLookup(lookup_s=profile.draft_launch_s)
        return Deployed(profile, lookup, None, num_devices=0, has_own_devices=False)
    size, model = config.draft_tensor_parallel_size, config.model
    has_experts = model is not None and model.num_mixture_layers > 0
    placement = Placement(
        role="draft",
        tensor_parallel_size=size,
        # As in vLLM, the draft follows the target, where it has experts and devices to spread them over.
        is_expert_parallel=scenario.target.enable_expert_parallel and has_experts and size > 1,
        is_eager=scenario.target.enforce_eager and size > 1,
        weight_dtype=config.quantization or scenario.target.dtype,
        kv_dtype=_CACHE_DTYPES[config.kv_cache_dtype],
    )
    deployed = _deployed(
        profile, config.model, placement, has_own_devices=scenario.hardware.draft != "target"
    )
    return replace(deployed, first_pass=_FIRST_PASSES[config.method])


def check_memory(
    scenario: Scenario,
    target: Deployed,
    draft: Deployed | None,
    *,
    num_sequences: int,
    context_tokens: int,
) -> None:
    """Refuse a deployment whose weights and caches do not fit the memory of a device.

    Parameters
    ----------
    scenario
        Block size and lookahead.
    target, draft
        The models on their devices.
    num_sequences
        Most sequences in a batch.
    context_tokens
        Longest prompt and output together, tokens.

    Raises
    ------
    CapacityError
        With the bytes lacking.
    """
    lookahead_tokens = 0 if draft is None else scenario.num_speculative_tokens + 1
    shared = [target] if draft is None or draft.has_own_devices else [target, draft]
    groups = [shared, [draft]] if draft is not None and draft.has_own_devices else [shared]
    for group in groups:
        plan = plan_memory(
            group[0].profile,
            _residents(group),
            context_tokens=context_tokens,
            lookahead_tokens=lookahead_tokens,
            block_size=scenario.scheduler.block_size,
        )
        check_fit(plan, num_sequences)


def _residents(group: Sequence[Deployed]) -> list[Resident]:
    return [deployed.resident for deployed in group if deployed.resident is not None]


def _deployed(
    profile: Accelerator, model: ModelSpec | None, placement: Placement, *, has_own_devices: bool
) -> Deployed:
    return Deployed(
        profile=profile,
        cost=LimitedCosts(profile.place(model, placement), name=profile.name),
        resident=None if model is None else Resident(model, placement),
        num_devices=placement.tensor_parallel_size,
        has_own_devices=has_own_devices,
    )
