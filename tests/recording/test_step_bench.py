"""Timed steps of real networks, small ones with random weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.errors import ConfigError, DomainError  # noqa: E402
from specsim.recording.cached import CachedNetwork  # noqa: E402
from specsim.recording.step_bench import NetworkBench, load_bench  # noqa: E402

CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
    "tie_word_embeddings": True,
}


@pytest.fixture
def bench(tmp_path: Path) -> NetworkBench:
    torch.set_num_threads(1)
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG))
    return load_bench(str(path), device="cpu", dtype="float32")


def test_random_network_has_the_shape_of_its_config(bench: NetworkBench) -> None:
    assert sum(weight.numel() for weight in bench.network.parameters()) == bench.spec.params_total
    assert bench.spec.name == "tiny"


def test_model_column_can_be_read_back(bench: NetworkBench) -> None:
    assert json.loads(bench.model)["hidden_size"] == 32


@pytest.mark.parametrize(("positions", "sequences", "context"), [(1, 1, 0), (4, 1, 17), (6, 3, 600)])
def test_step_leaves_the_cache_as_it_was(
    bench: NetworkBench, positions: int, sequences: int, context: int
) -> None:
    bench.prepare("verify", positions, sequences, context)
    for _ in range(2):
        time = bench.step()
        assert time.device_s is not None
        assert time.device_s > 0.0
        assert bench._cached.cache.get_seq_length() == context


def test_static_cache_gives_the_logits_of_the_growing_one(bench: NetworkBench) -> None:
    ids = torch.arange(12)[None] % 50
    found = []
    for cached in (CachedNetwork(bench.network), CachedNetwork(bench.network, max_tokens=12)):
        with torch.inference_mode():
            cached.logits(ids[:, :8])
            cached.logits(ids[:, 8:] + 1)
            cached.take_back(4)
            found.append(cached.logits(ids[:, 8:]))
        assert cached.num_tokens == 12
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_replayed_graph_draws_the_tokens_of_the_eager_step(bench: NetworkBench) -> None:
    torch.manual_seed(0)
    network = bench.network.to("cuda")
    tokens = []
    for uses_graphs in (False, True):
        one = NetworkBench(network, bench.spec, dtype="float32", uses_graphs=uses_graphs)
        one.prepare("verify", 4, 1, 64)
        one.step()
        tokens.append(one._run())
    assert tokens[0] == tokens[1]


def test_several_threads_have_no_time_of_their_own(bench: NetworkBench) -> None:
    torch.set_num_threads(2)
    try:
        bench.prepare("decode", 1, 1, 8)
        assert bench.step().device_s is None
    finally:
        torch.set_num_threads(1)


def test_positions_that_do_not_divide_are_refused(bench: NetworkBench) -> None:
    with pytest.raises(DomainError, match="cannot be spread"):
        bench.prepare("verify", 5, 2, 0)


def test_real_weights_are_measured_in_their_own_shape(model_folder: Path) -> None:
    bench = load_bench(str(model_folder), device="cpu", dtype="float32")
    assert bench.spec.num_layers == 3
    bench.prepare("prefill", 8, 1, 0)
    assert bench.step().wall_s > 0


def test_model_that_is_nowhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="no model 'nothing-7b'"):
        load_bench("nothing-7b", device="cpu")
