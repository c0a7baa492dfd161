"""All rounds of whole requests along their paths, computed ahead of time.

Every position at which a round may start is a place; the places of a group of requests lie end to end.
What happens to K drafts is computed for all places at once. Then rounds are chained: a round at place n
that emits m tokens is followed by one at place n + m, and a request's last round leads to the first place
of the next request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from specsim.arrays import Bools, Ints
from specsim.speculation.distributions import PathDistributions, Signals
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.tails import HasTails
from specsim.streams import Luck

FIELDS = ("start", "num_drafted", "num_draft_steps", "num_accepted", "num_emitted")
"""Columns of unfolded rounds."""
_DRAFTS_PER_CHUNK = 2**17
"""Places times depth in one array pass: bounds memory, and stays within the cache."""


@dataclass(slots=True)
class _Places:
    """Where rounds may start, and what would happen to K drafts there; arrays [places]."""

    request: Ints
    position: Ints
    remaining: Ints
    """Tokens that may still be emitted."""
    limit: Ints
    """The most that may be drafted."""
    kept: Ints
    """Drafts kept before the first that is not, or is not offered."""
    offered: Ints
    """Drafts offered: fewer than K where a lookup missed or ran out."""


class Unfolding:
    """Unfolds requests into rounds.

    Parameters
    ----------
    distributions, policy
        What is known along the paths, and how much to draft.
    stop_luck
        Stop uniforms, keyed by request and output position.
    num_speculative_tokens
        The most that a round drafts, K.
    shorten_last_draft
        Draft no more than may still be emitted.
    """

    def __init__(
        self,
        distributions: PathDistributions,
        policy: LookaheadPolicy,
        *,
        stop_luck: Luck,
        num_speculative_tokens: int,
        shorten_last_draft: bool,
    ) -> None:
        self._distributions = distributions
        self._policy = policy
        self._stop_luck = stop_luck
        self._depth = num_speculative_tokens
        self._shorten_last_draft = shorten_last_draft

    def unfold(self, group: Ints, ends: Ints) -> tuple[NDArray[np.int32], Ints]:
        """Return the rounds of each request from position 1 to its end, and how many each request has.

        Parameters
        ----------
        group
            Request numbers, increasing, [requests].
        ends
            Output position at which each ends: its number of tokens, [requests].

        Returns
        -------
        tuple
            Rounds of all requests end to end, [rounds, fields]; number of rounds, [requests].
        """
        num_places = np.maximum(ends - 1, 0)
        first_place = np.cumsum(num_places) - num_places
        places = self._places(group, ends, num_places, first_place)
        if self._policy.start(1).shape[1] == 0:
            place, length = self._chain(places)
        else:
            place, length = self._step(places, first_place[num_places > 0])
        rows = self._rows(places, place, length)
        num_rounds = np.diff(np.searchsorted(place, np.append(first_place, places.request.size)))
        return rows, num_rounds

    def _places(self, group: Ints, ends: Ints, num_places: Ints, first_place: Ints) -> _Places:
        request = np.repeat(group, num_places)
        position = np.arange(request.size) - np.repeat(first_place, num_places) + 1
        remaining = np.repeat(ends, num_places) - position
        limit = np.full(request.size, self._depth)
        kept, offered = np.zeros_like(limit), limit
        if self._depth > 0 and request.size > 0:
            kept, offered = self._outcomes(group, num_places, request, position)
        if self._shorten_last_draft:
            limit = np.minimum(limit, remaining - 1)
        return _Places(request, position, remaining, limit, kept, offered)

    def _outcomes(self, group: Ints, num_places: Ints, request: Ints, position: Ints) -> tuple[Ints, Ints]:
        depth = self._depth
        # Each request's uniforms reach past its last place, so that no window holds those of two.
        uniforms = np.concatenate(
            [
                self._stop_luck.along(number, 1, count + depth - 1)
                for number, count in zip(group.tolist(), num_places.tolist(), strict=True)
                if count > 0
            ]
        )
        windows = sliding_window_view(uniforms, depth)
        window = np.arange(request.size) + np.repeat(
            (depth - 1) * (np.cumsum(num_places > 0) - 1), num_places
        )
        kept = np.empty(request.size, dtype=np.int64)
        offered = np.full(request.size, depth)
        chunk = max(1, _DRAFTS_PER_CHUNK // depth)
        for first in range(0, request.size, chunk):
            part = slice(first, first + chunk)
            acceptance = self._distributions.acceptance(request[part], position[part], depth)
            kept[part] = _num_leading(windows[window[part]] < acceptance)
            if self._distributions.drafts_in_one_pass:
                offered[part] = _num_leading(~np.isnan(acceptance))
        return kept, offered

    def _chain(self, places: _Places) -> tuple[Ints, Ints]:
        """Places of all rounds and their lengths where the policy remembers nothing."""
        size = places.request.size
        length = np.empty(size, dtype=np.int64)
        state = np.zeros((size, 0))
        chunk = max(1, _DRAFTS_PER_CHUNK // max(self._depth, 1))
        for first in range(0, size, chunk):
            part = slice(first, first + chunk)
            signals = self._signals(places, part)
            length[part] = self._policy.lengths(signals, state[part], places.limit[part])
        drafted = np.minimum(length, places.offered)
        emitted = np.minimum(np.minimum(places.kept, drafted) + 1, places.remaining)
        following = (np.arange(size) + emitted).tolist()
        visited, at = [], 0
        while at < size:
            visited.append(at)
            at = following[at]
        place = np.array(visited, dtype=np.int64)
        return place, length[place]

    def _step(self, places: _Places, place: Ints) -> tuple[Ints, Ints]:
        """Places of all rounds and their lengths, round by round for all requests at once."""
        state = self._policy.start(place.size)
        visited, lengths = [place[:0]], [place[:0]]
        while place.size:
            signals = self._signals(places, place)
            length = self._policy.lengths(signals, state, places.limit[place])
            drafted = np.minimum(length, places.offered[place])
            accepted = np.minimum(places.kept[place], drafted)
            visited.append(place)
            lengths.append(length)
            state = self._policy.observe(state, drafted, accepted)
            is_going_on = accepted + 1 < places.remaining[place]
            place, state = (place + accepted + 1)[is_going_on], state[is_going_on]
        all_places, all_lengths = np.concatenate(visited), np.concatenate(lengths)
        order = np.argsort(all_places)
        return all_places[order], all_lengths[order]

    def _signals(self, places: _Places, rows: Ints | slice) -> Signals:
        request, position = places.request[rows], places.position[rows]
        if self._policy.reads == "signals":
            if self._distributions.records_tails and isinstance(self._distributions, HasTails):
                return self._distributions.drafted_signals(request, position, self._depth, places.kept[rows])
            return self._distributions.signals(request, position, self._depth)
        unread = np.broadcast_to(np.nan, (request.size, self._depth))
        return Signals(top_probability=unread, entropy_nats=unread)

    def _rows(self, places: _Places, place: Ints, length: Ints) -> NDArray[np.int32]:
        limit, remaining = places.limit[place], places.remaining[place]
        drafted = np.minimum(length, places.offered[place])
        kept = np.minimum(places.kept[place], drafted)
        if self._distributions.drafts_in_one_pass:
            steps = np.minimum(length, 1)
        else:
            steps = drafted + self._policy.passes_ahead * (drafted < limit)
        rows = np.empty((place.size, len(FIELDS)), dtype=np.int32)
        rows[:, 0] = places.position[place]
        rows[:, 1] = drafted
        rows[:, 2] = steps
        rows[:, 3] = np.minimum(kept, remaining)
        rows[:, 4] = np.minimum(kept + 1, remaining)
        return rows


def _num_leading(holds: Bools) -> Ints:
    """Return the number of leading true entries of each row."""
    count: Ints = np.logical_and.accumulate(holds, axis=1).sum(axis=1)
    return count
