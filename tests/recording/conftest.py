"""A language model small enough for a test: random weights, three layers, a tokenizer of 24 words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from specsim.recording import LanguageModel

WORDS = [f"w{number}" for number in range(20)]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "tiny", words=WORDS, seed=3)


@pytest.fixture(scope="session")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a model of the same tokenizer whose vocabulary is padded by eight rows."""
    return save_model(tmp_path_factory.mktemp("models") / "padded", words=WORDS, seed=4, num_padding=8)


@pytest.fixture(scope="session")
def stranger_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a model whose tokenizer swaps two words."""
    swapped = [*WORDS[:5], WORDS[6], WORDS[5], *WORDS[7:]]
    return save_model(tmp_path_factory.mktemp("models") / "stranger", words=swapped, seed=5)


@pytest.fixture(scope="module")
def target(model_folder: Path) -> LanguageModel:
    from specsim.recording import load_language_model

    return load_language_model(model_folder, device="cpu")


@pytest.fixture(scope="module")
def other(other_folder: Path) -> LanguageModel:
    from specsim.recording import load_language_model

    return load_language_model(other_folder, device="cpu")


def save_model(folder: Path, *, words: list[str], seed: int, num_padding: int = 0) -> Path:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    # Threads of so small a model only wait for each other.
    torch.set_num_threads(1)
    vocabulary = {word: index for index, word in enumerate(["<unk>", "<s>", "</s>", "<user>", *words])}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = "{% for message in messages %}<user> {{ message['content'] }} {% endfor %}"
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary) + num_padding,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=2,
        # Large enough that distributions are far from flat and differ from token to token.
        initializer_range=0.8,
    )
    torch.manual_seed(seed)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_gguf(path: Path, *, seed: int, words: list[str] | None = None) -> Path:
    """Save a model of one layer whose tokenizer knows a few words and their letters, in one GGUF file."""
    gguf = pytest.importorskip("gguf", reason="gguf is not installed")
    width, heads, inner = 16, 2, 32
    letters = ["▁", "w", "1", "2", "3", "▁w"]
    pieces = ["<unk>", "<s>", "</s>", *letters, *(f"▁{word}" for word in words or ["w1", "w2", "w3"])]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_dimension_count(width // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(place) for place in range(len(pieces))])
    marks = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    writer.add_token_types([*marks, *[gguf.TokenType.NORMAL] * (len(pieces) - len(marks))])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    rng = np.random.default_rng(seed)
    shapes = {
        "token_embd": (len(pieces), width),
        "output": (len(pieces), width),
        "blk.0.attn_q": (width, width),
        "blk.0.attn_k": (width, width),
        "blk.0.attn_v": (width, width),
        "blk.0.attn_output": (width, width),
        "blk.0.ffn_gate": (inner, width),
        "blk.0.ffn_up": (inner, width),
        "blk.0.ffn_down": (width, inner),
    }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(0, 0.8, shape).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
