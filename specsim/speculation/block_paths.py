"""Block verification along a path: its exact replay from p and q of the path's tokens alone.

Sun et al. 2024 (arXiv 2403.10444): a round keeps at least i drafts, and these are y_1 … y_i, with
probability q(y^i) P_i, where P_0 = 1 and P_i = min(1, P_{i-1} p_i(y_i) / q_i(y_i)). Given that, the next
token has law p: the drafts kept have min(P_i p, q) of it and the correction max(P_i p - q, 0), which makes
P_i p. So, given the text and the i drafts kept before it, the draft at depth i + 1 of a round is kept with

min(1, q(y) / (P_i p(y))),  P_i along the text from where the round starts.

Neither the length of the round nor what it drafted past the text enters, if lengths are causal.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation.distributions import Path, PathDistributions, Signals
from specsim.speculation.logged import HasOwnLengths
from specsim.speculation.lookahead.policy import LookaheadPolicy


@runtime_checkable
class HasRatios(Protocol):
    """Path distributions that may know q/p of the path's tokens."""

    @property
    def knows_ratios(self) -> bool:
        """They do; rates and logs of accepted lengths do not."""
        ...

    def ratios(self, request: Ints, position: Ints, depth: int) -> Floats:
        """q/p of the path's token at each depth of a round started at ``position``, [B, depth].

        0 past the path's end, and NaN where the draft makes no proposal, as ``acceptance`` has it.
        """
        ...


class BlockPaths:
    """Path distributions of which drafts are kept by block verification.

    Parameters
    ----------
    paths
        What is known along the paths.

    Raises
    ------
    ConfigError
        Where that is not p and q.
    """

    offers: Literal["path"] = "path"
    records_tails = False
    """Tails are recorded after a rejection by token verification; what block rejects has another law."""

    def __init__(self, paths: PathDistributions) -> None:
        if not isinstance(paths, HasRatios) or not paths.knows_ratios:
            raise ConfigError(
                "verifier: block needs p and q along the path, which rates and logs of accepted lengths lack;"
                " use token, or a recorded trace"
            )
        self._paths: PathDistributions = paths
        self._ratios = paths.ratios
        self.drafts_in_one_pass = paths.drafts_in_one_pass

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
        ratio = self._ratios(request, position, depth)
        kept = np.empty_like(ratio)
        carried = np.ones(len(ratio))
        for at in range(depth):
            kept[:, at] = np.minimum(ratio[:, at], carried) / carried
            carried = carried / np.maximum(ratio[:, at], carried)
        return kept

    def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
        """Signals at each depth, along the path."""
        return self._paths.signals(request, position, depth)
