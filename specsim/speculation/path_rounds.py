"""Rounds along paths: exact replay of a recording, or acceptance rates.

A path fixes the tokens, so a request's rounds depend on nothing but its own luck: the draft at position
i of a round started at s is kept iff the stop uniform of i is below a(s, i). Each request is therefore
unfolded once, when first asked for, together with its neighbours; a peek is a gather.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specsim.arrays import Ints
from specsim.errors import ConfigError
from specsim.speculation.distributions import PathDistributions
from specsim.speculation.logged import HasOwnLengths
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.rounds import Rounds, Sequences
from specsim.speculation.tree_shape import TreeShape
from specsim.speculation.unfolding import FIELDS, Unfolding
from specsim.streams import Purpose, RandomStreams

_REQUESTS_PER_GROUP = 64
_TOKENS_PER_GROUP = 2**18


class PathRounds:
    """A source of rounds along paths; see :class:`specsim.speculation.rounds.RoundSource`.

    Parameters
    ----------
    distributions
        What is known along the paths.
    policy
        How much to draft. A rule that reads the batch is refused: its rounds depend on more than the path.
    streams
        Randomness of the run; stop uniforms are keyed by request and output position.
    num_output_tokens
        Tokens at which each request ends at the latest, the first included, [num_requests].
    num_speculative_tokens
        The most that a round drafts, K.
    shorten_last_draft
        Draft no more than may still be emitted.
    tree
        Shape of the draft, where it is a tree; a policy cuts it at a depth, and K is its depth.
    """

    def __init__(
        self,
        distributions: PathDistributions,
        policy: LookaheadPolicy,
        *,
        streams: RandomStreams,
        num_output_tokens: Ints,
        num_speculative_tokens: int,
        shorten_last_draft: bool = False,
        tree: TreeShape | None = None,
    ) -> None:
        if policy.reads == "batch":
            raise ConfigError.at("lookahead", "a policy that reads the batch cannot be replayed along a path")
        if policy.reads == "signals" and tree is not None:
            raise ConfigError.at(
                "lookahead", "a policy that reads the draft's confidence is for chains, not for trees"
            )
        self._tree = tree
        self._nodes_upto = None if tree is None else np.searchsorted(tree.depths, np.arange(tree.depth + 1))
        leaves_path = policy.reads == "signals" and not distributions.records_tails
        is_imputed = isinstance(distributions, HasOwnLengths) and not distributions.is_exact_for(
            policy, num_speculative_tokens=num_speculative_tokens
        )
        self.is_approximate = leaves_path or is_imputed
        self._distributions = distributions
        self._unfolding = Unfolding(
            distributions,
            policy,
            stop_luck=streams.luck(Purpose.STOP),
            num_speculative_tokens=num_speculative_tokens,
            shorten_last_draft=shorten_last_draft,
        )
        self._num_output_tokens = num_output_tokens
        num_requests = num_output_tokens.size
        self._rows: NDArray[np.int32] = np.empty((1024, len(FIELDS)), dtype=np.int32)
        self._num_rows = 0
        self._cursor: Ints = np.full(num_requests, -1)
        self._end: Ints = np.zeros(num_requests, dtype=np.int64)
        self._ahead: Ints = np.arange(256)[:, np.newaxis]
        self._last_peek: Ints = np.empty(0, dtype=np.int64)

    def peek(self, sequences: Sequences, *, horizon: int) -> Rounds:
        """1 … ``horizon`` rounds ahead, up to the first in which a sequence ends."""
        request = sequences.request
        cursor = self._cursor[request]
        if cursor.min() < 0:
            for fresh in request[cursor < 0].tolist():
                if self._cursor[fresh] < 0:
                    self._unfold_group(fresh)
            cursor = self._cursor[request]
        num_left = self._end[request] - cursor
        count = min(horizon, int(num_left.min()))
        ahead = self._ahead[:count] if count <= len(self._ahead) else np.arange(count)[:, np.newaxis]
        block = self._rows.take(cursor + ahead, axis=0).transpose(2, 0, 1).astype(np.int64)
        start, drafted, steps, accepted, emitted = block
        pass_positions = None
        if self._tree is not None and self._nodes_upto is not None:
            drafted = self._nodes_upto[drafted]
            passes = np.array(self._tree.pass_positions, dtype=np.int64)
            pass_positions = np.broadcast_to(passes, (count, passes.size))
        assert (start[0] == sequences.position).all(), "rounds were not committed as they were emitted"
        self._last_peek = request
        return Rounds(
            num_drafted=drafted,
            num_draft_steps=steps,
            num_positions=drafted + 1,
            num_accepted=accepted,
            num_emitted=emitted,
            is_last=ahead == num_left - 1,
            pass_positions=pass_positions,
        )

    def commit(self, num_rounds: int) -> None:
        """Make the first ``num_rounds`` of the last peek happen."""
        self._cursor[self._last_peek] += num_rounds

    def _unfold_group(self, request: int) -> None:
        """Unfold a request and those next to it: array passes over many cost little more than over one."""
        first = request - request % _REQUESTS_PER_GROUP
        group = np.arange(first, min(first + _REQUESTS_PER_GROUP, self._cursor.size))
        ends = self._ends(group)
        if ends.sum() > _TOKENS_PER_GROUP:
            group, ends = np.array([request]), ends[request - first : request - first + 1]
        group, ends = group[self._cursor[group] < 0], ends[self._cursor[group] < 0]
        rows, num_rounds = self._unfolding.unfold(group, ends)
        self._append(rows)
        self._end[group] = self._num_rows - rows.shape[0] + np.cumsum(num_rounds)
        self._cursor[group] = self._end[group] - num_rounds

    def _ends(self, group: Ints) -> Ints:
        paths = [self._distributions.path(int(request)) for request in group]
        caps = self._num_output_tokens[group]
        lengths = [cap if path is None else path.num_tokens for cap, path in zip(caps, paths, strict=True)]
        ends: Ints = np.minimum(caps, np.array(lengths))
        return ends

    def _append(self, rows: NDArray[np.int32]) -> None:
        needed = self._num_rows + rows.shape[0]
        if needed > self._rows.shape[0]:
            grown = np.empty((max(needed, self._rows.shape[0] * 3 // 2), len(FIELDS)), dtype=np.int32)
            grown[: self._num_rows] = self._rows[: self._num_rows]
            self._rows = grown
        self._rows[self._num_rows : needed] = rows
        self._num_rows = needed
