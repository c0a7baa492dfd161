"""Weights of a transformer, layer by layer, counted in elements from its shape.

Attention: Vaswani et al. (2017); grouped queries: Ainslie et al. (2023); latent attention: DeepSeek-AI
(2024, arXiv 2405.04434), section 2.1; gated feed-forward layers: Shazeer (2020); T5: Raffel et al. (2020).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from specsim.hardware.transformer import TransformerConfig


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers of one shape, in elements a layer."""

    num_layers: int
    """Layers of this shape."""
    common_elements: int
    """Elements that every position passes through: attention, norms, dense or shared feed-forward, router."""
    num_experts: int
    """Routed experts; 0 in a dense layer."""
    expert_elements: int
    """Elements of one routed expert."""


def layer_groups(config: TransformerConfig) -> tuple[LayerGroup, ...]:
    """Return the layers that a generated token passes through, grouped by shape."""
    attention = _norms(config) + _attention(config)
    counts = Counter(_has_experts(config, layer) for layer in range(config.num_hidden_layers))
    groups: list[LayerGroup] = []
    if counts[False]:
        dense = _feed_forward(config, config.intermediate_size)
        groups.append(LayerGroup(counts[False], attention + dense, 0, 0))
    if counts[True]:
        num_experts = config.num_experts or 0
        common = attention + _router(config, num_experts) + _shared_experts(config)
        groups.append(LayerGroup(counts[True], common, num_experts, _expert(config)))
    return tuple(groups)


def num_windowed_layers(config: TransformerConfig) -> int:
    """Return how many layers attend to the last ``sliding_window`` tokens only."""
    return sum(_is_windowed(config, layer) for layer in range(config.num_hidden_layers))


def apart_elements(config: TransformerConfig) -> int:
    """Elements that every pass reads beside the layers: final norm, position bias, fused inputs."""
    position_bias = (
        config.relative_attention_num_buckets * config.num_attention_heads
        if config.architecture.is_encoder_decoder
        else 0
    )
    return config.hidden_size + position_bias + config.num_fused_inputs * config.hidden_size**2


def encoder_elements(config: TransformerConfig) -> int:
    """Elements that only the prompt passes through: the encoder, and the decoder's cross keys and values."""
    if not config.architecture.is_encoder_decoder:
        return 0
    projection = config.hidden_size * config.num_attention_heads * config.attention_head_dim
    layer = 4 * projection + _feed_forward(config, config.intermediate_size) + 2 * config.hidden_size
    return (config.num_encoder_layers or 0) * layer + apart_elements(config) + cross_elements(config)


def cross_elements(config: TransformerConfig) -> int:
    """Elements of the keys and values of cross-attention, all layers; 0 without an encoder."""
    if not config.architecture.is_encoder_decoder:
        return 0
    width = config.num_attention_heads * config.attention_head_dim
    return 2 * config.hidden_size * width * config.num_hidden_layers


def _norms(config: TransformerConfig) -> int:
    num_norms = 3 if config.architecture.is_encoder_decoder else config.architecture.num_norms
    return num_norms * config.hidden_size


def _attention(config: TransformerConfig) -> int:
    if config.architecture.attention == "latent":
        return _latent_attention(config)
    width, head = config.hidden_size, config.attention_head_dim
    queries, keys = config.num_attention_heads * head, config.key_value_heads * head
    elements = 2 * width * queries + 2 * width * keys
    if config.architecture.is_encoder_decoder:
        # Keys and values of the prompt are computed once, so a decoder pass reads two of the four
        # projections of its cross-attention.
        elements += 2 * width * queries
    if config.attention_bias:
        elements += queries + 2 * keys + width
    elif config.architecture.has_qkv_bias if config.qkv_bias is None else config.qkv_bias:
        elements += queries + 2 * keys
    if config.architecture.has_qk_norms:
        elements += 2 * head
    if config.architecture.has_attention_sinks:
        elements += config.num_attention_heads
    return elements


def _latent_attention(config: TransformerConfig) -> int:
    width, heads = config.hidden_size, config.num_attention_heads
    latent, rope = config.kv_lora_rank or 0, config.qk_rope_head_dim or 0
    plain, value = config.qk_nope_head_dim or 0, config.v_head_dim or 0
    queries = heads * (plain + rope)
    rank = config.q_lora_rank
    query_elements = width * queries if rank is None else width * rank + rank + rank * queries
    cached = width * (latent + rope) + latent
    return query_elements + cached + latent * heads * (plain + value) + heads * value * width


def _feed_forward(config: TransformerConfig, inner: int) -> int:
    is_gated = not config.architecture.is_encoder_decoder or config.feed_forward_proj.startswith("gated")
    biases = 2 * inner + config.hidden_size if config.mlp_bias else 0
    return (3 if is_gated else 2) * config.hidden_size * inner + biases


def _has_experts(config: TransformerConfig, layer: int) -> bool:
    match config.architecture.experts:
        case "every_layer":
            return True
        case "every_nth_layer":
            return layer not in config.mlp_only_layers and (layer + 1) % config.decoder_sparse_step == 0
        case "after_dense_layers":
            return layer >= (config.first_k_dense_replace or 0) and layer % config.moe_layer_freq == 0
        case "none":
            return False


def _expert(config: TransformerConfig) -> int:
    inner = config.moe_intermediate_size or config.intermediate_size
    biases = 2 * inner + config.hidden_size if config.architecture.has_expert_biases else 0
    return 3 * config.hidden_size * inner + biases


def _router(config: TransformerConfig, num_experts: int) -> int:
    has_bias = config.architecture.has_expert_biases or config.architecture.has_router_correction
    return config.hidden_size * num_experts + (num_experts if has_bias else 0)


def _shared_experts(config: TransformerConfig) -> int:
    if config.shared_expert_intermediate_size:
        gate = config.hidden_size
        return 3 * config.hidden_size * config.shared_expert_intermediate_size + gate
    inner = config.moe_intermediate_size or config.intermediate_size
    return 3 * config.hidden_size * inner * (config.n_shared_experts or 0)


def _is_windowed(config: TransformerConfig, layer: int) -> bool:
    if config.sliding_window is None:
        return False
    if config.layer_types is not None:
        return config.layer_types[layer] == "sliding_attention"
    architecture = config.architecture
    match architecture.window:
        case "every_layer":
            return True
        case "last_layers":
            return config.use_sliding_window and layer >= (config.max_window_layers or 0)
        case "periodic":
            return (layer + 1) % (config.sliding_window_pattern or architecture.window_period) != 0
        case "none":
            return False
