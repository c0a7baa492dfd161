"""Rules with the drafts that they are stated for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from specsim.speculation import (
    BlockVerifier,
    CandidatesVerifier,
    ChainDraft,
    ConditionalDistributions,
    DraftSource,
    DynamicTreeDraft,
    ExplicitDistributions,
    GreedyVerifier,
    IndependentChainsDraft,
    KSeqVerifier,
    LenienceVerifier,
    LookupDraft,
    OptimalVerifier,
    RecursiveVerifier,
    SamplerMatchVerifier,
    TokenVerifier,
    TreeDraft,
    TreeShape,
    Verifier,
)
from specsim.speculation.prove import Subject

P = np.array([0.5, 0.3, 0.2])
Q = np.array([0.2, 0.3, 0.5])
PAIR = ExplicitDistributions(P, Q)

Source = Callable[[ConditionalDistributions], DraftSource]


def chain(num_tokens: int, *, is_greedy: bool = False) -> Source:
    """Chains of sampled tokens, or of the most probable ones."""
    return lambda pair: ChainDraft(pair, num_tokens=num_tokens, is_greedy=is_greedy)


def tree(siblings: Literal["independent", "distinct", "certain"], *branching: int) -> Source:
    """Trees with so many children a node, level by level."""
    return lambda pair: TreeDraft(pair, TreeShape.of_branching(branching), siblings=siblings)


def chains(num_chains: int, length: int) -> Source:
    """Independent chains."""
    return lambda pair: IndependentChainsDraft(pair, num_chains=num_chains, length=length)


def dynamic(num_nodes: int, depth: int, top_k: int) -> Source:
    """EAGLE-2's trees."""
    return lambda pair: DynamicTreeDraft(pair, num_nodes=num_nodes, depth=depth, top_k=top_k)


def lookup(num_tokens: int) -> Source:
    """Prompt lookup in the last eight tokens."""
    return lambda pair: LookupDraft(
        num_tokens=num_tokens,
        longest=2,
        shortest=1,
        window_tokens=8,
        vocabulary_size=pair.vocabulary_size,
    )


def subject(
    verifier: Verifier,
    source: Source,
    pair: ConditionalDistributions = PAIR,
    *,
    kind: type[Subject] = Subject,
) -> Subject:
    """Return a rule on a pair, with its draft."""
    return kind(pair, source(pair), verifier)


CHAIN_RULES: dict[str, Callable[[], Verifier]] = {
    "token": TokenVerifier,
    "block": BlockVerifier,
    "sampler_match": SamplerMatchVerifier,
    "recursive": RecursiveVerifier,
    "kseq": KSeqVerifier,
    "candidates": CandidatesVerifier,
    "optimal": OptimalVerifier,
    "lenience 1": lambda: LenienceVerifier(lenience=1.0),
}
"""Lossless on sampled and greedy chains of any target."""

TREE_RULES: dict[str, tuple[Callable[[], Verifier], Source]] = {
    "recursive independent 2": (RecursiveVerifier, tree("independent", 2)),
    "recursive independent 2,2": (RecursiveVerifier, tree("independent", 2, 2)),
    "recursive distinct 3": (RecursiveVerifier, tree("distinct", 3)),
    "recursive distinct 2,1,1": (RecursiveVerifier, tree("distinct", 2, 1, 1)),
    "recursive distinct 1,2": (RecursiveVerifier, tree("distinct", 1, 2)),
    "recursive certain 3,2,1": (RecursiveVerifier, tree("certain", 3, 2, 1)),
    "recursive chains 2x2": (RecursiveVerifier, chains(2, 2)),
    "kseq independent 3": (KSeqVerifier, tree("independent", 3)),
    "kseq independent 2,2": (KSeqVerifier, tree("independent", 2, 2)),
    "kseq chains 2x2": (KSeqVerifier, chains(2, 2)),
    "kseq chains 3x1": (KSeqVerifier, chains(3, 1)),
    "candidates certain 3,3,3": (CandidatesVerifier, tree("certain", 3, 3, 3)),
    "candidates distinct 2,2": (CandidatesVerifier, tree("distinct", 2, 2)),
    "candidates dynamic": (CandidatesVerifier, dynamic(6, 3, 2)),
    "recursive dynamic": (RecursiveVerifier, dynamic(4, 3, 2)),
    "candidates lookup": (CandidatesVerifier, lookup(3)),
    "token lookup": (TokenVerifier, lookup(2)),
    "block lookup": (BlockVerifier, lookup(3)),
    "optimal independent 2": (OptimalVerifier, tree("independent", 2)),
    "optimal distinct 2,1": (OptimalVerifier, tree("distinct", 2, 1)),
}
"""Lossless on trees and other drafts, depth and width at most 3."""

GREEDY_RULES: dict[str, tuple[Callable[[], Verifier], Source]] = {
    "greedy chain": (GreedyVerifier, chain(3)),
    "greedy tree": (GreedyVerifier, tree("distinct", 2, 2)),
    "greedy certain": (GreedyVerifier, tree("certain", 3, 2)),
}
"""Lossless where the target is certain."""
