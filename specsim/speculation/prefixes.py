"""Prefixes as they grow: one token longer, or only the last tokens of them."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Ints
from specsim.speculation.distributions import Prefixes


def extended(prefix: Prefixes, token: Ints) -> Prefixes:
    """Return prefixes one token longer, [rows]; as many last tokens are kept as before."""
    tokens = prefix.tokens
    if tokens.shape[1] > 0:
        tokens = np.concatenate([tokens[:, 1:], token[:, np.newaxis]], axis=1)
    return Prefixes(request=prefix.request, position=prefix.position + 1, tokens=tokens)


def last_tokens(prefix: Prefixes, count: int) -> Prefixes:
    """Return the prefixes as their last ``count`` tokens, all that a distribution reads."""
    if prefix.tokens.shape[1] == count:
        return prefix
    return Prefixes(prefix.request, prefix.position, prefix.tokens[:, prefix.tokens.shape[1] - count :])
