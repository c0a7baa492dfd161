"""The walk down a draft: from the root, one uniform a depth picks the child that is kept, or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.speculation.draft import Draft, is_chain


@dataclass(slots=True)
class Walk:
    """Where the walks of B rows ended, over drafts of depth D."""

    last: Ints
    """The last kept node, [B]; -1 is the root."""
    num_kept: Ints
    """Nodes kept, [B]."""
    tokens: Ints
    """Tokens of the kept nodes in order, [B, D]; -1 pads."""


def walk(draft: Draft, keep: Floats, uniforms: Floats) -> Walk:
    """Walk down chains or trees.

    Parameters
    ----------
    draft
        B drafts of N nodes.
    keep
        Probability that each node is kept given that its parent was, [B, N]; siblings exclude each other.
    uniforms
        One uniform in [0, 1) a depth, [B, D].

    Examples
    --------
    >>> two = Draft(np.array([[5, 6]]), np.array([[-1, -1]]), np.ones((1, 2, 1)))
    >>> walk(two, np.array([[0.5, 0.25]]), np.array([[0.6]])).tokens.tolist()
    [[6]]
    """
    if draft.token.shape[1] == uniforms.shape[1] and is_chain(draft.parent):
        return _down_chain(draft.token, keep, uniforms)
    return _down_tree(draft, keep, uniforms)


def _down_chain(token: Ints, keep: Floats, uniforms: Floats) -> Walk:
    is_kept = np.logical_and.accumulate(uniforms < keep, axis=1)
    num_kept: Ints = is_kept.sum(axis=1, dtype=np.int64)
    return Walk(num_kept - 1, num_kept, np.where(is_kept, token, -1))


def _down_tree(draft: Draft, keep: Floats, uniforms: Floats) -> Walk:
    num_rows, depth = uniforms.shape
    rows = np.arange(num_rows)
    last: Ints = np.full(num_rows, -1)
    num_kept: Ints = np.zeros(num_rows, dtype=np.int64)
    tokens: Ints = np.full((num_rows, depth), -1)
    is_going = np.ones(num_rows, dtype=bool)
    for level in range(depth):
        is_child = (draft.parent == last[:, np.newaxis]) & (draft.token >= 0)
        upto = np.cumsum(np.where(is_child, keep, 0.0), axis=1)
        # The sum rises only at children, so the first node above the uniform is one of them.
        is_above = uniforms[:, level, np.newaxis] < upto
        is_going &= is_above.any(axis=1)
        if not is_going.any():
            break
        child = is_above.argmax(axis=1)
        last = np.where(is_going, child, last)
        tokens[:, level] = np.where(is_going, draft.token[rows, child], -1)
        num_kept += is_going
    return Walk(last, num_kept, tokens)
