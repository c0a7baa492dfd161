"""N-gram pairs: Kneser-Ney by hand, laws that sum to one, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specsim.arrays import Floats
from specsim.errors import ConfigError, DomainError
from specsim.speculation import (
    BlockVerifier,
    BuildContext,
    Fixed,
    NgramPair,
    NgramSpec,
    Prefixes,
    Sequences,
    TokenVerifier,
    Verifier,
    build_rounds,
)
from specsim.speculation.ngram import count_ngrams, counts_of_files, load_counts, save_counts
from specsim.streams import Purpose, RandomStreams

ROOT = Path(__file__).parents[2]
TEXT = np.array([0, 1, 0, 1, 2, 0, 2, 1, 0, 1])


def _after(*tokens: int) -> Prefixes:
    return Prefixes(np.array([0]), np.array([1]), np.array([tokens]))


def _slow_law(
    text: list[int], context: list[int], order: int, size: int, discounts: tuple[float, ...]
) -> Floats:
    """Interpolated Kneser-Ney straight from the definition."""
    grams = {n: [tuple(text[i : i + n]) for i in range(len(text) - n + 1)] for n in range(1, 4)}

    def count(gram: tuple[int, ...]) -> float:
        if len(gram) == 3:
            return float(grams[3].count(gram))
        return float(len({longer for longer in grams[len(gram) + 1] if longer[1:] == gram}))

    law = np.full(size, 1 / size)
    for length in range(order):
        history = tuple(context[len(context) - length :])
        seen = np.array([count((*history, word)) for word in range(size)])
        if seen.sum() == 0:
            break
        discount = discounts[length]
        law = np.maximum(seen - discount, 0) / seen.sum() + discount * (seen > 0).sum() / seen.sum() * law
    return law


@pytest.mark.parametrize("context", [(0, 1), (1, 2), (2, 2), (1, 0)])
def test_the_laws_are_those_of_interpolated_kneser_ney(context: tuple[int, int]) -> None:
    counts = count_ngrams([TEXT], order=3, vocabulary_size=4)
    pair = NgramPair(counts, draft_order=2)
    for order, law in ((3, pair.target(_after(*context))), (2, pair.draft(_after(*context)))):
        due = _slow_law(TEXT.tolist(), list(context), order, 4, counts.discounts)
        np.testing.assert_allclose(law[0], due, atol=1e-12)


def test_every_token_has_mass_after_any_context() -> None:
    pair = NgramPair(count_ngrams([TEXT], order=3, vocabulary_size=4), draft_order=1)
    contexts = np.array([[a, b] for a in range(-1, 4) for b in range(-1, 4)])
    rows = np.zeros(len(contexts), dtype=np.int64)
    for law in (pair.target(Prefixes(rows, rows, contexts)), pair.draft(Prefixes(rows, rows, contexts))):
        np.testing.assert_allclose(law.sum(axis=1), 1)
        assert (law > 0).all()


def test_counts_survive_their_file(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat. the cat ran to the mat.")
    counts, vocabulary = counts_of_files([tmp_path], order=3, most_words=5)
    save_counts(counts, tmp_path / "counts.npz", vocabulary=vocabulary.words, source="text.txt")
    again = load_counts(tmp_path / "counts.npz")
    assert vocabulary.words == ("<unknown>", "the", ".", "cat", "mat")
    assert again.discounts == counts.discounts
    for first, second in zip(again.grams + again.counts, counts.grams + counts.counts, strict=True):
        np.testing.assert_array_equal(first, second)
    context = BuildContext(num_speculative_tokens=2, folder=tmp_path)
    pair = NgramSpec(path="counts.npz", temperature=0.5).build(context)
    assert pair.target(_after(1, 3)).sum() == pytest.approx(1)


def test_faults_of_texts_and_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("one two")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    np.savez(tmp_path / "other.npz", nothing=np.zeros(2))
    with pytest.raises(ConfigError, match="too short"):
        counts_of_files([tmp_path / "short.txt"])
    with pytest.raises(ConfigError, match="UTF-8"):
        counts_of_files([tmp_path / "binary.txt"])
    with pytest.raises(ConfigError, match="cannot be read"):
        counts_of_files([tmp_path / "absent.txt"])
    with pytest.raises(ConfigError, match="no n-gram counts"):
        load_counts(tmp_path / "other.npz")
    with pytest.raises(ConfigError, match=r"no n-gram counts 'absent\.npz'"):
        NgramSpec(path="absent.npz").build(BuildContext(num_speculative_tokens=2))
    with pytest.raises(DomainError, match="draft_order: 3"):
        NgramPair(count_ngrams([TEXT], order=3, vocabulary_size=4), draft_order=3)


def tokens_and_rounds(pair: NgramPair, verifier: Verifier, *, num_requests: int, num_tokens: int) -> Floats:
    """Tokens and rounds of each request, [2, requests]."""
    caps = np.full(num_requests, num_tokens + 1)
    source = build_rounds(
        pair,
        Fixed(),
        verifier,
        streams=RandomStreams(0),
        num_output_tokens=caps,
        num_speculative_tokens=8,
    )
    position, found, active = np.ones_like(caps), np.zeros((2, num_requests)), np.arange(num_requests)
    while active.size:
        one = source.peek(Sequences(active, position[active], caps[active] - position[active]), horizon=1)
        source.commit(1)
        found[0, active] += one.num_emitted[0]
        found[1, active] += 1
        position[active] += one.num_emitted[0]
        active = active[~one.is_last[0]]
    return found


@pytest.mark.parametrize(
    ("num_requests", "most_words"), [(48, 200), pytest.param(256, 2000, marks=pytest.mark.verification)]
)
def test_block_gains_tokens_over_token_on_text_at_eight_drafts(num_requests: int, most_words: int) -> None:
    counts, _ = counts_of_files([ROOT / "README.md", ROOT / "docs"], order=4, most_words=most_words)
    pair = NgramPair(counts, draft_order=2)
    token, block = (
        tokens_and_rounds(pair, rule, num_requests=num_requests, num_tokens=96)
        for rule in (TokenVerifier(), BlockVerifier())
    )
    chosen = RandomStreams(0).generator(Purpose.BOOTSTRAP).integers(0, num_requests, (2000, num_requests))
    ratios = [(r[0][chosen].sum(axis=1) / r[1][chosen].sum(axis=1)) for r in (block, token)]
    gain = ratios[0] / ratios[1] - 1
    low, high = np.percentile(gain, [2.5, 97.5])
    print(f"\nblock over token at 8 drafts: {gain.mean():+.3f} (95 % interval {low:+.3f} to {high:+.3f})")
    assert low > 0


@pytest.mark.parametrize("temperature", [0.0, 1e-4, 1e-3])
def test_a_vanishing_temperature_leaves_the_most_probable_word(temperature: float) -> None:
    counts = count_ngrams([np.array([0, 1, 2, 0, 1, 3, 0, 1, 2, 0, 4])], order=2, vocabulary_size=5)
    (law,) = NgramPair(counts, draft_order=1, temperature=temperature).target(_after(1))
    assert law.tolist() == [0, 0, 1, 0, 0]
