"""What a draft has computed of the text, and so what the first draft pass of a round must take in.

A draft model drafts K tokens in K passes, of which none reads the last token drafted (Leviathan et al.
2023, Algorithm 1): where all K are kept, the next round begins with two tokens that it has not computed,
that one and the target's. A head over the target's hidden states drafts from states of its own making; its
next round takes in every token that was emitted, with the target's states in their place (Li et al. 2024,
section 3.3).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from specsim.arrays import Ints
from specsim.speculation.rounds import Rounds

FirstPass: TypeAlias = Literal["unseen", "emitted", "newest"]
"""What the first draft pass of a round takes in.

``unseen``: what a model with its own cache has not computed. ``emitted``: all that was emitted since a head
last drafted. ``newest``: the newest token alone, as the rest is in the target's cache, or is not read.
"""


def draft_cached(first_pass: FirstPass, context: Ints, rounds: Rounds, cached: Ints) -> Ints:
    """Tokens of the text that the draft need not compute again, before each round and after the last.

    A round that drafts nothing leaves what it emits to the next one that drafts. In a tree the passes count
    levels: a leaf kept above the last level counts as computed.

    Parameters
    ----------
    first_pass
        What the draft takes in.
    context
        Tokens before the newest at the start of each round, [R, B].
    rounds
        R rounds of B sequences.
    cached
        Tokens that the draft need not compute again before the first round, at most ``context[0]``, [B].

    Returns
    -------
    Ints
        Tokens, [R + 1, B].

    Examples
    --------
    Two drafts kept of two, then one of two:

    >>> ones = np.ones((2, 1), dtype=np.int64)
    >>> rounds = Rounds(2 * ones, 2 * ones, 3 * ones, ones, np.array([[3], [2]]), ones < 0)
    >>> draft_cached("unseen", np.array([[10], [13]]), rounds, np.array([10])).ravel().tolist()
    [10, 12, 15]
    """
    after = context + rounds.num_emitted
    if first_pass == "newest":
        return np.concatenate([context, after[-1:]])
    passes = rounds.num_draft_steps
    computed = passes if first_pass == "unseen" else np.minimum(passes, 1)
    held = np.empty((len(context) + 1, context.shape[1]), dtype=np.int64)
    held[0] = cached
    held[1:] = np.where(passes > 0, np.minimum(context + computed, after), 0)
    return np.maximum.accumulate(held, axis=0, out=held)
