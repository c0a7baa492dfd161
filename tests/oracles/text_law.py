"""Laws of rounds and texts, by a rule on whole distributions and by replay along every text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import product

import numpy as np

from specsim.arrays import Floats
from specsim.speculation import Draft, DraftSource, Prefixes, RecordedPaths, Trace, Verifier
from tests.oracles.markov import MarkovPair
from tests.strategies import headers

Text = tuple[int, ...]
RoundLaw = dict[tuple[int, Text], float]
Law = dict[tuple[int, int, Text], float]
Keep = Callable[[int, int], Floats]
"""Probability that each draft is kept in a round of a path that starts at a position."""


def pair_of_64ths(seed: int, *, size: int) -> MarkovPair:
    """Rows of 64ths, which float32 columns of a trace hold exactly; the last row begins a text."""
    rng = np.random.default_rng(seed)
    rows = [1 + rng.multinomial(64 - size, rng.dirichlet(np.ones(size))) for _ in range(2 * size + 2)]
    target, draft = np.array(rows).reshape(2, size + 1, size) / 64
    return MarkovPair(target, draft)


def every_text(pair: MarkovPair, num_tokens: int) -> tuple[Trace, Floats]:
    """Every text of a length as the prompts of one trace with unions, and the probability of each."""
    size = pair.vocabulary_size
    texts = np.array(list(product(range(size), repeat=num_tokens)))
    before = np.concatenate([np.full((len(texts), 1), -1), texts[:, :-1]], axis=1).ravel()
    token = texts.ravel()
    p, q = pair._target[before, token], pair._draft[before, token]
    argmax = pair._draft.argmax(axis=1)[before]
    ids = np.tile(np.concatenate([np.arange(size), np.full(size, -1)]), (token.size, 1))
    nothing = np.full((token.size, size), -np.inf)
    trace = Trace(
        header=headers(vocabulary_size=size),
        offsets=np.arange(len(texts) + 1) * num_tokens,
        num_prompt_tokens=np.ones(len(texts), dtype=np.int32),
        domain=np.array(["markov"] * len(texts)),
        language=np.array(["en"] * len(texts)),
        ended_by=np.array(["cap"] * len(texts)),
        token=token.astype(np.int32),
        p_token=p.astype(np.float32),
        q_token=q.astype(np.float32),
        overlap=np.minimum(pair._target, pair._draft).sum(axis=1)[before].astype(np.float32),
        draft_argmax=argmax.astype(np.int32),
        p_at_draft_argmax=pair._target[before, argmax].astype(np.float32),
        draft_entropy_nats=np.ones(token.size, dtype=np.float32),
        draft_top_probability=pair._draft.max(axis=1)[before].astype(np.float32),
        union_ids=ids.astype(np.int32),
        log_p=np.concatenate([np.log(pair._target[before]), nothing], axis=1).astype(np.float32),
        log_q=np.concatenate([np.log(pair._draft[before]), nothing], axis=1).astype(np.float32),
        tail_p=np.zeros(token.size, dtype=np.float32),
        tail_q=np.zeros(token.size, dtype=np.float32),
        tail_overlap=np.zeros(token.size, dtype=np.float32),
    )
    trace.check()
    return trace, p.reshape(texts.shape).prod(axis=1)


def two_rounds_by_the_rule(pair: MarkovPair, source: DraftSource, rule: Verifier) -> Law:
    """Law of (drafts kept, drafts kept, tokens emitted) of the first two rounds of a text."""
    law: Law = defaultdict(float)
    rounds = [_round_by_the_rule(pair, source, rule, last) for last in range(pair.vocabulary_size)]
    for first, begins in enumerate(pair._target[-1].tolist()):
        for (kept, text), chance in rounds[first].items():
            for (kept_next, text_next), chance_next in rounds[text[-1]].items():
                law[kept, kept_next, (first, *text, *text_next)] += begins * chance * chance_next
    return law


def two_rounds_by_replay(pair: MarkovPair, depth: int, keep_of: Callable[[RecordedPaths], Keep]) -> Law:
    """Return the same law by replay along every text, drafts ``depth`` deep."""
    trace, chances = every_text(pair, 1 + 2 * (depth + 1))
    keep = keep_of(RecordedPaths(trace))
    texts = trace.token.reshape(trace.num_prompts, -1).tolist()
    law: Law = defaultdict(float)
    for number, (text, chance) in enumerate(zip(texts, chances.tolist(), strict=True)):
        for kept, share in enumerate(_stops(keep(number, 1))):
            for kept_next, share_next in enumerate(_stops(keep(number, 2 + kept))):
                end = 3 + kept + kept_next
                law[kept, kept_next, tuple(text[:end])] += chance * share * share_next
    return law


def total_variation(one: Law, other: Law) -> float:
    """Total variation of two laws."""
    return sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other}) / 2


def _round_by_the_rule(pair: MarkovPair, source: DraftSource, rule: Verifier, last: int) -> RoundLaw:
    """Law of (drafts kept, tokens emitted) of one round after a token."""
    law: RoundLaw = defaultdict(float)
    prefix = Prefixes(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), np.array([[last]]))
    for probability, draft in source.enumerate(prefix):
        target = pair._target[[last, *draft.token[0].tolist()]][np.newaxis]
        _walk(draft, target, rule, -1, probability, (), law)
    return law


def _walk(
    draft: Draft, target: Floats, rule: Verifier, node: int, chance: float, text: Text, law: RoundLaw
) -> None:
    keep = rule.descend(draft, target)[0]
    children = np.flatnonzero((draft.parent[0] == node) & (draft.token[0] >= 0)).tolist()
    following = rule.next_token(draft, target, np.array([node]))[0]
    for token, share in enumerate(following.tolist()):
        law[len(text), (*text, token)] += chance * (1 - keep[children].sum()) * share
    for child in children:
        kept = (*text, int(draft.token[0, child]))
        _walk(draft, target, rule, child, chance * float(keep[child]), kept, law)


def _stops(keep: Floats) -> list[float]:
    at_least = np.concatenate([[1.0], np.cumprod(keep), [0.0]])
    return list((at_least[:-1] - at_least[1:]).tolist())
