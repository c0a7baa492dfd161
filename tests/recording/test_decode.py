"""Real speculative decoding keeps the target's law, whatever drafts."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from scipy.stats import chi2_contingency  # noqa: E402

from specsim.recording import LanguageModel, PromptLookup, early_exit, load_language_model  # noqa: E402
from specsim.recording.decode import Decoded, Drafter, LookupDrafter, NetworkDrafter, decode  # noqa: E402
from specsim.recording.warp import Warp  # noqa: E402
from specsim.streams import Purpose, RandomStreams  # noqa: E402

PROMPT = [4, 7, 5, 9, 4, 7]


@cache
def _loaded(folder: Path) -> LanguageModel:
    return load_language_model(folder, device="cpu")


def _decoded(
    folder: Path, kind: str, count: int, *, temperature: float, seed: int, max_tokens: int = 12
) -> Decoded:
    target = _loaded(folder)
    warp = Warp(temperature)
    drafter: Drafter = (
        LookupDrafter(PromptLookup(num_proposed=8))
        if kind == "lookup"
        else NetworkDrafter(early_exit(target, 2, warp).network, warp)
    )
    return decode(
        target.network,
        drafter,
        PROMPT,
        num_speculative_tokens=count,
        max_tokens=max_tokens,
        warp=warp,
        end_tokens=frozenset(),
        luck=RandomStreams(seed).generator(Purpose.DRAFT),
    )


@pytest.mark.parametrize("kind", ["lookup", "exit"])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_greedy_text_is_that_of_plain_decoding(model_folder: Path, kind: str, count: int) -> None:
    plain = _decoded(model_folder, kind, 0, temperature=0.0, seed=0, max_tokens=24)
    drafted = _decoded(model_folder, kind, count, temperature=0.0, seed=1, max_tokens=24)
    assert drafted.tokens == plain.tokens


@pytest.mark.parametrize("kind", ["lookup", "exit"])
def test_rounds_account_for_every_token_but_the_first(model_folder: Path, kind: str) -> None:
    decoded = _decoded(model_folder, kind, 4, temperature=0.8, seed=2, max_tokens=30)
    assert sum(decoded.num_emitted) == len(decoded.tokens) - 1 == 29
    starts = len(PROMPT) + np.cumsum([0, *decoded.num_emitted])[:-1]
    assert decoded.context_tokens == starts.tolist()
    assert max(decoded.num_drafted) <= 4


@pytest.mark.verification
@pytest.mark.parametrize("kind", ["lookup", "exit"])
def test_sampled_text_keeps_the_law_of_plain_decoding(model_folder: Path, kind: str) -> None:
    counts = [
        Counter(
            tuple(_decoded(model_folder, kind, count, temperature=0.7, seed=seed, max_tokens=3).tokens[1:])
            for seed in range(first, first + 600)
        )
        for count, first in ((0, 0), (3, 600))
    ]
    common = [text for text in set().union(*counts) if sum(one[text] for one in counts) >= 20]
    table = [[one[text] for text in common] for one in counts]
    rest = [sum(one.values()) - sum(row) for one, row in zip(counts, table, strict=True)]
    table = [[*row, other] for row, other in zip(table, rest, strict=True) if sum(rest)]
    assert chi2_contingency(np.array(table)).pvalue > 1e-3
