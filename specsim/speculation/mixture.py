"""A mixture of classes of requests, each with path distributions of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.distributions import (
    HasProbabilities,
    Path,
    PathDistributions,
    PathProbabilities,
    Signals,
)
from specsim.speculation.logged import HasOwnLengths
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.tree_paths import HasRanks


class MixedPaths:
    """Path distributions of a population: each request asks those of its class.

    Parameters
    ----------
    classes
        Distributions by number of the class.
    request_class, index_in_class
        Class of each request and its running number there, [num_requests].
    """

    def __init__(
        self, classes: Sequence[PathDistributions], *, request_class: Ints, index_in_class: Ints
    ) -> None:
        self._classes = classes
        self._request_class = request_class
        self._index = index_in_class
        self.records_tails = all(distributions.records_tails for distributions in classes)
        self.offers: Literal["acceptance", "path"] = (
            "path" if all(distributions.offers == "path" for distributions in classes) else "acceptance"
        )
        self.drafts_in_one_pass = all(distributions.drafts_in_one_pass for distributions in classes)

    def is_exact_for(self, policy: LookaheadPolicy, *, num_speculative_tokens: int) -> bool:
        """Tell whether rounds under a policy ask every class only for what was recorded."""
        exact = [
            part.is_exact_for(policy, num_speculative_tokens=num_speculative_tokens)
            for part in self._classes
            if isinstance(part, HasOwnLengths)
        ]
        return all(exact)

    def path(self, request: int) -> Path | None:
        """Path of a request, from its class."""
        return self._classes[int(self._request_class[request])].path(int(self._index[request]))

    def acceptance(self, request: Ints, position: Ints, depth: int) -> Floats:
        """Probability that the draft at each depth is kept, [B, depth], from each request's class."""
        (kept,) = self._by_class(
            request, position, depth, lambda part, index, start: [part.acceptance(index, start, depth)]
        )
        return kept

    def probabilities(self, request: Ints, position: Ints, depth: int) -> PathProbabilities:
        """Return p and q of the path's token at each depth, [B, depth], from each request's class."""

        def ask(part: PathDistributions, index: Ints, start: Ints) -> list[Floats]:
            assert isinstance(part, HasProbabilities)
            known = part.probabilities(index, start, depth)
            return [known.target, known.draft]

        target, draft = self._by_class(request, position, depth, ask)
        return PathProbabilities(target, draft)

    @property
    def num_ranked(self) -> int:
        """Ranks of the path's token in the draft that every class knows."""
        return min(part.num_ranked if isinstance(part, HasRanks) else 0 for part in self._classes)

    def ranks(self, request: Ints, position: Ints, depth: int) -> Ints:
        """Rank of the path's token in the draft at each depth, [B, depth], from each request's class."""

        def ask(part: PathDistributions, index: Ints, start: Ints) -> list[Floats]:
            assert isinstance(part, HasRanks)
            return [part.ranks(index, start, depth).astype(np.float64)]

        (rank,) = self._by_class(request, position, depth, ask)
        return rank.astype(np.int64)

    def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
        """Signals at each depth, [B, depth], from each request's class."""

        def ask(part: PathDistributions, index: Ints, start: Ints) -> list[Floats]:
            seen = part.signals(index, start, depth)
            return [seen.top_probability, seen.entropy_nats]

        top, entropy = self._by_class(request, position, depth, ask)
        return Signals(top_probability=top, entropy_nats=entropy)

    def _by_class(
        self,
        request: Ints,
        position: Ints,
        depth: int,
        ask: Callable[[PathDistributions, Ints, Ints], list[Floats]],
    ) -> list[Floats]:
        """Ask each class once for its own requests, and put each of its answers together, [B, depth] each."""
        answers: list[Floats] = []
        for number in np.unique(self._request_class[request]):
            rows = self._request_class[request] == number
            parts = ask(self._classes[number], self._index[request[rows]], position[rows])
            answers = answers or [np.full((request.size, depth), np.nan) for _ in parts]
            for answer, part in zip(answers, parts, strict=True):
                answer[rows] = part
        return answers
