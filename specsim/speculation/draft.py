"""What a draft proposes in one round, and who proposes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from specsim.arrays import Floats, Ints
from specsim.speculation.distributions import Prefixes


@dataclass(slots=True)
class Draft:
    """B proposals of up to N nodes over V tokens; a chain has ``parent[i] = i - 1``."""

    token: Ints
    """Token of each node, [B, N]; -1 pads."""
    parent: Ints
    """Parent node, [B, N]; -1 is the root."""
    probabilities: Floats
    """The q that each node was drawn from, [B, N, V]."""


class DraftSource(Protocol):
    """Proposes drafts from uniforms, and can list all of them with their probabilities for proofs."""

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        """One draft a row; ``uniforms`` [B, N] in [0, 1)."""
        ...

    def enumerate(self, prefix: Prefixes) -> Iterator[tuple[float, Draft]]:
        """All drafts of a one-row prefix with their probabilities."""
        ...
