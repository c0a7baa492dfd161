"""What a pass reads, computes and caches: closed forms and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import DomainError
from specsim.hardware.model import ModelSpec
from specsim.hardware.moe import expected_distinct_experts

SHAPE: dict[str, object] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}
EXPERTS: dict[str, object] = {"moe_intermediate_size": 32, "num_experts_per_tok": 2}


@st.composite
def models(draw: st.DrawFn) -> ModelSpec:
    """Small models of several architectures."""
    kind = draw(st.sampled_from(["llama", "gemma2", "qwen3_moe", "mixtral", "deepseek_v3", "t5"]))
    config = {**SHAPE, "model_type": kind, "num_hidden_layers": draw(st.integers(1, 6))}
    if kind in ("qwen3_moe", "mixtral", "deepseek_v3"):
        config |= {**EXPERTS, "num_experts": draw(st.integers(2, 40))}
        config |= {"expert_correlation": draw(st.floats(0.1, 1.0))}
    if kind == "deepseek_v3":
        config |= {"kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
        config |= {"n_shared_experts": 1, "first_k_dense_replace": draw(st.integers(0, 3))}
    if kind == "t5":
        config |= {"num_key_value_heads": None, "num_encoder_layers": draw(st.integers(1, 6))}
    if kind == "gemma2":
        config |= {"sliding_window": draw(st.integers(1, 5000))}
    return ModelSpec.model_validate(config)


@pytest.mark.parametrize(
    ("num_experts", "per_token", "num_positions", "distinct"),
    [
        *((8, 2, n, d) for n, d in ((1, 2), (2, 3.5), (4, 5.469), (5, 6.102), (8, 7.199))),
        *((256, 8, n, d) for n, d in ((1, 8), (2, 15.75), (4, 30.53), (5, 37.58), (8, 57.42))),
        *((128, 8, n, d) for n, d in ((1, 8), (2, 15.5), (4, 29.12), (5, 35.3), (8, 51.62))),
    ],
)
def test_distinct_experts_match_the_closed_form(
    num_experts: int, per_token: int, num_positions: int, distinct: float
) -> None:
    found = expected_distinct_experts(num_experts, per_token, np.array([num_positions]))
    assert found[0] == pytest.approx(distinct, abs=0.006)


def test_distinct_experts_match_a_simulation_of_independent_choice() -> None:
    generator = np.random.default_rng(0)
    chosen = generator.random((4000, 6, 16)).argsort(axis=-1)[..., :3].reshape(4000, -1)
    counted = np.array([len(set(row)) for row in chosen.tolist()])
    expected = expected_distinct_experts(16, 3, np.array([6]))[0]
    assert abs(counted.mean() - expected) < 4 * counted.std() / np.sqrt(4000)


def test_correlation_meets_the_experts_measured_on_an_h100() -> None:
    # 256 experts, 8 a token: 100 distinct experts measured at 16 positions, 182 at 64.
    assert expected_distinct_experts(256, 8, np.array([16]), correlation=0.98)[0] == pytest.approx(100, abs=1)
    assert expected_distinct_experts(256, 8, np.array([64]), correlation=0.81)[0] == pytest.approx(182, abs=1)


@given(
    st.integers(1, 300).flatmap(lambda experts: st.tuples(st.just(experts), st.integers(1, experts))),
    st.floats(0.01, 1.0),
)
def test_distinct_experts_begin_at_k_grow_and_never_exceed_all(
    experts: tuple[int, int], correlation: float
) -> None:
    num_experts, per_token = experts
    found = expected_distinct_experts(
        num_experts, per_token, np.array([0, 1, 2, 3, 10, 1000]), correlation=correlation
    )
    assert found[0] == 0
    assert found[1] == pytest.approx(per_token)
    assert np.all(np.diff(found) >= -1e-9)
    assert found[-1] <= num_experts * (1 + 1e-12)


@pytest.mark.parametrize(
    ("num_experts", "per_token", "num_positions", "correlation"),
    [(8, 9, 1, 1.0), (8, 0, 1, 1.0), (8, 2, -1, 1.0), (8, 2, 1, 0.0), (8, 2, 1, 1.1), (8, 2, 1, np.nan)],
)
def test_distinct_experts_refuse_what_is_no_mixture(
    num_experts: int, per_token: int, num_positions: int, correlation: float
) -> None:
    with pytest.raises(DomainError):
        expected_distinct_experts(num_experts, per_token, np.array([num_positions]), correlation=correlation)


@given(models())
def test_reads_never_fall_with_positions_and_never_exceed_all_weights(model: ModelSpec) -> None:
    read = model.weight_elements_read(np.arange(1, 400))
    assert np.all(np.diff(read) >= -1e-6 * read[:-1])
    assert read[-1] <= (model.common_elements + model.expert_elements) * (1 + 1e-12)
    assert read[-1] < model.params_total


@given(models())
def test_one_position_reads_and_computes_the_active_weights(model: ModelSpec) -> None:
    read = model.weight_elements_read(np.array([1]))[0]
    assert model.flops_per_position == pytest.approx(2 * read, rel=1e-9)


@given(models())
def test_layers_head_embedding_and_encoder_are_all_parameters(model: ModelSpec) -> None:
    everything = (
        model.weight_elements_read(np.array([10**6]))[0]
        if model.expert_correlation == 1
        else (model.common_elements + model.expert_elements)
    )
    apart = model.head_elements + model.embedding_elements + model.encoder_elements
    assert everything + apart == pytest.approx(model.params_total, rel=1e-9)
    assert model.params_active <= model.params_total


@given(models(), st.lists(st.integers(1, 5000), min_size=1, max_size=40))
def test_a_pass_reads_the_same_whatever_else_is_asked_for(model: ModelSpec, positions: list[int]) -> None:
    together = model.weight_elements_read(np.array(positions))
    alone = [model.weight_elements_read(np.array([one]))[0] for one in positions]
    assert together.tolist() == alone


@given(models(), st.floats(0, 1e6), st.floats(0, 1e6))
def test_attended_tokens_grow_with_context_and_never_exceed_it(
    model: ModelSpec, first: float, more: float
) -> None:
    fewer, all_of_them = model.attended(np.array([first, first + more]))
    assert fewer <= all_of_them * (1 + 1e-12)
    assert all_of_them <= (first + more) * (1 + 1e-12)


@given(models(), st.integers(1, 6))
def test_a_prefix_of_the_layers_costs_no_more_than_the_whole(model: ModelSpec, num_layers: int) -> None:
    prefix = model.model_copy(update={"num_hidden_layers": min(num_layers, model.num_layers)})
    for figure in ("params_total", "kv_elements_per_token", "flops_per_position", "attention_flops_per_pair"):
        assert getattr(prefix, figure) <= getattr(model, figure)


def test_attention_flops_of_grouped_queries_are_four_a_query_element() -> None:
    model = ModelSpec.model_validate({**SHAPE, "model_type": "llama"})
    assert model.attention_flops_per_pair == 4 * 5 * 64


def test_tied_embeddings_are_counted_once() -> None:
    tied = ModelSpec.model_validate({**SHAPE, "model_type": "llama", "tie_word_embeddings": True})
    untied = ModelSpec.model_validate({**SHAPE, "model_type": "llama", "tie_word_embeddings": False})
    assert (tied.embedding_elements, untied.embedding_elements) == (0, 64_000)
    assert tied.head_elements == untied.head_elements == 64_000
    assert untied.params_total - tied.params_total == 64_000


def test_a_t5_prompt_position_passes_through_as_many_weights_as_a_generated_one() -> None:
    model = ModelSpec.model_validate(
        {**SHAPE, "model_type": "t5", "num_key_value_heads": None, "num_encoder_layers": 5}
    )
    norms = 5 * 64
    assert model.encoder_elements == model.common_elements - norms
