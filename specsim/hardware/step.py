"""The seam between the engine and the hardware: shapes of steps in, their cost out.

One pass of a model over a batch is a step. Shapes and costs are arrays [R] of R steps, so that one
step, a block of steps and a fit over thousands of measured steps go through the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from specsim.arrays import Floats, Ints


@dataclass(slots=True)
class StepShape:
    """What R steps of one model process; every field is an array [R]."""

    num_sequences: Ints
    """Sequences in the batch."""
    num_positions: Ints
    """Positions computed over the whole batch: prefill chunks and verification together."""
    num_prefill_positions: Ints
    """The part of ``num_positions`` that belongs to prompts."""
    num_logit_positions: Ints
    """Positions that need the output head and the sampler."""
    context_tokens: Ints
    """Cached tokens read, summed over the sequences: the KV bytes."""
    position_context: Ints
    """Tokens attended to, summed over the positions: the attention FLOPs."""


@dataclass(slots=True)
class StepCosts:
    """What R steps cost; every field is an array [R].

    Time and energy are whole picoseconds and nanojoules, rounded once here, so that sums are exact
    and do not depend on how steps are grouped into blocks.
    """

    duration_ps: Ints
    """Time of the step, ps."""
    energy_nj: Ints
    """Energy drawn by all devices of the model during the step, nJ."""
    memory_s: Floats
    """Time that the bytes need at the achieved bandwidth, s."""
    compute_s: Floats
    """Time that the arithmetic needs at the achieved rate and clock, s."""
    attention_s: Floats
    """Time of attention, s."""
    communication_s: Floats
    """Time of all-reduce and all-to-all, s; 0 on one device."""
    overhead_s: Floats
    """Launch and host time, s."""
    flops: Floats
    """Floating-point operations."""
    bytes: Floats
    """Bytes moved between memory and the device."""
    clock_fraction: Floats
    """Clock as a fraction of the nominal clock."""
    limit_s: Floats
    """Physical limit of the step at datasheet peaks, s."""
    limit_j: Floats
    """Physical limit of the step's energy at the board's own slopes, J; 0 where they are not known."""
    device_limit_j: Floats
    """Floor of the chips' energy alone, which no board reaches, J; 0 where it is not known."""
    guessed_j: Floats
    """Part of the step's energy that guessed watts contribute, J; the energy is linear in them."""


class CostModel(Protocol):
    """Cost of one model's steps on one kind of accelerator: pure, shape in, cost out."""

    def steps(self, shape: StepShape) -> StepCosts:
        """Cost of R steps; a shape outside the profile's validity is a DomainError."""
        ...
