"""A transformer's shape, in the field names of the ``config.json`` that comes with its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from specsim.config.base import Spec
from specsim.hardware.architectures import ARCHITECTURES, Architecture
from specsim.hardware.config_json import import_config

LAYER_TYPES = ("full_attention", "sliding_attention")
"""Kinds of attention that a layer may have."""

_MAX_WIDTH = 10**7
_MAX_LAYERS = 10**4


class TransformerConfig(Spec):
    """The fields of a ``config.json`` that set parameters, cache and arithmetic; all others are ignored.

    Names are those of Hugging Face transformers; the older spellings of T5 (``d_model``, ``d_ff``,
    ``d_kv``, ``num_heads``, ``num_layers``, ``num_decoder_layers``) and of the mixtures
    (``num_local_experts``, ``n_routed_experts``) are read as well. A config nested under
    ``text_config`` is read from there. What a field left out means is said below; an unknown
    ``model_type``, a missing field or a key that looks mistyped is refused.

    Examples
    --------
    >>> config = TransformerConfig.model_validate(
    ...     {"model_type": "t5", "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_layers": 6,
    ...      "num_heads": 8, "vocab_size": 32128}
    ... )
    >>> config.hidden_size, config.num_hidden_layers, config.is_tied
    (512, 6, True)
    """

    model_config = ConfigDict(extra="ignore")

    model_type: str
    """Architecture, such as ``llama``."""
    hidden_size: int = Field(ge=1, le=_MAX_WIDTH)
    """Width of the residual stream."""
    intermediate_size: int = Field(ge=1, le=_MAX_WIDTH)
    """Width of the dense feed-forward layers."""
    num_hidden_layers: int = Field(ge=1, le=_MAX_LAYERS)
    """Layers; those of the decoder where there is an encoder. Fewer than the weights have: early exit."""
    num_attention_heads: int = Field(ge=1, le=_MAX_WIDTH)
    """Query heads."""
    vocab_size: int = Field(ge=1, le=10**9)
    """Rows of the embedding table, padding included."""
    num_key_value_heads: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Key and value heads; left out: as many as query heads."""
    head_dim: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Width of one head; left out: the default of the model class, else hidden_size / num_attention_heads."""
    tie_word_embeddings: bool | None = None
    """The output head is the embedding table; left out: the default of the model class."""
    attention_bias: bool = False
    """All four attention projections carry biases."""
    qkv_bias: bool | None = None
    """Query, key and value projections carry biases (not a config.json key); left out: as the class does."""
    mlp_bias: bool = False
    """The feed-forward projections carry biases."""
    max_position_embeddings: int | None = Field(default=None, ge=1)
    """Longest context that the model was made for, tokens; left out: not stated."""

    sliding_window: int | None = Field(default=None, ge=1)
    """Most tokens that a windowed layer attends to; left out: no window."""
    use_sliding_window: bool = False
    """Qwen: whether the window is used at all."""
    max_window_layers: int | None = Field(default=None, ge=0)
    """Qwen: the first layers, which attend to everything where the window is used."""
    sliding_window_pattern: int | None = Field(default=None, ge=1)
    """Gemma: every layer of this number attends to everything; left out: the default of the model class."""
    layer_types: tuple[str, ...] | None = None
    """``full_attention`` or ``sliding_attention`` a layer; left out: the pattern of the model class."""

    num_experts: int | None = Field(default=None, ge=1, le=10**6)
    """Routed experts of a mixture layer."""
    num_experts_per_tok: int | None = Field(default=None, ge=1, le=10**6)
    """Routed experts that one token is sent to."""
    moe_intermediate_size: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Width of one expert; left out: ``intermediate_size``."""
    n_shared_experts: int | None = Field(default=None, ge=0, le=10**6)
    """DeepSeek: experts that every token passes through."""
    shared_expert_intermediate_size: int | None = Field(default=None, ge=0, le=_MAX_WIDTH)
    """Qwen2: width of the expert that every token passes through."""
    first_k_dense_replace: int | None = Field(default=None, ge=0)
    """DeepSeek: the first layers, which are dense."""
    moe_layer_freq: int = Field(default=1, ge=1)
    """DeepSeek: every so many layers hold experts."""
    decoder_sparse_step: int = Field(default=1, ge=1)
    """Qwen: every so many layers hold experts."""
    mlp_only_layers: tuple[int, ...] = ()
    """Qwen: layers that are dense."""
    expert_correlation: float = Field(default=1.0, gt=0, le=1)
    """Share of new experts that further positions wake, see ``moe`` (not a config.json key)."""

    q_lora_rank: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Latent attention: rank of the queries; left out: not compressed."""
    kv_lora_rank: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Latent attention: width of the cached latent."""
    qk_nope_head_dim: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Latent attention: width of a query head's part without position."""
    qk_rope_head_dim: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Latent attention: width of the part with position, cached beside the latent."""
    v_head_dim: int | None = Field(default=None, ge=1, le=_MAX_WIDTH)
    """Latent attention: width of a value head."""

    num_encoder_layers: int | None = Field(default=None, ge=1, le=_MAX_LAYERS)
    """T5: layers of the encoder."""
    feed_forward_proj: str = "relu"
    """T5: activation; one that begins with ``gated`` has two input projections."""
    relative_attention_num_buckets: int = Field(default=32, ge=1, le=_MAX_WIDTH)
    """T5: rows of the relative position bias, one table a stack."""

    num_fused_inputs: int = Field(default=0, ge=0, le=16)
    """Draft heads: vectors of hidden_size that a projection before the layers joins (not a config.json key).

    2 for MTP and EAGLE: the token's embedding and the target's hidden state.
    """

    @property
    def architecture(self) -> Architecture:
        """Traits of the ``model_type``."""
        return ARCHITECTURES[self.model_type]

    @property
    def key_value_heads(self) -> int:
        """Key and value heads."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def attention_head_dim(self) -> int:
        """Width of one head of grouped-query attention."""
        default = self.architecture.default_head_dim
        return self.head_dim or default or self.hidden_size // self.num_attention_heads

    @property
    def is_tied(self) -> bool:
        """The output head is the embedding table."""
        tied = self.tie_word_embeddings
        return self.architecture.ties_embeddings if tied is None else tied

    @model_validator(mode="wrap")
    @classmethod
    def _import(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, Mapping):
            return handler(data)
        imported = import_config(cls.__name__, data, cls.model_fields)
        try:
            spec = handler(imported.fields)
            faults = imported.faults or [imported.fault(*fault) for fault in contradictions(spec)]
        except ValidationError as error:
            faults = [*imported.faults, *imported.located(error)]
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return spec


def contradictions(config: TransformerConfig) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for every field of a config that contradicts another."""
    heads, architecture = config.num_attention_heads, config.architecture
    if heads % config.key_value_heads:
        yield (
            "num_key_value_heads",
            f"{config.key_value_heads} does not divide {heads}, the num_attention_heads",
        )
    states_width = config.head_dim or architecture.default_head_dim or architecture.attention == "latent"
    if not states_width and config.hidden_size % heads:
        yield "head_dim", f"missing, and {heads} heads do not divide hidden_size {config.hidden_size}"
    if config.num_experts and config.num_experts_per_tok and config.num_experts_per_tok > config.num_experts:
        yield "num_experts_per_tok", f"{config.num_experts_per_tok} of {config.num_experts} experts"
    if architecture.experts == "none" and config.num_experts and config.num_experts > 1:
        yield "num_experts", f"a model of type '{config.model_type}' has no experts"
    yield from _window_contradictions(config)


def _window_contradictions(config: TransformerConfig) -> Iterator[tuple[str, str]]:
    rule = config.architecture.window
    if config.sliding_window and rule == "none":
        yield "sliding_window", f"a model of type '{config.model_type}' has no sliding window"
    if rule == "last_layers" and config.use_sliding_window:
        for field in ("sliding_window", "max_window_layers"):
            if getattr(config, field) is None:
                yield field, "missing, required where use_sliding_window is true"
    if config.layer_types is None:
        return
    unknown = sorted(set(config.layer_types) - set(LAYER_TYPES))
    if unknown:
        yield "layer_types", f"'{unknown[0]}' is not one of {', '.join(LAYER_TYPES)}"
    if len(config.layer_types) < config.num_hidden_layers:
        yield "layer_types", f"{len(config.layer_types)} types for {config.num_hidden_layers} layers"
    if "sliding_attention" in config.layer_types and config.sliding_window is None:
        yield "sliding_window", "missing, required by layer_types"
