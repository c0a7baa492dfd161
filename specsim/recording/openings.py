"""Prompts that the target writes itself: it goes on with the first words of a user's turn.

A model trained on chats has seen users as well as answers, and so knows how prompts go on (Magpie; Xu et
al. 2024). Templates alone are too even: a head trained on them finds other people's prompts hard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from specsim.errors import ConfigError
from specsim.recording.generate import generate
from specsim.recording.models import LanguageModel
from specsim.recording.warp import Warp
from specsim.streams import Purpose, RandomStreams
from specsim.writing import write_whole

_TEMPERATURE = 0.9
_MAX_TOKENS = 36


def complete_openings(
    target: LanguageModel,
    openings: Sequence[str],
    count: int,
    *,
    batch_size: int,
    seed: int,
    parts: Path,
    on_prompt: Callable[[int], None] = lambda _: None,
) -> list[str]:
    """Let the target finish openings drawn at random; batches that lie in ``parts`` already are read.

    Parameters
    ----------
    target
        The model that writes; its tokenizer needs a chat template.
    openings
        First words of a user's turn; an empty one leaves the whole turn to the target.
    count
        Turns to write. Fewer prompts come back where some are empty or the same.
    batch_size
        Turns written together.
    seed
        Seed of the draws.
    parts
        Folder of finished batches.
    on_prompt
        Told how many turns there are after each batch.

    Raises
    ------
    ConfigError
        A finished batch that is not one of these.
    """
    parts.mkdir(parents=True, exist_ok=True)
    prompts: dict[str, None] = {}
    for number, first in enumerate(range(0, count, batch_size)):
        size = min(batch_size, count - first)
        file = parts / f"prompts-{number:04d}.json"
        luck = RandomStreams(seed).generator(Purpose.TRAINING, 3, number)
        chosen = [openings[index] for index in luck.integers(len(openings), size=size)]
        if file.is_file():
            said = _read(file, chosen)
        else:
            turns = generate(
                target,
                [target.encode_opening(opening) for opening in chosen],
                luck.random((size, _MAX_TOKENS)),
                warp=Warp(_TEMPERATURE),
                on_tokens=lambda _: None,
                keeps_probabilities=False,
            )
            said = [
                (opening + target.decode(turn.token)).strip()
                for opening, turn in zip(chosen, turns, strict=True)
            ]
            write_whole(file, json.dumps(said))
        prompts |= dict.fromkeys(prompt for prompt in said if prompt)
        on_prompt(first + size)
    return list(prompts)


def _read(file: Path, openings: Sequence[str]) -> list[str]:
    try:
        said = json.loads(file.read_text())
    except ValueError:
        said = None
    if (
        not isinstance(said, list)
        or len(said) != len(openings)
        or not all(
            isinstance(turn, str) and turn.startswith(opening.strip())
            for turn, opening in zip(said, openings, strict=True)
        )
    ):
        raise ConfigError(f"{file}: prompts of other openings; remove {file.parent} to start again")
    return said
