"""What a ``model_type`` means: the traits of a transformer that its ``config.json`` leaves unsaid.

The traits are those of the model classes of Hugging Face transformers (Wolf et al., 2020), whose
defaults fill what a ``config.json`` does not state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_DENSE = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size")
_MIXTURE = ("num_experts", "num_experts_per_tok")
_LATENT = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")


@dataclass(frozen=True, slots=True)
class Architecture:
    """Traits of one ``model_type``."""

    required: tuple[str, ...] = _DENSE
    """Fields that its config must state."""
    attention: Literal["grouped", "latent"] = "grouped"
    """Grouped-query attention (multi-head and multi-query included), or multi-head latent attention."""
    experts: Literal["none", "every_layer", "every_nth_layer", "after_dense_layers"] = "none"
    """Which layers hold a mixture of experts."""
    window: Literal["none", "every_layer", "last_layers", "periodic"] = "none"
    """Which layers ``sliding_window`` applies to, where ``layer_types`` does not say."""
    window_period: int = 2
    """A periodic pattern attends to everything in every layer of this number, counted from 1."""
    ties_embeddings: bool = False
    """Class default of ``tie_word_embeddings``."""
    default_head_dim: int | None = None
    """Class default of ``head_dim``; None: ``hidden_size / num_attention_heads``."""
    has_qkv_bias: bool = False
    """Query, key and value projections carry biases, the output projection does not."""
    has_qk_norms: bool = False
    """Queries and keys are normalised, one weight a head dimension each."""
    has_attention_sinks: bool = False
    """One learned sink a head."""
    has_expert_biases: bool = False
    """Router and experts carry biases."""
    has_router_correction: bool = False
    """The router carries one correction bias an expert."""
    num_norms: int = 2
    """Norms of width ``hidden_size`` in a layer."""
    is_encoder_decoder: bool = False
    """An encoder reads the prompt; the decoder attends to it by cross-attention."""


_DEEPSEEK = (
    *_DENSE,
    *_MIXTURE,
    *_LATENT,
    "moe_intermediate_size",
    "n_shared_experts",
    "first_k_dense_replace",
)
_QWEN_MOE = (*_DENSE, *_MIXTURE, "moe_intermediate_size")

_DEEPSEEK_V3 = Architecture(
    required=_DEEPSEEK, attention="latent", experts="after_dense_layers", has_router_correction=True
)
_QWEN3 = Architecture(has_qk_norms=True, default_head_dim=128, window="last_layers")
_QWEN3_MOE = Architecture(
    required=_QWEN_MOE, experts="every_nth_layer", has_qk_norms=True, window="last_layers"
)

ARCHITECTURES: dict[str, Architecture] = {
    "deepseek_v2": Architecture(required=_DEEPSEEK, attention="latent", experts="after_dense_layers"),
    "deepseek_v3": _DEEPSEEK_V3,
    "gemma": Architecture(ties_embeddings=True, default_head_dim=256),
    "gemma2": Architecture(ties_embeddings=True, default_head_dim=256, num_norms=4, window="periodic"),
    "gemma3_text": Architecture(
        ties_embeddings=True,
        default_head_dim=256,
        num_norms=4,
        has_qk_norms=True,
        window="periodic",
        window_period=6,
    ),
    "gpt_oss": Architecture(
        required=(*_DENSE, *_MIXTURE),
        experts="every_layer",
        default_head_dim=64,
        has_attention_sinks=True,
        has_expert_biases=True,
        window="periodic",
    ),
    "kimi_k2": _DEEPSEEK_V3,
    "llama": Architecture(),
    "mistral": Architecture(window="every_layer"),
    "mixtral": Architecture(required=(*_DENSE, *_MIXTURE), experts="every_layer", window="every_layer"),
    "mt5": Architecture(is_encoder_decoder=True, default_head_dim=64),
    "phi3": Architecture(window="every_layer"),
    "qwen2": Architecture(has_qkv_bias=True, window="last_layers"),
    "qwen2_moe": Architecture(
        required=(*_QWEN_MOE, "shared_expert_intermediate_size"),
        experts="every_nth_layer",
        has_qkv_bias=True,
        window="last_layers",
    ),
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3_vl_text": _QWEN3,
    "smollm3": Architecture(ties_embeddings=True),
    "t5": Architecture(is_encoder_decoder=True, ties_embeddings=True, default_head_dim=64),
}
"""Known model types. One is added only with a published parameter count that its tests meet."""
