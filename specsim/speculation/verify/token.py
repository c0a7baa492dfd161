"""Token verification: each draft on its own, first come first stopped."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.sampling import corrections, keep_probabilities
from specsim.speculation.verify.chain import at_tokens, is_drafted, refused_node


@VERIFIERS.register
class TokenSpec(Spec):
    """Token verification (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2)."""

    kind: Literal["token"] = "token"
    """Token verification."""

    def build(self, context: BuildContext) -> TokenVerifier:
        """Return the rule."""
        return TokenVerifier()


class TokenVerifier:
    """Keep a draft with probability min(1, p/q); emit from max(p - q, 0) after the first that is not kept.

    Leviathan et al. 2023, Algorithm 1. For chains: a node's parent is the node before it. Lossless,
    as long as each token was drawn from the very q given here.
    """

    is_lossless = True
    needs: Literal["acceptance"] = "acceptance"
    """What rates and traces say is kept is what this rule keeps."""
    siblings: tuple[Siblings, ...] = ("one",)

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Probability that each node is kept given that its parent was, [B, N]; 0 at padding."""
        p, q = at_tokens(draft, target[:, :-1]), at_tokens(draft, draft.probabilities)
        return np.where(is_drafted(draft), keep_probabilities(p, q), 0.0)

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Law of the final token, [B, V]: the correction after a rejection, else the target's own."""
        rows = np.arange(last.size)
        p = target[rows, last + 1]
        if draft.token.shape[1] == 0:
            return p
        after, is_rejected = refused_node(draft, last)
        law: Floats = np.where(
            is_rejected[:, np.newaxis], corrections(p, draft.probabilities[rows, after]), p
        )
        return law
