"""Prompts of one domain and language, in one YAML file, and their tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field

from specsim.arrays import Ints
from specsim.config import Spec, read, validate
from specsim.config.validate import nearest
from specsim.errors import ConfigError

_SHIPPED = Path(__file__).parent / "prompts"


class PromptSet(Spec):
    """Prompts of one domain in one language."""

    name: str = Field(min_length=1)
    """Name of the set."""
    domain: str = Field(min_length=1)
    """Domain of its prompts, such as ``chat`` or ``code``."""
    language: str = Field(min_length=2)
    """Language of its prompts, such as ``en``."""
    source: str = Field(min_length=1)
    """Who wrote the prompts, and their licence."""
    style: Literal["chat", "plain"] = "chat"
    """``chat``: a user's turn in the model's own template. ``plain``: text that the model goes on with."""
    prompts: tuple[str, ...] = Field(min_length=1)
    """The prompts, each once."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt as the target sees it."""

    tokens: Ints
    """Token ids, [M]."""
    domain: str
    language: str
    luck_key: int
    """Keys the prompt's uniforms: by its text, so that it has the same luck whatever it is recorded with."""


class Encoder(Protocol):
    """What turns text into a model's tokens."""

    def encode(self, text: str, *, style: Literal["chat", "plain"]) -> Ints:
        """Token ids of a prompt, [M]."""
        ...


def load_prompt_set(name_or_path: str | Path) -> PromptSet:
    """Read a prompt set: a YAML file, or the name of a shipped one.

    Raises
    ------
    ConfigError
        No such set, or a faulty file.

    Examples
    --------
    >>> load_prompt_set("chat").domain
    'chat'
    """
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml", ".json"):
        path = _SHIPPED / f"{name_or_path}.yaml"
        if not path.is_file():
            near = nearest(str(name_or_path), shipped_prompt_sets())
            hint = f"did you mean '{near}'?" if near else f"shipped: {', '.join(shipped_prompt_sets())}"
            raise ConfigError(f"no prompt set '{name_or_path}'; {hint}")
    prompt_set = validate(PromptSet, read(path))
    seen: set[str] = set()
    for prompt in prompt_set.prompts:
        if prompt in seen:
            raise ConfigError(
                f"{path}: the prompt '{prompt[:40]}' is there twice; a prompt is the unit of resampling"
            )
        seen.add(prompt)
    return prompt_set


def shipped_prompt_sets() -> tuple[str, ...]:
    """Names of the prompt sets that come with specsim, sorted."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def encode_prompts(prompt_sets: Sequence[PromptSet], encoder: Encoder) -> list[Prompt]:
    """Prompts of all sets in order, as tokens; an empty prompt is a ConfigError."""
    prompts = []
    for prompt_set in prompt_sets:
        for text in prompt_set.prompts:
            tokens = encoder.encode(text, style=prompt_set.style)
            if len(tokens) == 0:
                raise ConfigError(f"prompt set '{prompt_set.name}': '{text[:40]}' has no tokens")
            digest = hashlib.sha256(text.encode()).digest()
            key = int.from_bytes(digest[:8], "little")
            prompts.append(Prompt(tokens, prompt_set.domain, prompt_set.language, key))
    return prompts


def describe_sources(prompt_sets: Sequence[PromptSet]) -> str:
    """One line for the header of a trace: the sets, a digest of their texts, and where they come from."""
    names = ", ".join(prompt_set.name for prompt_set in prompt_sets)
    text = "\0".join(
        prompt for prompt_set in prompt_sets for prompt in (prompt_set.style, *prompt_set.prompts)
    )
    sources = "; ".join(dict.fromkeys(prompt_set.source for prompt_set in prompt_sets))
    return f"{names} (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}): {sources}"
