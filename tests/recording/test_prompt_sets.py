"""Prompt sets: the shipped ones and faulty ones."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from specsim.arrays import Ints
from specsim.errors import ConfigError
from specsim.recording import PromptSet, load_prompt_set
from specsim.recording.prompt_sets import describe_sources, encode_prompts, shipped_prompt_sets


class Characters:
    """Encodes text as its characters."""

    def encode(self, text: str, *, style: Literal["chat", "plain"]) -> Ints:
        return np.array([ord(letter) for letter in text], dtype=np.int64)


def prompt_set(*prompts: str, **changes: str) -> PromptSet:
    fields = {"name": "a", "domain": "chat", "language": "en", "source": "the test", "prompts": prompts}
    return PromptSet.model_validate(fields | changes)


@pytest.mark.parametrize("name", shipped_prompt_sets())
def test_a_shipped_set_is_the_project_s_own(name: str) -> None:
    shipped = load_prompt_set(name)
    assert shipped.name == name
    assert "written for specsim" in shipped.source
    assert len(shipped.prompts) >= 12


def test_a_prompt_has_the_same_luck_in_any_set() -> None:
    alone = encode_prompts([prompt_set("one")], Characters())
    among = encode_prompts([prompt_set("two", "one", domain="code")], Characters())
    assert among[1].luck_key == alone[0].luck_key
    assert among[0].luck_key != alone[0].luck_key
    assert among[1].tokens.tolist() == [111, 110, 101]


def test_sources_name_the_texts_by_a_digest() -> None:
    first = describe_sources([prompt_set("one", "two")])
    assert first == describe_sources([prompt_set("one", "two")])
    assert first != describe_sources([prompt_set("one", "three")])
    assert first.endswith(": the test")


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no prompt set 'chatt'; did you mean 'chat'"):
        load_prompt_set("chatt")
    with pytest.raises(ConfigError, match="shipped: chat"):
        load_prompt_set("zzz")


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no tokens"):
        encode_prompts([prompt_set("")], Characters())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\ndomain: b\nlanguage: en\nsource: s\nprompts: []\n", "prompts"),
        ("name: a\ndomain: b\nlanguage: en\nsource: s\nprompts: [x, x]\n", "'x' is there twice"),
        ("name: a\ndomain: b\nlanguage: en\nsource: s\nprompt: [x]\n", "did you mean 'prompts'"),
    ],
)
def test_a_faulty_set_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "set.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_prompt_set(path)
