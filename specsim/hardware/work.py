"""What a step moves and computes: a matter of the model and its number formats, not of the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.hardware.accelerator import Effect, Placement
from specsim.hardware.formats import BYTES_PER_VALUE
from specsim.hardware.model import ModelSpec
from specsim.hardware.step import StepShape


@dataclass(slots=True)
class Work:
    """Work of R steps over all devices; arrays [R]."""

    positions: Floats
    """Positions computed."""
    logit_positions: Floats
    """Positions that need the output head."""
    weight_elements: Floats
    """Weights read."""
    weight_bytes: Floats
    """Bytes of the weights read."""
    cache_bytes: Floats
    """Bytes of KV cache read and written, each once."""
    attention_flops: Floats
    """FLOPs of attention."""
    flops: Floats
    """FLOPs, attention included."""


class WorkCounter:
    """Counts the work of one model's steps.

    Parameters
    ----------
    model
        The model.
    placement
        Its number formats.
    neglects
        Effects left out.
    """

    def __init__(self, model: ModelSpec, placement: Placement, *, neglects: tuple[Effect, ...] = ()) -> None:
        self.model = model
        self._weight_bytes = BYTES_PER_VALUE[placement.weight_dtype]
        self._cache_bytes = model.kv_elements_per_token * BYTES_PER_VALUE[placement.kv_dtype]
        self._attention_flops = model.attention_flops_per_pair
        if "kv_cache" in neglects:
            self._cache_bytes = 0.0
        if "attention" in neglects:
            self._attention_flops = 0.0
        self._neglects_prefill = "prefill" in neglects
        self._is_mixture = model.num_mixture_layers > 0
        self._common_elements = float(model.common_elements)
        self._encoder_elements = 0.0 if self._neglects_prefill else float(model.encoder_elements)
        self._is_windowed = bool(np.any(model.attended(np.array([1e12])) != 1e12))

    def count(self, shape: StepShape) -> Work:
        """Return the work of R steps."""
        model = self.model
        positions = as_floats(shape.num_positions)
        pairs = self._attended(as_floats(shape.position_context), positions)
        context = self._attended(as_floats(shape.context_tokens), as_floats(shape.num_sequences))
        if self._neglects_prefill:
            positions = positions - shape.num_prefill_positions
        logits = as_floats(shape.num_logit_positions)
        elements = self.layer_elements(positions) + (logits > 0.0) * float(model.head_elements)
        if self._encoder_elements:
            elements = elements + (shape.num_prefill_positions > 0) * self._encoder_elements
        attention_flops = self._attention_flops * pairs
        linear_flops = model.flops_per_position * positions + model.flops_per_logit_position * logits
        return Work(
            positions=positions,
            logit_positions=logits,
            weight_elements=elements,
            weight_bytes=elements * self._weight_bytes,
            cache_bytes=(context + positions) * self._cache_bytes,
            attention_flops=attention_flops,
            flops=linear_flops + attention_flops,
        )

    def layer_elements(self, positions: Floats) -> Floats:
        """Return the weights read in the layers, the experts that the positions wake included."""
        if not self._is_mixture:
            return np.full(positions.shape, self._common_elements)
        return self.model.weight_elements_read(positions.astype(np.int64))

    def linear_flops(self, positions: Floats, logits: Floats, *, tile: int) -> Floats:
        """Return the FLOPs of the linear layers and the head, positions rounded up to whole tiles."""
        model = self.model
        if tile == 1:
            return model.flops_per_position * positions + model.flops_per_logit_position * logits
        layers = model.flops_per_position * _rounded_up(positions, tile)
        if self._is_mixture:
            # Each woken expert computes at least one tile of its own.
            layers = np.maximum(layers, 2.0 * tile * self.layer_elements(positions))
        return layers + model.flops_per_logit_position * _rounded_up(logits, tile)

    def _attended(self, tokens: Floats, rows: Floats) -> Floats:
        """Tokens attended to under sliding windows, each row taken at the mean context of its step."""
        if not self._is_windowed:
            return tokens
        rows = np.maximum(rows, 1.0)
        return self.model.attended(tokens / rows) * rows


def as_floats(counts: Ints) -> Floats:
    """Return counts as floats."""
    return counts.astype(np.float64)


def _rounded_up(positions: Floats, tile: int) -> Floats:
    return np.ceil(positions / tile) * tile
