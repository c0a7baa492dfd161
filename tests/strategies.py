"""Small random objects of the domain, for Hypothesis and for plain tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from specsim.arrays import Floats
from specsim.speculation.trace import Trace, TraceHeader


def headers(**changes: object) -> TraceHeader:
    """Return a header of a small recording."""
    fields = {
        "target": "target-of-tests",
        "draft": "draft-of-tests",
        "tokenizer": "tokenizer-of-tests",
        "vocabulary_size": 64,
        "temperature": 0.7,
        "draft_temperature": 0.7,
        "prompts": "random",
        "seed": 0,
        "created_by": "tests",
        "versions": {"numpy": np.__version__},
        "sha256": {"target": "0" * 64},
    }
    return TraceHeader.model_validate(fields | changes)


def random_trace(seed: int, lengths: list[int], *, ended_by: str = "eos", with_scalars: bool = True) -> Trace:
    """Return a trace of random but consistent numbers; without scalars it holds lookup proposals."""
    rng = np.random.default_rng(seed)
    num_tokens, num_prompts = sum(lengths), len(lengths)
    p = rng.dirichlet(np.full(64, 0.3), num_tokens)
    q = rng.dirichlet(np.full(64, 0.3), num_tokens) * 0.3 + 0.7 * p
    token = np.array([rng.choice(64, p=row) for row in p], dtype=np.int32)
    at = np.arange(num_tokens)
    argmax = q.argmax(axis=1)
    trace = Trace(
        header=headers(),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        num_prompt_tokens=np.full(num_prompts, 12, dtype=np.int32),
        domain=np.array(["chat", "code"] * num_prompts)[:num_prompts],
        language=np.array(["en"] * num_prompts),
        ended_by=np.array([ended_by] * num_prompts),
        token=token,
        p_token=p[at, token].astype(np.float32),
    )
    if with_scalars:
        trace.q_token = q[at, token].astype(np.float32)
        trace.overlap = np.minimum(p, q).sum(axis=1).astype(np.float32)
        trace.draft_argmax = argmax.astype(np.int32)
        trace.p_at_draft_argmax = p[at, argmax].astype(np.float32)
        trace.draft_entropy_nats = (-(q * np.log(q + 1e-300)).sum(axis=1)).astype(np.float32)
        trace.draft_top_probability = q.max(axis=1).astype(np.float32)
    else:
        depth = 4
        proposal = np.full((num_tokens, depth), -1, dtype=np.int32)
        for start in range(num_tokens):
            for d in range(int(rng.integers(0, depth + 1))):
                right = start + d < num_tokens and rng.random() < 0.7
                proposal[start, d] = token[start + d] if right else rng.integers(64)
        trace.proposal_token = proposal
        trace.p_at_proposal = np.where(proposal >= 0, 0.5, 0.0).astype(np.float32)
    return trace


@st.composite
def distributions(draw: st.DrawFn, *, size: int, allow_zeros: bool = True) -> Floats:
    """Draw a probability vector of ``size`` entries, some of them perhaps 0."""
    low = 0 if allow_zeros else 1
    weights = draw(st.lists(st.integers(low, 20), min_size=size, max_size=size).filter(any))
    vector: Floats = np.array(weights, dtype=np.float64)
    return vector / vector.sum()
