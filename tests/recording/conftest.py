"""A language model small enough for a test: random weights, three layers, a tokenizer of 24 words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
