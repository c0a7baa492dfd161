"""Models spread over several devices."""

from __future__ import annotations

import numpy as np
import pytest

from specsim.errors import ConfigError
from specsim.hardware import ModelSpec, load_model, load_profile
from specsim.hardware.parallel import AllReduce, all_to_all_time, allreduce_time, num_cache_shards
from tests.hardware.shapes import decode, seconds

_H100 = load_profile("h100-sxm.datasheet")
_LLAMA_70B = load_model("llama-3.1-70b")
_MIXTRAL = load_model("mixtral-8x7b")
_SMALL_DRAFT = ModelSpec.model_validate(
    {
        "name": "small-draft",
        "model_type": "llama",
        "hidden_size": 768,
        "intermediate_size": 2048,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "vocab_size": 32000,
    }
)


def test_allreduce_follows_latency_and_bus_bandwidth() -> None:
    law = AllReduce(num_devices=8, latency_s=5.4e-6, bus_bandwidth_bytes_per_s=376e9)
    assert allreduce_time(law, np.array([0.0, 1e6])).tolist() == [5.4e-6, 5.4e-6 + 2 * 7 / 8 * 1e6 / 376e9]


def test_all_to_all_of_two_devices_moves_a_quarter_of_the_message() -> None:
    law = AllReduce(num_devices=2, latency_s=0.0, bus_bandwidth_bytes_per_s=1e9)
    assert all_to_all_time(law, np.array([8e9])).tolist() == [2.0]


def test_a_small_draft_gets_slower_with_tensor_parallelism() -> None:
    one, four = (
        seconds(_H100.cost_model(_SMALL_DRAFT, role="draft", tensor_parallel_size=n).steps(decode()))
        for n in (1, 4)
    )
    assert four > one


def test_a_large_model_gets_faster_with_tensor_parallelism() -> None:
    two, four, eight = (
        seconds(_H100.cost_model(_LLAMA_70B, tensor_parallel_size=n).steps(decode())) for n in (2, 4, 8)
    )
    assert eight < four < two < 2 * four


def test_communication_is_two_allreduces_a_layer() -> None:
    costs = _H100.cost_model(_LLAMA_70B, tensor_parallel_size=4).steps(decode(positions=8))
    message_bytes = 8 * 8192 * 2
    assert costs.communication_s == pytest.approx([2 * 80 * (4.9e-6 + 1.5 * message_bytes / 302e9)])


def test_one_device_communicates_nothing() -> None:
    assert _H100.cost_model(_LLAMA_70B).steps(decode()).communication_s.tolist() == [0.0]


def test_eager_launch_pays_its_own_latency() -> None:
    captured, eager = (
        _H100.cost_model(_LLAMA_70B, tensor_parallel_size=4, is_eager=is_eager).steps(decode())
        for is_eager in (False, True)
    )
    assert eager.communication_s - captured.communication_s == pytest.approx([160 * (21e-6 - 4.9e-6)])


def test_eager_launch_without_its_latency_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'rtx-4090' has no links.eager_allreduce_latency_s"):
        load_profile("rtx-4090.datasheet").cost_model(_LLAMA_70B, tensor_parallel_size=2, is_eager=True)


def test_an_unmeasured_number_of_devices_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no all-reduce among 3 devices \(links.allreduce: 2, 4, 8\)"):
        _H100.cost_model(_LLAMA_70B, tensor_parallel_size=3)
    with pytest.raises(ConfigError, match=r"no all-reduce among 2 devices \(links.allreduce: none\)"):
        load_profile("m2-ultra.datasheet").cost_model(_LLAMA_70B, tensor_parallel_size=2)


def test_energy_is_that_of_all_devices() -> None:
    two, four = (_H100.cost_model(_LLAMA_70B, tensor_parallel_size=n).steps(decode()) for n in (2, 4))
    assert four.bytes.tolist() == two.bytes.tolist()
    active_w = 110
    moved_j = [
        costs.energy_nj[0] * 1e-9 - n * active_w * seconds(costs) for n, costs in ((2, two), (4, four))
    ]
    assert moved_j[0] == pytest.approx(moved_j[1], rel=1e-6)


def test_cache_is_copied_where_heads_run_out() -> None:
    assert num_cache_shards(_LLAMA_70B, 4) == 4
    assert num_cache_shards(_LLAMA_70B, 16) == 8
    assert num_cache_shards(load_model("deepseek-v3"), 8) == 1
    one_head = _SMALL_DRAFT.model_copy(update={"num_key_value_heads": 1})
    one, four = (
        _H100.cost_model(one_head, tensor_parallel_size=n).steps(decode(context=[0, 10_000])) for n in (1, 4)
    )
    assert np.diff(four.bytes) == pytest.approx(4 * np.diff(one.bytes))
    assert np.diff(four.limit_s) == pytest.approx(np.diff(one.limit_s) / 4)


def test_expert_parallelism_replaces_the_second_allreduce_of_a_layer_by_two_all_to_alls() -> None:
    shape = decode(positions=16)
    tensor, expert = (
        _H100.cost_model(_MIXTRAL, tensor_parallel_size=4, is_expert_parallel=is_expert).steps(shape)
        for is_expert in (False, True)
    )
    message_bytes = 16 * 4096 * 2
    reduce_s = 4.9e-6 + 1.5 * message_bytes / 302e9
    exchange_s = 4.9e-6 + 3 / 16 * 2 * message_bytes / 302e9
    assert tensor.communication_s == pytest.approx([64 * reduce_s])
    assert expert.communication_s == pytest.approx([32 * reduce_s + 64 * exchange_s])
    assert expert.memory_s.tolist() == tensor.memory_s.tolist()


def test_a_dense_model_has_no_experts_to_spread() -> None:
    with pytest.raises(ConfigError, match=r"'llama-3.1-70b' has no experts to spread"):
        _H100.cost_model(_LLAMA_70B, tensor_parallel_size=4, is_expert_parallel=True)
