"""Reading a config.json: spellings, nesting, what is left out, and what is refused."""

from __future__ import annotations

import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from specsim.config.base import Spec
from specsim.hardware.model import ModelSpec

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
}
QWEN_MOE: dict[str, object] = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}


def faults(config: object) -> dict[str, str]:
    """Return the faults of a config that is refused, by dotted path."""
    with pytest.raises(ValidationError) as caught:
        ModelSpec.model_validate(config)
    return {".".join(map(str, fault["loc"])): fault["msg"] for fault in caught.value.errors()}


def without(config: dict[str, object], *keys: str) -> dict[str, object]:
    """Return a config with some keys left out."""
    return {key: value for key, value in config.items() if key not in keys}


def test_keys_that_say_nothing_about_speed_are_ignored() -> None:
    noise = {
        "architectures": ["LlamaForCausalLM"],
        "bos_token_id": 128000,
        "eos_token_id": [128001, 128008],
        "experts_per_token": 4,
        "hidden_act": "silu",
        "original_max_position_embeddings": 8192,
        "qk_head_dim": 192,
        "quantization_config": {"quant_method": "fp8"},
        "rope_scaling": {"factor": 32.0, "rope_type": "llama3"},
        "sliding_window": None,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.45.0",
    }
    assert ModelSpec.model_validate({**LLAMA, **noise}) == ModelSpec.model_validate(LLAMA)


def test_a_mistyped_key_is_named_beside_the_right_one() -> None:
    config = {**without(LLAMA, "hidden_size"), "hiden_size": 2048}
    assert faults(config) == {"hiden_size": "unknown key (did you mean 'hidden_size'?)"}


@pytest.mark.parametrize("slip", ["num_key_value_head", "num_kv_heads", "num_key_values_heads"])
def test_a_mistyped_key_is_refused_even_where_it_may_be_left_out(slip: str) -> None:
    config = {**without(LLAMA, "num_key_value_heads"), slip: 8}
    assert faults(config) == {slip: "unknown key (did you mean 'num_key_value_heads'?)"}


def test_every_missing_field_is_named_at_once() -> None:
    missing = ("hidden_size", "vocab_size", "intermediate_size")
    assert set(faults(without(LLAMA, *missing))) == set(missing)
    experts = ("num_experts", "num_experts_per_tok", "moe_intermediate_size")
    assert set(faults(without(QWEN_MOE, *experts))) == set(experts)


def test_missing_and_wrong_fields_are_named_together() -> None:
    config = {
        **without(LLAMA, "vocab_size", "num_attention_heads"),
        "hidden_size": 0,
        "num_attention_head": 4,
    }
    assert set(faults(config)) == {"vocab_size", "hidden_size", "num_attention_head"}


def test_an_unknown_architecture_is_refused_with_the_known_ones() -> None:
    (message,) = faults({**LLAMA, "model_type": "lama"}).values()
    assert "did you mean 'llama'?" in message
    assert "deepseek_v3" in message
    assert set(faults(without(LLAMA, "model_type"))) == {"model_type"}


def test_a_config_nested_under_text_config_is_read_from_there() -> None:
    nested = {"model_type": "llava", "text_config": LLAMA, "vision_config": {"hidden_size": 1024}}
    assert ModelSpec.model_validate(nested) == ModelSpec.model_validate(LLAMA)
    outer = {
        "name": "seeing",
        "tie_word_embeddings": False,
        "text_config": without(LLAMA, "tie_word_embeddings"),
    }
    model = ModelSpec.model_validate(outer)
    assert (model.name, model.is_tied) == ("seeing", False)


def test_a_fault_of_a_nested_config_points_inside_it() -> None:
    nested = {"text_config": {**without(LLAMA, "vocab_size"), "hidden_size": -1}}
    assert set(faults(nested)) == {"text_config.vocab_size", "text_config.hidden_size"}


def test_a_fault_of_t5_is_told_in_the_words_of_its_config() -> None:
    t5 = {"model_type": "t5", "d_model": 512, "d_ff": 2048, "num_heads": 8, "vocab_size": 32128}
    assert set(faults(t5)) == {"num_decoder_layers"}
    assert set(faults({**t5, "num_layers": 6, "d_ff": 0})) == {"d_ff"}
    assert (
        faults({**t5, "num_layers": 6, "hidden_size": 512})["hidden_size"] == "given twice, as 'd_model' too"
    )


def test_t5_without_decoder_layers_has_as_many_as_the_encoder() -> None:
    t5 = {"model_type": "t5", "d_model": 512, "d_ff": 2048, "num_heads": 8, "vocab_size": 32128}
    assert ModelSpec.model_validate({**t5, "num_layers": 6}).num_layers == 6
    shallow = ModelSpec.model_validate({**t5, "num_layers": 6, "num_decoder_layers": 2})
    assert (shallow.num_layers, shallow.num_encoder_layers) == (2, 6)


def test_left_out_fields_mean_what_the_model_class_means() -> None:
    plain = ModelSpec.model_validate(without(LLAMA, "num_key_value_heads", "tie_word_embeddings"))
    assert (plain.key_value_heads, plain.attention_head_dim, plain.is_tied) == (32, 64, False)
    gemma = ModelSpec.model_validate({**without(LLAMA, "tie_word_embeddings"), "model_type": "gemma"})
    assert (gemma.attention_head_dim, gemma.is_tied) == (256, True)
    qwen = ModelSpec.model_validate({**LLAMA, "model_type": "qwen2"})
    assert qwen.params_total - ModelSpec.model_validate(LLAMA).params_total == 16 * (32 + 8 + 8) * 64


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_key_value_heads": 5}, "num_key_value_heads"),
        ({"hidden_size": 2047}, "head_dim"),
        ({"sliding_window": 512}, "sliding_window"),
        ({"num_experts": 8}, "num_experts"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": ["linear_attention"] * 16}, "layer_types"),
        ({"layer_types": ["sliding_attention"] * 16}, "sliding_window"),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8}, "max_window_layers"),
        ({**QWEN_MOE, "num_experts_per_tok": 129}, "num_experts_per_tok"),
        ({"expert_correlation": 0}, "expert_correlation"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
    ],
)
def test_a_contradiction_is_refused_at_its_field(change: dict[str, object], field: str) -> None:
    assert set(faults({**LLAMA, **change})) == {field}


def test_a_fault_inside_a_larger_spec_keeps_its_path() -> None:
    class Deployment(Spec):
        """A spec that holds a model."""

        model: ModelSpec

    with pytest.raises(ValidationError) as caught:
        Deployment.model_validate({"model": {**LLAMA, "model_type": "lama"}})
    assert [fault["loc"] for fault in caught.value.errors()] == [("model", "model_type")]


@pytest.mark.parametrize("given", [None, 3, "llama-3.1-8b", ["llama"]])
def test_what_is_no_mapping_is_refused(given: object) -> None:
    assert set(faults(given)) == {""}


def test_a_model_survives_dumping_and_pickling() -> None:
    model = ModelSpec.model_validate(QWEN_MOE)
    assert model.params_total > 0
    for copy in (ModelSpec.model_validate(model.model_dump()), pickle.loads(pickle.dumps(model))):
        assert copy == model
        assert hash(copy) == hash(model)


def test_a_changed_copy_keeps_no_figure_of_the_old_shape() -> None:
    model = ModelSpec.model_validate(LLAMA)
    before = model.params_total
    early_exit = model.model_copy(update={"num_hidden_layers": 4})
    assert early_exit.params_total == before - 12 * (before - 2048 - model.head_elements) // 16
    with pytest.raises(ValidationError):
        model.model_copy(update={"num_hidden_layers": 0})


@given(st.dictionaries(st.text(max_size=12), st.none() | st.integers() | st.text(max_size=5) | st.floats()))
def test_no_mapping_gives_anything_but_a_model_or_its_faults(noise: dict[str, object]) -> None:
    for config in (noise, {**noise, **LLAMA}, {**LLAMA, **noise}):
        with contextlib.suppress(ValidationError):
            assert ModelSpec.model_validate(config).params_total > 0
