"""From files of text to counts of n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specsim.errors import ConfigError
from specsim.speculation.ngram.counts import MAX_VOCABULARY, NgramCounts, count_ngrams
from specsim.speculation.ngram.words import Vocabulary, words


def counts_of_files(
    paths: Sequence[Path], *, order: int = 4, most_words: int = 2000
) -> tuple[NgramCounts, Vocabulary]:
    """Count the n-grams of files of text (UTF-8).

    Parameters
    ----------
    paths
        Files, or folders whose ``*.txt`` and ``*.md`` files are read in order of name.
    order
        Length of the longest n-grams, from 2.
    most_words
        Size of the vocabulary at most; rarer words are one unknown word.

    Raises
    ------
    ConfigError
        A file that cannot be read, or too little text.
    """
    if not 2 <= order <= 8:
        raise ConfigError(f"n-gram order: {order} is not from 2 to 8")
    if not 2 <= most_words <= MAX_VOCABULARY:
        raise ConfigError(f"n-gram vocabulary: {most_words} is not from 2 to {MAX_VOCABULARY}")
    texts = [words(_read(file)) for path in paths for file in _files(path)]
    vocabulary = Vocabulary.of(texts, most=most_words)
    encoded = [vocabulary.encode(text) for text in texts]
    return count_ngrams(encoded, order=order, vocabulary_size=len(vocabulary.words)), vocabulary


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in (".txt", ".md"))
    if not found:
        raise ConfigError(f"{path}: a folder without .txt or .md files")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
