"""Recursive rejection: siblings are tried one after the other, each against what the last left of p."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.sampling import corrections, keep_probabilities, kept_given_text


@VERIFIERS.register
class RecursiveSpec(Spec):
    """Recursive rejection sampling over the children of a node (SpecInfer, Sequoia, EAGLE)."""

    kind: Literal["recursive"] = "recursive"
    """Recursive rejection."""

    def build(self, context: BuildContext) -> RecursiveVerifier:
        """Return the rule."""
        return RecursiveVerifier()


class RecursiveVerifier:
    """Keep child j with probability min(1, p_j/q_j), else go on with p_{j+1} = max(p_j - q_j, 0) normalised.

    Miao et al. 2024 (SpecInfer), Algorithm 2, with replacement; Chen et al. 2024 (Sequoia), Algorithm 2,
    without: there q_{j+1} is q_j without child j, which is the q that the draft gives for each node. On a
    chain it is token verification; where each q is 1 it is the rule of deterministic candidates.
    """

    is_lossless = True
    needs: Literal["path"] = "path"
    siblings: tuple[Siblings, ...] = ("one", "independent", "distinct", "certain")

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Probability that each node is the one kept of its siblings, [B, N]; 0 at padding."""
        num_rows, num_nodes = draft.token.shape
        rows = np.arange(num_rows)
        remaining = target.copy()
        not_yet = np.ones((num_rows, num_nodes + 1))
        keep: Floats = np.zeros((num_rows, num_nodes))
        for node in range(num_nodes):
            token, place = draft.token[:, node], draft.parent[:, node] + 1
            is_node = token >= 0
            p, q = remaining[rows, place], draft.probabilities[:, node]
            x = np.maximum(token, 0)
            accepts = np.where(is_node, keep_probabilities(p[rows, x], q[rows, x]), 0.0)
            keep[:, node] = not_yet[rows, place] * accepts
            not_yet[rows, place] *= 1 - accepts
            remaining[rows, place] = np.where(is_node[:, np.newaxis], corrections(p, q), p)
        return keep

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Return what all children of the last kept node have left of p, [B, V]."""
        law: Floats = target[np.arange(last.size), last + 1]
        for node in range(draft.token.shape[1]):
            is_child = (draft.parent[:, node] == last) & (draft.token[:, node] >= 0)
            if is_child.any():
                law = np.where(is_child[:, np.newaxis], corrections(law, draft.probabilities[:, node]), law)
        return law

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        """Return min(1, q/p), [B, D]: on a chain the rule is token verification."""
        return kept_given_text(target, draft)
