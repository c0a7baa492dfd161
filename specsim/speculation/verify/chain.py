"""What rules for chains share: p and q at the drafted tokens, and which node was refused."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Bools, Floats, Ints
from specsim.speculation.draft import Draft


def is_drafted(draft: Draft) -> Bools:
    """Nodes that are no padding, [B, N]."""
    return draft.token >= 0


def at_tokens(draft: Draft, law: Floats) -> Floats:
    """Probability of each node's token under laws [B, N, V]: [B, N]; at padding that of token 0."""
    token = np.maximum(draft.token, 0)[:, :, np.newaxis]
    found: Floats = np.take_along_axis(law, token, axis=2)[:, :, 0]
    return found


def refused_node(draft: Draft, last: Ints) -> tuple[Ints, Bools]:
    """Node after the last kept one of each row, and whether there is one, [B] each."""
    num_nodes = draft.token.shape[1]
    rows = np.arange(last.size)
    after: Ints = np.minimum(last + 1, num_nodes - 1)
    return after, (last + 1 < num_nodes) & (draft.token[rows, after] >= 0)
