"""What target, draft and their caches occupy on a device, and whether it fits.

Each device of a placement holds 1/n of the weights, and 1/n of the cache as far as there are key and
value heads to share out (a latent cache is held whole by each). A sequence reserves its longest context
and the lookahead slots of a round, K + 1 tokens, in whole blocks, in the caches of target and draft
alike. Activations and the runtime's own memory are not counted: leave room for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specsim.errors import CapacityError
from specsim.hardware.accelerator import Accelerator, Placement
from specsim.hardware.formats import BYTES_PER_VALUE
from specsim.hardware.model import ModelSpec
from specsim.hardware.parallel import num_cache_shards
from specsim.units import format_bytes


@dataclass(frozen=True, slots=True)
class Resident:
    """One model that lives on the devices: target or draft."""

    model: ModelSpec
    placement: Placement

    @property
    def weight_bytes(self) -> float:
        """Weights on one device, embedding table included, bytes."""
        devices = self.placement.tensor_parallel_size
        return self.model.params_total * BYTES_PER_VALUE[self.placement.weight_dtype] / devices

    @property
    def cache_bytes_per_token(self) -> float:
        """KV cache of one token on one device, bytes."""
        shards = num_cache_shards(self.model, self.placement.tensor_parallel_size)
        return self.model.kv_elements_per_token * BYTES_PER_VALUE[self.placement.kv_dtype] / shards


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Memory of one device: what is there, what the weights take, what one sequence takes.

    Parameters
    ----------
    device
        Name of the profile.
    capacity_bytes
        Memory of one device; infinite where the profile states none.
    residents
        Models that share the device.
    context_tokens
        Longest context of a sequence, prompt and output, tokens.
    lookahead_tokens
        Slots reserved for the drafts of a round, K + 1 where K are drafted, tokens.
    block_size
        Tokens of one block of the cache.
    """

    device: str
    capacity_bytes: float
    residents: tuple[Resident, ...]
    context_tokens: int
    lookahead_tokens: int = 0
    block_size: int = 1

    @property
    def weight_bytes(self) -> float:
        """Weights of all residents on one device, bytes."""
        return sum(resident.weight_bytes for resident in self.residents)

    @property
    def cache_bytes_per_token(self) -> float:
        """KV cache of one token of one sequence, all residents, bytes."""
        return sum(resident.cache_bytes_per_token for resident in self.residents)

    @property
    def sequence_bytes(self) -> float:
        """Reserved for one sequence on one device, bytes."""
        tokens = self.context_tokens + self.lookahead_tokens
        return math.ceil(tokens / self.block_size) * self.block_size * self.cache_bytes_per_token

    @property
    def max_sequences(self) -> int | None:
        """Sequences that fit; None: without bound."""
        free_bytes = self.capacity_bytes - self.weight_bytes
        if free_bytes < 0:
            return 0
        if math.isinf(free_bytes) or self.sequence_bytes == 0:
            return None
        return math.floor(free_bytes / self.sequence_bytes)

    def lacking_bytes(self, num_sequences: int) -> float:
        """Return the bytes that some sequences need beyond what there is; 0 where they fit."""
        return max(0.0, self.weight_bytes + num_sequences * self.sequence_bytes - self.capacity_bytes)


def plan_memory(
    profile: Accelerator,
    residents: Sequence[Resident],
    *,
    context_tokens: int,
    lookahead_tokens: int = 0,
    block_size: int = 1,
) -> MemoryPlan:
    """Return the memory plan of one device of a profile; see `MemoryPlan` for the parameters."""
    capacity_bytes = math.inf if profile.memory is None else profile.memory.capacity_bytes
    return MemoryPlan(
        profile.name, capacity_bytes, tuple(residents), context_tokens, lookahead_tokens, block_size
    )


def check_fit(plan: MemoryPlan, num_sequences: int) -> None:
    """Refuse sequences that do not fit beside the weights.

    Raises
    ------
    CapacityError
        With the bytes lacking, what takes them, and the most sequences that would fit.
    """
    lacking_bytes = plan.lacking_bytes(num_sequences)
    if not lacking_bytes:
        return
    per_token = plan.cache_bytes_per_token
    lookahead_bytes = num_sequences * plan.lookahead_tokens * per_token
    cache_bytes = num_sequences * plan.sequence_bytes - lookahead_bytes
    weights = " + ".join(
        f"{format_bytes(resident.weight_bytes)} weights of {resident.model.name}"
        for resident in plan.residents
    )
    parts = [
        weights,
        f"{format_bytes(cache_bytes)} KV cache ({num_sequences} x {plan.context_tokens} tokens)",
    ]
    if plan.lookahead_tokens:
        parts.append(f"{format_bytes(lookahead_bytes)} lookahead slots ({plan.lookahead_tokens} a sequence)")
    fitting = plan.max_sequences or 0
    advice = f"at most {fitting} sequences fit" if fitting else "not one sequence fits"
    raise CapacityError(
        f"'{plan.device}' lacks {format_bytes(lacking_bytes)} of memory a device: {' + '.join(parts)}"
        f" exceed {format_bytes(plan.capacity_bytes)}; {advice}",
        lacking_bytes=lacking_bytes,
    )
