"""N-gram models of text: full distributions after any context, from counts alone."""

from specsim.speculation.ngram.counts import NgramCounts, count_ngrams
from specsim.speculation.ngram.pair import NgramPair, NgramSpec, load_counts, save_counts
from specsim.speculation.ngram.text import counts_of_files
from specsim.speculation.ngram.words import Vocabulary, words

__all__ = [
    "NgramCounts",
    "NgramPair",
    "NgramSpec",
    "Vocabulary",
    "count_ngrams",
    "counts_of_files",
    "load_counts",
    "save_counts",
    "words",
]
