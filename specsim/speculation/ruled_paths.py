"""Replay along paths under a rule that says itself what it keeps, from p and q of the path's tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError, DomainError
from specsim.speculation.distributions import HasProbabilities, Path, PathDistributions, Signals
from specsim.speculation.logged import HasOwnLengths
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.sampling import kept_given_text
from specsim.speculation.verify.rule import PathVerifier, Verifier

_REQUESTS_PER_CHUNK = 64


def path_law(verifier: Verifier) -> Callable[[Floats, Floats], Floats]:
    """Return the function that :meth:`PathVerifier.along_path` is of a rule.

    Raises
    ------
    ConfigError
        The rule has none.
    """
    if verifier.needs == "acceptance":
        return kept_given_text
    if verifier.needs == "path" and verifier.is_lossless and isinstance(verifier, PathVerifier):
        return verifier.along_path
    why = "needs p and q after any prefix, not along a recorded text" if verifier.is_lossless else "is lossy"
    raise ConfigError.at(
        "verifier",
        f"{why}, so it has no exact replay; use explicit, ngram or live distributions, or another rule",
    )


class RuledPaths:
    """Path distributions of which drafts a rule keeps.

    Parameters
    ----------
    paths
        What is known along the paths.
    verifier
        The rule.

    Raises
    ------
    ConfigError
        Where the rule does not replay along a path, or the paths know nothing of p and q.
    """

    offers: Literal["path"] = "path"
    records_tails = False
    """They are recorded after a rejection by token verification; another rule rejects by another law."""

    def __init__(self, paths: PathDistributions, verifier: Verifier) -> None:
        self._keep = path_law(verifier)
        if paths.offers == "acceptance" or not isinstance(paths, HasProbabilities):
            raise ConfigError.at(
                "verifier",
                "needs p and q along the path, which rates and logs of accepted lengths lack;"
                " use token, or a recorded trace",
            )
        self._paths: PathDistributions = paths
        self._probabilities = paths.probabilities
        self.drafts_in_one_pass = paths.drafts_in_one_pass

    def check(self, num_output_tokens: Ints, *, num_speculative_tokens: int) -> None:
        """Ask the rule about every token that a round may draft, so that it refuses before anything runs.

        Parameters
        ----------
        num_output_tokens
            Tokens at which each request ends at the latest, the first included, [num_requests].
        num_speculative_tokens
            The most that a round drafts: the last may draft so far past the end.

        Raises
        ------
        ConfigError
            The rule is not stated for what a request would ask.
        """
        for first in range(0, num_output_tokens.size, _REQUESTS_PER_CHUNK):
            ends = num_output_tokens[first : first + _REQUESTS_PER_CHUNK] + num_speculative_tokens - 1
            position = [np.arange(1, self._end(first + row, end)) for row, end in enumerate(ends.tolist())]
            request = first + np.repeat(np.arange(ends.size), [one.size for one in position])
            try:
                self.acceptance(request, np.concatenate(position), 1)
            except DomainError as error:
                raise ConfigError.at("verifier", str(error)) from None

    def _end(self, request: int, most: int) -> int:
        path = self._paths.path(request)
        return most if path is None else min(most, path.num_tokens)

    def is_exact_for(self, policy: LookaheadPolicy, *, num_speculative_tokens: int) -> bool:
        """Tell whether the paths are as recorded."""
        return not isinstance(self._paths, HasOwnLengths) or self._paths.is_exact_for(
            policy, num_speculative_tokens=num_speculative_tokens
        )

    def path(self, request: int) -> Path | None:
        """Return the path of a request."""
        return self._paths.path(request)

    def acceptance(self, request: Ints, position: Ints, depth: int) -> Floats:
        """Probability that the draft at each depth is kept given that those before it were, [B, depth]."""
        known = self._probabilities(request, position, depth)
        return self._keep(known.target, known.draft)

    def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
        """Signals at each depth, along the path."""
        return self._paths.signals(request, position, depth)
