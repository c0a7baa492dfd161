"""A language model as data: what one pass reads, computes and caches, in elements and FLOPs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Self

import numpy as np
from pydantic import Field

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.hardware.layers import (
    LayerGroup,
    apart_elements,
    cross_elements,
    encoder_elements,
    layer_groups,
    num_windowed_layers,
)
from specsim.hardware.moe import expected_distinct_experts
from specsim.hardware.transformer import TransformerConfig


class RecordedFigures(Spec):
    """Figures recorded for the published weights; the tests compute them anew from the shape."""

    params_total: int = Field(ge=1)
    """Parameters of the published checkpoint, without what only training or drafting uses."""
    params_active: int = Field(ge=1)
    """Parameters that one generated token passes through, embedding table and output head included."""
    kv_elements_per_token: int = Field(ge=0)
    """Elements cached for one token over all layers."""


class ModelSpec(TransformerConfig):
    """A language model: the shape of a ``config.json``, and what a pass costs in elements and FLOPs.

    Every figure follows from the shape, so changing one field (``num_hidden_layers`` for an early
    exit) changes all that depend on it. What a pass reads is split four ways, and the four add up to
    all parameters: layers (``weight_elements_read``), output head, embedding table, encoder.

    Examples
    --------
    >>> model = ModelSpec.model_validate(
    ...     {"name": "tiny", "model_type": "llama", "hidden_size": 64, "intermediate_size": 256,
    ...      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
    ... )
    >>> model.params_total, model.kv_elements_per_token
    (144192, 256)
    >>> model.weight_elements_read(np.array([1, 8])).tolist()
    [131392.0, 131392.0]
    """

    name: str = "unnamed"
    """Name in tables and messages."""
    source: str | None = None
    """Where the shape was read."""
    recorded: RecordedFigures | None = None
    """Figures recorded for the published weights."""

    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Self:
        """Return the model with some fields changed, checked anew; figures of the old shape are not kept."""
        return type(self).model_validate({**self.model_dump(), **(update or {})})

    @property
    def num_layers(self) -> int:
        """Layers that a generated token passes through."""
        return self.num_hidden_layers

    @cached_property
    def layer_groups(self) -> tuple[LayerGroup, ...]:
        """The layers, grouped by shape."""
        return layer_groups(self)

    @cached_property
    def num_mixture_layers(self) -> int:
        """Layers with routed experts; 0 in a dense model."""
        return sum(group.num_layers for group in self.layer_groups if group.num_experts)

    @cached_property
    def head_elements(self) -> int:
        """Elements of the output head, read by every pass that asks for logits."""
        return self.vocab_size * self.hidden_size

    @cached_property
    def embedding_elements(self) -> int:
        """Elements of an embedding table apart from the head, not read by a pass; 0 where they are one."""
        return 0 if self.is_tied else self.vocab_size * self.hidden_size

    @cached_property
    def encoder_elements(self) -> int:
        """Elements that only the prompt passes through; 0 without an encoder.

        The encoder, and the keys and values of the decoder's cross-attention. With as many encoder as
        decoder layers (T5, v1.1) a prompt position passes through as many elements as a generated
        one, norms apart, so that ``flops_per_position`` serves both.
        """
        return encoder_elements(self)

    @cached_property
    def common_elements(self) -> int:
        """Elements that every pass reads, whatever experts it wakes; head and embedding apart."""
        return apart_elements(self) + sum(
            group.num_layers * group.common_elements for group in self.layer_groups
        )

    @cached_property
    def expert_elements(self) -> int:
        """Elements of all routed experts over all layers; 0 in a dense model."""
        return sum(
            group.num_layers * group.num_experts * group.expert_elements for group in self.layer_groups
        )

    @cached_property
    def params_total(self) -> int:
        """All parameters, embedding table, output head and encoder included."""
        return (
            self.common_elements
            + self.expert_elements
            + self.head_elements
            + self.embedding_elements
            + self.encoder_elements
        )

    @cached_property
    def params_active(self) -> int:
        """Parameters behind one generated token, embedding table and output head included.

        Of an encoder-decoder: the whole decoder, the keys and values of the cross-attention included.
        """
        embeddings = self.head_elements + self.embedding_elements
        return self._active_elements + embeddings + cross_elements(self)

    @cached_property
    def kv_elements_per_token(self) -> int:
        """Elements cached for one token over all layers: keys and values, or latent and rotary part.

        A windowed layer counts in full: see ``attended`` for what it reads. In an encoder-decoder a
        prompt token costs the same in the cross-attention's cache as a generated one in the decoder's own.
        """
        if self.architecture.attention == "latent":
            per_layer = (self.kv_lora_rank or 0) + (self.qk_rope_head_dim or 0)
        else:
            per_layer = 2 * self.key_value_heads * self.attention_head_dim
        return self.num_layers * per_layer

    @cached_property
    def flops_per_position(self) -> float:
        """FLOPs of the weights for one position, output head apart: two for every active element."""
        return 2.0 * self._active_elements

    @cached_property
    def flops_per_logit_position(self) -> float:
        """FLOPs of the output head for one position."""
        return 2.0 * self.head_elements

    @cached_property
    def attention_flops_per_pair(self) -> float:
        """FLOPs of scores and weighted values for one position and one token attended to, over all layers.

        Latent attention works on the cached latent with the up-projections folded into queries and
        outputs (DeepSeek-AI 2024, section 2.1.2); prompts may be computed the cheaper, expanded way,
        which this overstates.
        """
        if self.architecture.attention == "latent":
            per_head = 2 * (self.kv_lora_rank or 0) + (self.qk_rope_head_dim or 0)
        else:
            per_head = 2 * self.attention_head_dim
        return 2.0 * self.num_layers * self.num_attention_heads * per_head

    def weight_elements_read(self, num_positions: Ints) -> Floats:
        """Return the weight elements that passes over so many positions read, shape as given.

        All layers, the distinct experts of a mixture included (see ``moe``); output head, embedding
        table and encoder apart.

        Parameters
        ----------
        num_positions
            Positions of each pass over the whole batch.
        """
        elements = np.full(np.shape(num_positions), float(self.common_elements))
        for group in self.layer_groups:
            if group.num_experts:
                distinct = expected_distinct_experts(
                    group.num_experts,
                    self.experts_per_token,
                    num_positions,
                    correlation=self.expert_correlation,
                )
                elements += distinct * (group.num_layers * group.expert_elements)
        return elements

    def attended(self, context: Floats) -> Floats:
        """Return the tokens attended to at a context of so many tokens, mean over the layers, shape as given.

        The context itself without a sliding window.
        """
        if not self._num_windowed_layers or self.sliding_window is None:
            return context
        windowed = self._num_windowed_layers / self.num_layers
        return (1.0 - windowed) * context + windowed * np.minimum(context, self.sliding_window)

    @property
    def experts_per_token(self) -> int:
        """Routed experts that one token is sent to; 0 in a dense model."""
        return self.num_experts_per_tok or 0 if self.num_mixture_layers else 0

    @cached_property
    def _num_windowed_layers(self) -> int:
        return num_windowed_layers(self)

    @cached_property
    def _active_elements(self) -> int:
        routed = sum(
            group.num_layers * group.expert_elements * self.experts_per_token
            for group in self.layer_groups
            if group.num_experts
        )
        return self.common_elements + routed
