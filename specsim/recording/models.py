"""Causal language models from disk: a Hugging Face directory or a GGUF file, with tokenizer and hash."""

from __future__ import annotations

import contextlib
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from specsim.arrays import Ints
from specsim.errors import ConfigError, DomainError

_CHUNK_BYTES = 2**22
_PLACE = "here-stands-what-the-user-says"
"""Put through a chat template, it shows what the template writes before the user's words."""
Device = Literal["auto", "cpu", "cuda"]
Dtype = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A causal language model in evaluation mode, and the tokenizer that it was trained with."""

    name: str
    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sha256: str
    """Of its weight files, in the order of their names."""
    dtype: Dtype
    """Precision of the arithmetic."""

    @property
    def vocabulary_size(self) -> int:
        """Width of the model's logits, padding rows included."""
        return int(self.network.config.get_text_config().vocab_size)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.network.device

    @property
    def max_tokens(self) -> int | None:
        """Longest context that the model was made for, tokens; None where the configuration does not say."""
        limit = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)
        return None if limit is None else int(limit)

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a continuation."""
        generation = getattr(self.network, "generation_config", None)
        ends = [self.tokenizer.eos_token_id, self.network.config.get_text_config().eos_token_id]
        ends.append(None if generation is None else generation.eos_token_id)
        flat = [end for item in ends for end in (item if isinstance(item, list) else [item])]
        return frozenset(int(end) for end in flat if end is not None)

    def encode(self, text: str, *, style: Literal["chat", "plain"]) -> Ints:
        """Token ids of a prompt, [M]: a user's turn in the chat template, or the text as it is."""
        if style == "plain":
            return np.asarray(self.tokenizer(text)["input_ids"], dtype=np.int64)
        return np.asarray(
            self.tokenizer(self._chat(text), add_special_tokens=False)["input_ids"], dtype=np.int64
        )

    def encode_opening(self, opening: str) -> Ints:
        """Token ids of a user's turn that is not finished, [M]: the model goes on as the user."""
        before, _ = self._chat(_PLACE).split(_PLACE)
        tokens = self.tokenizer(before + opening, add_special_tokens=False)["input_ids"]
        return np.asarray(tokens, dtype=np.int64)

    def decode(self, tokens: Ints) -> str:
        """Text of token ids without the marks of turns."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def _chat(self, text: str) -> str:
        if self.tokenizer.chat_template is None:
            raise ConfigError(
                f"the tokenizer of '{self.name}' has no chat template; use prompts of style 'plain'"
            )
        turns = [{"role": "user", "content": text}]
        return str(self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))


def load_language_model(
    path: str | Path, *, device: Device = "auto", dtype: Dtype = "float32"
) -> LanguageModel:
    """Load a model from a Hugging Face directory or a GGUF file; nothing is downloaded.

    Parameters
    ----------
    path
        The directory, or the ``.gguf`` file.
    device
        ``auto`` takes CUDA where there is one.
    dtype
        Precision of the arithmetic; low-bit weights are expanded to it.

    Raises
    ------
    ConfigError
        Nothing there, not a causal language model, or without a tokenizer.
    """
    path = Path(path)
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device 'cuda' was asked for, but torch finds none")
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    files = _weight_files(path)
    is_gguf = path.suffix == ".gguf"
    folder = str(path.parent if is_gguf else path)
    options = {"gguf_file": path.name} if is_gguf else {}
    try:
        # The libraries draw bars and hints of their own; the recorder's bar is the only one.
        with contextlib.redirect_stderr(io.StringIO()):
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **options)
            network = AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, dtype=getattr(torch, dtype), **options
            )
    except Exception as error:
        # What the libraries raise at a broken file is not declared, and differs from version to version.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(f"{path}: cannot be loaded as a causal language model: {reason}") from None
    network.to(chosen).eval()
    return LanguageModel(path.stem if is_gguf else path.name, network, tokenizer, _hash(files), dtype)


def check_same_tokenizer(target: LanguageModel, draft: LanguageModel) -> None:
    """Refuse a draft whose token ids mean something else than the target's.

    Raises
    ------
    DomainError
        Names the first id that differs and what it means to either.
    """
    ours = {index: token for token, index in target.tokenizer.get_vocab().items()}
    theirs = {index: token for token, index in draft.tokenizer.get_vocab().items()}
    if ours == theirs:
        return
    first = min(index for index in ours.keys() | theirs.keys() if ours.get(index) != theirs.get(index))
    raise DomainError(
        f"tokenizers differ at id {first}: {_shown(ours.get(first))} in target '{target.name}', "
        f"{_shown(theirs.get(first))} in draft '{draft.name}'; the draft must share the target's vocabulary"
    )


def _shown(token: str | None) -> str:
    return "nothing" if token is None else repr(token)


def _weight_files(path: Path) -> list[Path]:
    if path.suffix == ".gguf" and path.is_file():
        return [path]
    if path.is_dir():
        files = sorted(path.glob("*.safetensors")) or sorted(path.glob("*.bin"))
        if files and (path / "config.json").is_file():
            return files
        raise ConfigError(f"{path}: not a Hugging Face model: it needs config.json and *.safetensors")
    raise ConfigError(f"{path}: no such model; give a Hugging Face directory or a .gguf file")


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
