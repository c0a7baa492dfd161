"""Inputs of fewer digits: how far the law may move, by rule, and that it moves no further."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from specsim.arrays import Floats
from specsim.speculation import LenienceVerifier, TypicalVerifier, Verifier
from specsim.speculation.markov import MarkovPair, random_markov_pair
from specsim.speculation.prove import round_law
from specsim.speculation.prove.strings import string_law
from specsim.streams import Purpose, RandomStreams
from tests.verification.subjects import CHAIN_RULES, TREE_RULES, Source, chain, subject

TOLERANCE = 1e-12
LOOKAHEAD = 2
LENIENCE = 0.5
SIGNIFICANT_BITS = {"float32": 24, "bfloat16": 8}
THIN_AND_FULL = [1, pytest.param(8, marks=pytest.mark.verification)]
IN_FLOAT32 = ("token", "kseq chains 2x2")
"""Rules whose bound is tried in both precisions by the thin tests."""
RULES: dict[str, tuple[Callable[[], Verifier], Source]] = {
    **{name: (rule, chain(LOOKAHEAD)) for name, rule in CHAIN_RULES.items()},
    **{
        name: TREE_RULES[name]
        for name in ("recursive independent 2,2", "kseq chains 2x2", "candidates distinct 2,2")
    },
}


def _rounded(pair: MarkovPair, bits: int) -> MarkovPair:
    """Tables rounded to so many significant bits, to the nearest, and normalised."""

    def kept(laws: Floats) -> Floats:
        mantissa, exponent = np.frexp(laws)
        short = np.ldexp(np.rint(mantissa * 2.0**bits) / 2.0**bits, exponent)
        return short / short.sum(axis=1, keepdims=True)

    return MarkovPair(kept(pair._target), kept(pair._draft), order=2)


def _pairs(count: int) -> list[MarkovPair]:
    return [
        random_markov_pair(RandomStreams(9).generator(Purpose.PROOF, number), vocabulary_size=3)
        for number in range(count)
    ]


def _moved(rule: Verifier, source: Source, pair: MarkovPair, bits: int) -> tuple[float, float]:
    """Total variation of what a rounded pair's rounds emit from its own target and from the whole one.

    Of the strings of D + 1 tokens, the largest after any first token of the second.
    """
    law = round_law(subject(rule, source, _rounded(pair, bits)))
    whole = string_law(pair, law.first, LOOKAHEAD + 1)
    return law.total_variation, float(np.abs(law.emitted - whole).sum(axis=1).max()) / 2


def _bound(bits: int) -> float:
    """Of a lossless rule: (D + 1) u / (2 (1 - u)), u = 2^-bits, see docs/verification.md."""
    unit = 2.0**-bits
    return (LOOKAHEAD + 1) * unit / (2 * (1 - unit))


@pytest.mark.parametrize(
    ("rule", "precision", "num_pairs"),
    [
        *((rule, "bfloat16", 1) for rule in RULES),
        *((rule, "float32", 1) for rule in IN_FLOAT32),
        *(
            pytest.param(rule, precision, 8, marks=pytest.mark.verification)
            for rule, precision in product(RULES, SIGNIFICANT_BITS)
        ),
    ],
)
def test_a_lossless_rule_moves_no_further_than_its_inputs_were_rounded(
    rule: str, precision: str, num_pairs: int
) -> None:
    verifier, source = RULES[rule]
    for pair in _pairs(num_pairs):
        from_rounded, from_whole = _moved(verifier(), source, pair, SIGNIFICANT_BITS[precision])
        assert from_rounded < TOLERANCE
        assert from_whole <= _bound(SIGNIFICANT_BITS[precision]) + TOLERANCE


def test_inputs_of_four_bits_less_are_outside_the_bound() -> None:
    verifier, source = RULES["token"]
    assert _moved(verifier(), source, _pairs(1)[0], 4)[1] > _bound(8)


@pytest.mark.parametrize("num_pairs", THIN_AND_FULL)
@pytest.mark.parametrize("precision", SIGNIFICANT_BITS)
def test_lenience_moves_no_further_than_its_bound(precision: str, num_pairs: int) -> None:
    unit = 2.0 ** -SIGNIFICANT_BITS[precision]
    for pair in _pairs(num_pairs):
        laws = [
            round_law(subject(LenienceVerifier(lenience=LENIENCE), chain(LOOKAHEAD), one)).emitted
            for one in (pair, _rounded(pair, SIGNIFICANT_BITS[precision]))
        ]
        moved = np.abs(laws[0] - laws[1]).sum(axis=1).max() / 2
        assert 0 < moved <= (LOOKAHEAD + 1) * (3 + 1 / LENIENCE) * unit / (1 - unit)


def test_typical_acceptance_has_no_bound_since_a_threshold_may_be_crossed() -> None:
    """A p(x) just above the threshold rounds to it and is not kept then: the law jumps by much of p."""
    p, q = np.array([0.25 + 2**-12, 0.75 - 2**-12]), np.array([0.5, 0.5])
    tables = np.tile(p, (9, 1)), np.tile(q, (9, 1))
    pair = MarkovPair(*tables, order=2)
    rule = TypicalVerifier(threshold=0.25, entropy_factor=1.0)
    laws = [round_law(subject(rule, chain(1), one)).emitted for one in (pair, _rounded(pair, 8))]
    assert np.abs(laws[0] - laws[1]).sum(axis=1).max() / 2 > 0.1
