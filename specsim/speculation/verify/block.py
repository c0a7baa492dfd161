"""Block verification: the chain is judged as a whole, so that a late good draft saves an early poor one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec
from specsim.speculation.draft import Draft, Siblings
from specsim.speculation.kinds import VERIFIERS, BuildContext
from specsim.speculation.sampling import keep_probabilities
from specsim.speculation.verify.chain import at_tokens, is_drafted, refused_node


@VERIFIERS.register
class BlockSpec(Spec):
    """Block verification (Sun et al. 2024); vLLM's ``rejection_sample_method: block``."""

    kind: Literal["block"] = "block"
    """Block verification."""

    def build(self, context: BuildContext) -> BlockVerifier:
        """Return the rule."""
        return BlockVerifier()


class BlockVerifier:
    """Keep the longest prefix that any of the drafts vouches for; see the equations.

    Sun et al. 2024 (arXiv 2403.10444). With P_0 = 1 and P_i = min(1, P_{i-1} p_i(x_i) / q_i(x_i)), draft i
    vouches for the prefix up to it with probability h_i = R_i / (R_i + 1 - P_i) where
    R_i = sum_x max(P_i p_{i+1}(x) - q_{i+1}(x), 0); h = P at the last. The longest prefix vouched for is
    kept, and the next token is drawn from max(P_i p_{i+1} - q_{i+1}, 0), normalised.

    Here the same law is stated as a walk: given the drafts, at least i are kept with probability
    1 - prod_{j >= i} (1 - h_j), and each step of the walk is a quotient of two of these. No uniform of a
    place past the end of the walk is looked at then, so none is ever used in two rounds.
    """

    is_lossless = True
    needs: Literal["path"] = "path"
    siblings: tuple[Siblings, ...] = ("one",)

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Probability that each node is kept given that the one before it was, [B, N]; 0 at padding."""
        prefix = _prefix_ratios(draft, target)
        vouches = np.where(is_drafted(draft), _vouching(draft, target, prefix), 0.0)
        none_after = np.cumprod((1 - vouches)[:, ::-1], axis=1)[:, ::-1]
        at_least = 1 - none_after
        before = np.concatenate([np.ones((len(at_least), 1)), at_least[:, :-1]], axis=1)
        keep: Floats = np.where(before > 0, at_least / np.where(before > 0, before, 1.0), 0.0)
        # The first draft always has a parent, so its own mass is its probability; rounding stays inside.
        return np.minimum(keep, 1.0)

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Law of the final token, [B, V]: the block's correction after a rejection, else the target's."""
        rows = np.arange(last.size)
        p = target[rows, last + 1]
        if draft.token.shape[1] == 0:
            return p
        ratio = np.where(last >= 0, _prefix_ratios(draft, target)[rows, np.maximum(last, 0)], 1.0)
        after, is_rejected = refused_node(draft, last)
        left = np.maximum(ratio[:, np.newaxis] * p - draft.probabilities[rows, after], 0.0)
        mass = left.sum(axis=1)
        is_corrected = is_rejected & (mass > 0)
        law: Floats = np.where(
            is_corrected[:, np.newaxis], left / np.where(mass > 0, mass, 1.0)[:, np.newaxis], p
        )
        return law

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        """Return min(1, q / (P p)), [B, D], with P along the text from where the round starts.

        A round keeps at least i drafts, and these are y_1 … y_i, with probability q(y_1 … y_i) P_i. Given
        that, the next token has law p: the drafts kept have min(P_i p, q) of it and the correction
        max(P_i p - q, 0), which makes P_i p. Neither the length of the round nor what it drafted past the
        text enters, if lengths are causal.
        """
        ratio = draft / target
        kept: Floats = np.empty_like(ratio)
        carried = np.ones(len(ratio))
        for at in range(ratio.shape[1]):
            kept[:, at] = np.minimum(ratio[:, at], carried) / carried
            carried = carried / np.maximum(ratio[:, at], carried)
        return kept


def _prefix_ratios(draft: Draft, target: Floats) -> Floats:
    """P_1 … P_N, [B, N]: how much of the target's mass the drafted prefix carries, at most 1."""
    p, q = at_tokens(draft, target[:, :-1]), at_tokens(draft, draft.probabilities)
    is_drawable = q > 0
    ratio = np.where(is_drawable, p / np.where(is_drawable, q, 1.0), keep_probabilities(p, q))
    prefix: Floats = np.empty_like(ratio)
    running = np.ones(len(ratio))
    for node in range(ratio.shape[1]):
        running = np.minimum(running * ratio[:, node], 1.0)
        prefix[:, node] = running
    return prefix


def _vouching(draft: Draft, target: Floats, prefix: Floats) -> Floats:
    """h_1 … h_N, [B, N]."""
    following = np.zeros(draft.token.shape, dtype=bool)
    following[:, :-1] = is_drafted(draft)[:, 1:]
    left = np.zeros_like(prefix)
    left[:, :-1] = np.maximum(
        prefix[:, :-1, np.newaxis] * target[:, 1:-1] - draft.probabilities[:, 1:], 0.0
    ).sum(axis=2)
    total = left + 1 - prefix
    # A prefix of full mass before an equal p and q leaves 0/0: nothing there can be refused.
    within = np.where(total > 0, left / np.where(total > 0, total, 1.0), 1.0)
    return np.where(following, within, prefix)
