"""A pair of Markov chains over a few tokens: the smallest models whose distributions depend on context."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Floats
from specsim.speculation.distributions import Prefixes
from specsim.speculation.trace import Trace
from tests.strategies import headers


class MarkovPair:
    """Target and draft transition matrices, [V + 1, V]; the last row holds after an empty prefix."""

    offers: Literal["conditional"] = "conditional"
    num_context_tokens = 1

    def __init__(self, target: Floats, draft: Floats, *, eos_token_id: int | None = None) -> None:
        self._target = target
        self._draft = draft
        self.vocabulary_size = target.shape[1]
        self.eos_token_id = eos_token_id

    def target(self, prefix: Prefixes) -> Floats:
        """Target row of each prefix's last token (-1 is the last row)."""
        return self._target[prefix.tokens[:, -1]]

    def draft(self, prefix: Prefixes) -> Floats:
        """Draft row of each prefix's last token."""
        return self._draft[prefix.tokens[:, -1]]

    def record(self, rng: np.random.Generator, *, num_paths: int, num_tokens: int) -> Trace:
        """Sample paths from the target and record p and q along them, as a recorder would."""
        size = self.vocabulary_size
        token = np.empty((num_paths, num_tokens), dtype=np.int32)
        p, q = np.empty((num_paths, num_tokens, size)), np.empty((num_paths, num_tokens, size))
        last = np.full(num_paths, -1)
        for position in range(num_tokens):
            p[:, position], q[:, position] = self._target[last], self._draft[last]
            uniform = rng.random(num_paths)[:, np.newaxis]
            token[:, position] = last = (np.cumsum(p[:, position], axis=1) < uniform).sum(axis=1)
        token, p, q = token.ravel(), p.reshape(-1, size), q.reshape(-1, size)
        at = np.arange(token.size)
        argmax = q.argmax(axis=1)
        return Trace(
            header=headers(vocabulary_size=size),
            offsets=np.arange(num_paths + 1) * num_tokens,
            num_prompt_tokens=np.ones(num_paths, dtype=np.int32),
            domain=np.array(["markov"] * num_paths),
            language=np.array(["en"] * num_paths),
            ended_by=np.array(["cap"] * num_paths),
            token=token,
            p_token=p[at, token].astype(np.float32),
            q_token=q[at, token].astype(np.float32),
            overlap=np.minimum(p, q).sum(axis=1).astype(np.float32),
            draft_argmax=argmax.astype(np.int32),
            p_at_draft_argmax=p[at, argmax].astype(np.float32),
            draft_entropy_nats=-(q * np.log(q)).sum(axis=1).astype(np.float16),
            draft_top_probability=q.max(axis=1).astype(np.float16),
        )


def random_pair(seed: int, *, size: int, concentration: float = 1.0) -> MarkovPair:
    """Return a random pair whose draft resembles its target."""
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.full(size, concentration), size + 1)
    draft = 0.5 * target + 0.5 * rng.dirichlet(np.full(size, concentration), size + 1)
    return MarkovPair(target, draft)
