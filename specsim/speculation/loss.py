"""How far a lossy rule takes the next token from the target's law: measured, since no formula says it."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Floats
from specsim.speculation.distributions import ConditionalDistributions, Prefixes
from specsim.speculation.draft import Draft, DraftSource
from specsim.speculation.prefixes import last_tokens
from specsim.speculation.verify.rule import Verifier

MAX_VOCABULARY = 4096
"""The largest vocabulary over which every draft of a prefix is tried."""
_DRAFTS_PER_CHUNK = 256


def measured_loss(
    distributions: ConditionalDistributions, draft_source: DraftSource, verifier: Verifier, prefix: Prefixes
) -> float | None:
    """Total variation between the next token's law and the target's, mean over prefixes; rules for chains.

    Exact for each prefix: all first drafts are tried, each followed by none. Later tokens of a round are
    further off than the first, where they follow a token that the target would not have drawn.

    Returns
    -------
    float or None
        In [0, 1]; None where the vocabulary is too large to try every draft.

    Examples
    --------
    >>> from specsim.speculation import ChainDraft, ExplicitDistributions, LenienceVerifier
    >>> pair = ExplicitDistributions(np.array([0.7, 0.3]), np.array([0.3, 0.7]))
    >>> none = Prefixes(np.array([0]), np.array([1]), np.empty((1, 0), dtype=np.int64))
    >>> loss = measured_loss(pair, ChainDraft(pair, num_tokens=1), LenienceVerifier(lenience=0.5), none)
    >>> round(loss, 12)
    0.3
    """
    if distributions.vocabulary_size > MAX_VOCABULARY:
        return None
    count = prefix.position.size
    drafts = draft_source.propose(prefix, np.full((count, draft_source.num_nodes), 0.5))
    p = distributions.target(last_tokens(prefix, distributions.num_context_tokens))
    losses = [
        np.abs(_next_token_law(p[row], drafts.probabilities[row, 0], verifier) - p[row]).sum() / 2
        for row in range(count)
    ]
    return float(np.mean(losses))


def _next_token_law(p: Floats, q: Floats, verifier: Verifier) -> Floats:
    law: Floats = np.zeros_like(p)
    drawn = np.flatnonzero(q > 0)
    for first in range(0, drawn.size, _DRAFTS_PER_CHUNK):
        token = drawn[first : first + _DRAFTS_PER_CHUNK]
        rows = token.size
        draft = Draft(token[:, np.newaxis], np.full((rows, 1), -1), np.broadcast_to(q, (rows, 1, q.size)))
        target = np.broadcast_to(p, (rows, 2, p.size))
        keep = verifier.descend(draft, target)[:, 0]
        refused = verifier.next_token(draft, target, np.full(rows, -1))
        law[token] += q[token] * keep
        law += (q[token] * (1 - keep)) @ refused
    return law
