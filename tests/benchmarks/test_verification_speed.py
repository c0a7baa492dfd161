"""How fast verification is beside numpy reading the same distributions once."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from specsim.speculation import BlockVerifier, Draft, RecursiveVerifier, TokenVerifier, Verifier
from specsim.speculation.sampling import draw
from specsim.speculation.walk import walk

pytestmark = pytest.mark.benchmark

NUM_REQUESTS, NUM_DRAFTS, VOCABULARY = 64, 8, 50_000
MOST = {"token": 4.0}
"""Times that of one reading which a rule must stay within; the others are shown."""


def _best_s(work: Callable[[], object], times: int = 3) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


@pytest.mark.parametrize(
    ("name", "verifier"),
    [("token", TokenVerifier()), ("block", BlockVerifier()), ("recursive", RecursiveVerifier())],
)
def test_verification_of_explicit_distributions(name: str, verifier: Verifier) -> None:
    generator = np.random.default_rng(0)
    p = generator.random((NUM_REQUESTS, NUM_DRAFTS + 1, VOCABULARY))
    p /= p.sum(axis=2, keepdims=True)
    q = generator.random((NUM_REQUESTS, NUM_DRAFTS, VOCABULARY))
    q /= q.sum(axis=2, keepdims=True)
    token = generator.integers(0, VOCABULARY, (NUM_REQUESTS, NUM_DRAFTS))
    draft = Draft(token, np.broadcast_to(np.arange(-1, NUM_DRAFTS - 1), token.shape), q)
    stop, following = generator.random((NUM_REQUESTS, NUM_DRAFTS)), generator.random(NUM_REQUESTS)

    def verify() -> None:
        kept = walk(draft, verifier.descend(draft, p), stop)
        draw(verifier.next_token(draft, p, kept.last), following)

    reading_s = _best_s(lambda: (p.sum(), q.sum()))
    verifying_s = _best_s(verify)
    ratio = verifying_s / reading_s
    print(
        f"\n{name}: {verifying_s * 1e3:.1f} ms, {ratio:.2f} x reading p and q once ({reading_s * 1e3:.1f} ms)"
    )
    assert ratio < MOST.get(name, float("inf"))
