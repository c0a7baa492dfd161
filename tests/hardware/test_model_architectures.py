"""Parameter counts of architectures beyond the presets: those of the published weights, to the digit.

Totals are those that the model pages on huggingface.co state for the safetensors files; shapes are
those of the ``config.json`` beside them.
"""

from __future__ import annotations

import numpy as np
import pytest

from specsim.hardware.architectures import ARCHITECTURES
from specsim.hardware.model import ModelSpec


def config(model_type: str, *shape: int, **more: object) -> dict[str, object]:
    """Return a config of width, inner width, layers, query heads, key-value heads and vocabulary."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    keys = (*names, "num_key_value_heads", "vocab_size")
    return {"model_type": model_type, **dict(zip(keys, shape, strict=True)), **more}


LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
DEEPSEEK_V2_LITE = config(
    "deepseek_v2",
    *(2048, 10944, 27, 16, 16, 102400),
    moe_intermediate_size=1408,
    n_routed_experts=64,
    n_shared_experts=2,
    num_experts_per_tok=6,
    first_k_dense_replace=1,
    q_lora_rank=None,
    **LATENT,
)
QWEN_MOE = config(
    "qwen2_moe",
    *(2048, 5632, 24, 16, 16, 151936),
    moe_intermediate_size=1408,
    shared_expert_intermediate_size=5632,
    num_experts=60,
    num_experts_per_tok=4,
)
GPT_OSS = config(
    "gpt_oss",
    *(2880, 2880, 24, 64, 8, 201088),
    head_dim=64,
    num_local_experts=32,
    num_experts_per_tok=4,
    attention_bias=True,
    sliding_window=128,
)
MT5 = {
    "model_type": "mt5",
    "d_model": 512,
    "d_ff": 1024,
    "d_kv": 64,
    "num_layers": 8,
    "num_heads": 6,
    "vocab_size": 250112,
    "feed_forward_proj": "gated-gelu",
}
T5_11B = {
    "model_type": "t5",
    "d_model": 1024,
    "d_ff": 65536,
    "d_kv": 128,
    "num_layers": 24,
    "num_heads": 128,
    "vocab_size": 32128,
}
PUBLISHED = {
    "mistral-7b": (config("mistral", 4096, 14336, 32, 32, 8, 32000, sliding_window=4096), 7_241_732_096),
    "gemma-2b": (config("gemma", 2048, 16384, 18, 8, 1, 256000), 2_506_172_416),
    "gemma-3-1b": (config("gemma3_text", 1152, 6912, 26, 4, 1, 262144, sliding_window=512), 999_885_952),
    "phi-3-mini": (config("phi3", 3072, 8192, 32, 32, 32, 32064, sliding_window=2047), 3_821_079_552),
    "smollm3-3b": (config("smollm3", 2048, 11008, 36, 16, 4, 128256), 3_075_098_624),
    "qwen1.5-moe-a2.7b": (QWEN_MOE, 14_315_784_192),
    "deepseek-v2-lite": (DEEPSEEK_V2_LITE, 15_706_484_224),
    "gpt-oss-20b": (GPT_OSS, 20_914_757_184),
    "gpt-oss-120b": ({**GPT_OSS, "num_hidden_layers": 36, "num_local_experts": 128}, 116_829_156_672),
    "mt5-small": (MT5, 300_176_768),
    "t5-11b": (T5_11B, 11_307_321_344),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_total_equals_the_published_weights(name: str) -> None:
    given, total = PUBLISHED[name]
    assert ModelSpec.model_validate(given).params_total == total


def test_gpt_oss_active_parameters_match_the_model_card() -> None:
    # The card of gpt-oss-20b counts 3.61B active parameters, the embedding table not among them.
    model = ModelSpec.model_validate(GPT_OSS)
    assert (model.params_active - model.embedding_elements) / 1e9 == pytest.approx(3.61, abs=0.005)


def test_deepseek_mtp_module_is_one_layer_and_a_projection_of_two_vectors() -> None:
    # DeepSeek-V3's README: 685B on disk, of which 14B are the MTP module with its embedding and head.
    module = ModelSpec.model_validate(
        config(
            "deepseek_v3",
            *(7168, 18432, 1, 128, 128, 129280),
            moe_intermediate_size=2048,
            n_routed_experts=256,
            n_shared_experts=1,
            num_experts_per_tok=8,
            first_k_dense_replace=0,
            q_lora_rank=1536,
            num_fused_inputs=2,
            **LATENT,
        )
    )
    assert module.params_total / 1e9 == pytest.approx(13.5, abs=0.5)
    plain = module.model_copy(update={"num_fused_inputs": 0})
    assert module.params_total - plain.params_total == 2 * 7168**2


def test_multi_query_attention_caches_one_key_and_one_value_a_layer() -> None:
    model = ModelSpec.model_validate(PUBLISHED["gemma-2b"][0])
    assert model.kv_elements_per_token == 18 * 2 * 256


def test_latent_attention_caches_the_latent_and_the_rotary_part() -> None:
    assert ModelSpec.model_validate(DEEPSEEK_V2_LITE).kv_elements_per_token == 27 * (512 + 64)


def test_windowed_layers_follow_the_pattern_of_the_architecture() -> None:
    context = np.array([100.0, 1e6])
    gemma = ModelSpec.model_validate(PUBLISHED["gemma-3-1b"][0])
    full, windowed = 26 // 6, 26 - 26 // 6
    expected = [100.0, (full * 1e6 + windowed * 512) / 26]
    np.testing.assert_allclose(gemma.attended(context), expected, rtol=1e-12)
    mistral = ModelSpec.model_validate(PUBLISHED["mistral-7b"][0])
    np.testing.assert_allclose(mistral.attended(context), [100.0, 4096.0], rtol=1e-12)
    half = ModelSpec.model_validate(GPT_OSS)
    np.testing.assert_allclose(half.attended(context), [100.0, (1e6 + 128) / 2], rtol=1e-12)


def test_layer_types_overrule_the_pattern() -> None:
    types = ["full_attention"] * 23 + ["sliding_attention"]
    model = ModelSpec.model_validate({**GPT_OSS, "layer_types": types})
    assert model.attended(np.array([1e6]))[0] == pytest.approx((23 * 1e6 + 128) / 24)


def test_qwen_window_counts_only_where_it_is_used() -> None:
    shape = config("qwen2", 3584, 18944, 28, 28, 4, 152064, sliding_window=4096, max_window_layers=21)
    context = np.array([1e6])
    assert ModelSpec.model_validate(shape).attended(context)[0] == 1e6
    used = ModelSpec.model_validate({**shape, "use_sliding_window": True})
    assert used.attended(context)[0] == pytest.approx((21 * 1e6 + 7 * 4096) / 28)


def test_every_known_architecture_has_a_published_count_or_is_another_one_renamed() -> None:
    presets = {"deepseek_v3", "gemma2", "llama", "mixtral", "qwen2", "qwen3", "qwen3_moe", "t5"}
    counted = presets | {str(given["model_type"]) for given, _ in PUBLISHED.values()}
    renamed = {"kimi_k2": "deepseek_v3", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe"}
    assert counted | set(renamed) == set(ARCHITECTURES)
    assert all(ARCHITECTURES[new] is ARCHITECTURES[old] for new, old in renamed.items())
