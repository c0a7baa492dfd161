"""What a target says to training prompts, written in batches that survive a kill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from specsim.errors import ConfigError
from specsim.recording.generate import generate
from specsim.recording.models import LanguageModel
from specsim.recording.train import TrainingText
from specsim.recording.warp import Warp
from specsim.speculation.array_file import read_arrays, write_arrays
from specsim.streams import Purpose, RandomStreams


def write_texts(
    target: LanguageModel,
    prompts: Sequence[str],
    *,
    temperature: float,
    max_tokens: int,
    batch_size: int,
    seed: int,
    parts: Path,
    on_text: Callable[[int], None] = lambda _: None,
) -> list[TrainingText]:
    """Sample one text a prompt; batches that lie in ``parts`` already are read.

    Parameters
    ----------
    target
        The model that writes.
    prompts
        User's turns for its chat template.
    temperature, max_tokens
        How it is sampled, and where its texts are cut.
    batch_size
        Texts written together.
    seed
        Seed of the sampling.
    parts
        Folder of finished batches.
    on_text
        Told how many texts there are after each batch.

    Raises
    ------
    ConfigError
        A finished batch of other prompts.
    """
    parts.mkdir(parents=True, exist_ok=True)
    texts: list[TrainingText] = []
    for number, first in enumerate(range(0, len(prompts), batch_size)):
        ids = [target.encode(prompt, style="chat") for prompt in prompts[first : first + batch_size]]
        file = parts / f"{number:04d}.npz"
        if file.is_file():
            batch = _read(file)
            if [text.num_prompt_tokens for text in batch] != [len(prompt) for prompt in ids]:
                raise ConfigError(f"{file}: texts of other prompts; remove {parts} to start again")
        else:
            luck = RandomStreams(seed).generator(Purpose.TRAINING, 1, number).random((len(ids), max_tokens))
            said = generate(
                target,
                ids,
                luck,
                warp=Warp(temperature),
                on_tokens=lambda _: None,
                keeps_probabilities=False,
            )
            batch = [TrainingText(np.concatenate([one.prompt, one.token]), len(one.prompt)) for one in said]
            _write(file, batch)
        texts += batch
        on_text(len(texts))
    return texts


def _write(file: Path, texts: Sequence[TrainingText]) -> None:
    arrays = {
        "ids": np.concatenate([text.ids for text in texts]).astype(np.int32),
        "num_tokens": np.array([len(text.ids) for text in texts], dtype=np.int32),
        "num_prompt_tokens": np.array([text.num_prompt_tokens for text in texts], dtype=np.int32),
    }
    write_arrays(file, arrays)


def _read(file: Path) -> list[TrainingText]:
    arrays = read_arrays(file)
    try:
        num_tokens, prompts = arrays["num_tokens"].astype(int), arrays["num_prompt_tokens"].astype(int)
        pieces = np.split(arrays["ids"].astype(np.int64), np.cumsum(num_tokens)[:-1])
        return [TrainingText(ids, int(count)) for ids, count in zip(pieces, prompts, strict=True)]
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{file}: not a batch of training texts ({error})") from None
