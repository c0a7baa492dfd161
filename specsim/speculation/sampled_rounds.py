"""Rounds by sampling: tokens are drafted from q, verified against p, and emitted.

Where p and q are known after any prefix, every token is drawn. Stop and next-token draws are keyed by
(request, output position): each position is decided once. Draft draws are keyed by (request, start of the
round, node): a policy may look at drafts that are thrown away, so no later round may see their luck.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from specsim.arrays import Bools, Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation.distributions import ConditionalDistributions, Prefixes, Signals
from specsim.speculation.draft import Draft, DraftSource
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.rounds import Rounds, Sequences
from specsim.speculation.sampling import draw
from specsim.speculation.uniforms import UniformTable
from specsim.speculation.verify.rule import Verifier
from specsim.streams import Purpose, RandomStreams

_ROWS_PER_CHUNK = 1024


@dataclass(slots=True)
class _Rows:
    """The batch between two rounds, arrays [B, …]."""

    request: Ints
    position: Ints
    remaining: Ints
    context: Ints
    """The last tokens that matter, [B, L]; -1 where there are none."""
    state: Floats
    """What the policy remembers, [B, S]."""


@dataclass(slots=True)
class _Round:
    """One round of the batch and the batch after it."""

    position: Ints
    tokens: Ints
    """Emitted tokens, [B, K + 1]; -1 pads."""
    num_drafted: Ints
    num_draft_steps: Ints
    num_accepted: Ints
    num_emitted: Ints
    is_last: Bools
    after: _Rows


class SampledRounds:
    """A source of rounds that samples every token; see :class:`specsim.speculation.rounds.RoundSource`.

    Parameters
    ----------
    distributions, draft_source, verifier, policy
        Where p and q come from, who drafts, which drafts are kept, and how much to draft. A policy that
        reads the batch is refused: its rounds depend on more than the request.
    streams
        Randomness of the run.
    num_output_tokens
        Tokens at which each request ends at the latest, the first included, [num_requests].
    num_speculative_tokens
        The most that a round drafts, K: the length of the source's chains.
    shorten_last_draft
        Draft no more than may still be emitted.
    """

    is_approximate = False

    def __init__(
        self,
        distributions: ConditionalDistributions,
        draft_source: DraftSource,
        verifier: Verifier,
        policy: LookaheadPolicy,
        *,
        streams: RandomStreams,
        num_output_tokens: Ints,
        num_speculative_tokens: int,
        shorten_last_draft: bool = False,
    ) -> None:
        if policy.reads == "batch":
            raise ConfigError("lookahead: a policy that reads the batch is not supported")
        self._distributions = distributions
        self._draft_source = draft_source
        self._verifier = verifier
        self._policy = policy
        self._depth = num_speculative_tokens
        self._shorten_last_draft = shorten_last_draft
        self._stop = UniformTable(streams.luck(Purpose.STOP))
        self._next = UniformTable(streams.luck(Purpose.NEXT_TOKEN))
        self._draft = UniformTable(streams.luck(Purpose.DRAFT), num_nodes=num_speculative_tokens)
        self._offset: Ints = np.cumsum(num_output_tokens) - num_output_tokens
        self._emitted: Ints = np.full(int(num_output_tokens.sum()), -1)
        num_requests, num_context = num_output_tokens.size, distributions.num_context_tokens
        self._context: Ints = np.full((num_requests, num_context), -1)
        self._state = policy.start(num_requests)
        self._ahead: list[_Round] = []
        first = self._first_tokens(num_requests)
        self._emitted[self._offset] = first
        self._context[:, -1:] = first[:, np.newaxis]
        self.num_output_tokens: Ints = np.where(first == self._eos, 1, num_output_tokens)
        """Tokens at which each request ends at the latest: 1 where its first token ends it."""

    def peek(self, sequences: Sequences, *, horizon: int) -> Rounds:
        """1 … ``horizon`` rounds ahead, up to the first in which a sequence ends."""
        request = sequences.request
        rows = _Rows(
            request, sequences.position, sequences.remaining, self._context[request], self._state[request]
        )
        self._ahead = []
        while len(self._ahead) < horizon:
            self._ahead.append(self._round(rows))
            rows = self._ahead[-1].after
            if self._ahead[-1].is_last.any():
                break
        num_drafted = np.stack([one.num_drafted for one in self._ahead])
        return Rounds(
            num_drafted=num_drafted,
            num_draft_steps=np.stack([one.num_draft_steps for one in self._ahead]),
            num_positions=num_drafted + 1,
            num_accepted=np.stack([one.num_accepted for one in self._ahead]),
            num_emitted=np.stack([one.num_emitted for one in self._ahead]),
            is_last=np.stack([one.is_last for one in self._ahead]),
        )

    def commit(self, num_rounds: int) -> None:
        """Make the first ``num_rounds`` of the last peek happen."""
        for one in self._ahead[:num_rounds]:
            first = self._offset[one.after.request] + one.position
            place = first[:, np.newaxis] + np.arange(self._depth + 1)
            is_emitted = one.tokens >= 0
            self._emitted[place[is_emitted]] = one.tokens[is_emitted]
            self._context[one.after.request] = one.after.context
            self._state[one.after.request] = one.after.state
        self._ahead = []

    def tokens(self, request: int) -> Ints:
        """Tokens of a request emitted so far, the first (from prefill) included."""
        first = int(self._offset[request])
        end = int(self._offset[request + 1]) if request + 1 < self._offset.size else self._emitted.size
        emitted = self._emitted[first:end]
        return emitted[emitted >= 0]

    @property
    def _eos(self) -> int:
        # No token is -2, so that it never ends a sequence.
        return -2 if self._distributions.eos_token_id is None else self._distributions.eos_token_id

    def _first_tokens(self, num_requests: int) -> Ints:
        """Token that prefill emits for each request."""
        tokens: Ints = np.empty(num_requests, dtype=np.int64)
        for first in range(0, num_requests, _ROWS_PER_CHUNK):
            request = np.arange(first, min(first + _ROWS_PER_CHUNK, num_requests))
            prefix = Prefixes(request, np.zeros_like(request), self._context[request])
            uniforms = self._next.at(prefix.request, prefix.position)[:, 0]
            tokens[request] = draw(self._distributions.target(prefix), uniforms)
        return tokens

    def _round(self, rows: _Rows) -> _Round:
        depth = self._depth
        node = np.arange(depth)
        limit = np.full(rows.request.size, depth)
        if self._shorten_last_draft:
            limit = np.minimum(limit, rows.remaining - 1)
        draft = self._drafted(rows)
        length = self._policy.lengths(self._signals(draft), rows.state, limit)
        # The policy is causal, so cutting a whole chain is stopping it there: the rest was never seen.
        draft.token = np.where(node < length[:, np.newaxis], draft.token, -1)
        target = self._target(rows, draft)
        keep = self._verifier.descend(draft, target)
        place = rows.position[:, np.newaxis] + node
        stop = self._stop.at(np.repeat(rows.request, depth), place.ravel())[:, 0].reshape(place.shape)
        kept: Ints = np.logical_and.accumulate(stop < keep, axis=1).sum(axis=1, dtype=np.int64)
        law = self._verifier.next_token(draft, target, kept - 1)
        following = draw(law, self._next.at(rows.request, rows.position + kept)[:, 0])
        return self._committed(rows, draft, length < limit, kept, following)

    def _committed(self, rows: _Rows, draft: Draft, is_stopped: Bools, kept: Ints, following: Ints) -> _Round:
        """Cut what was kept at the cap and at an end token, and move on."""
        node = np.arange(self._depth + 1)
        tokens = np.concatenate([draft.token, np.full((kept.size, 1), -1)], axis=1)
        tokens[np.arange(kept.size), kept] = following
        is_end = (tokens == self._eos) & (node <= kept[:, np.newaxis])
        until_end = np.where(is_end.any(axis=1), is_end.argmax(axis=1) + 1, kept + 1)
        num_emitted = np.minimum(until_end, rows.remaining)
        tokens[node >= num_emitted[:, np.newaxis]] = -1
        num_drafted = (draft.token >= 0).sum(axis=1)
        is_last = (num_emitted == rows.remaining) | (is_end & (tokens >= 0)).any(axis=1)
        whole = np.concatenate([rows.context, tokens], axis=1)
        last = num_emitted[:, np.newaxis] + np.arange(rows.context.shape[1])
        after = _Rows(
            request=rows.request,
            position=rows.position + num_emitted,
            remaining=rows.remaining - num_emitted,
            context=np.take_along_axis(whole, last, axis=1),
            state=self._policy.observe(rows.state, num_drafted, kept),
        )
        return _Round(
            position=rows.position,
            tokens=tokens,
            num_drafted=num_drafted,
            num_draft_steps=num_drafted + self._policy.passes_ahead * is_stopped,
            num_accepted=np.minimum(kept, num_emitted),
            num_emitted=num_emitted,
            is_last=is_last,
            after=after,
        )

    def _drafted(self, rows: _Rows) -> Draft:
        prefix = Prefixes(rows.request, rows.position, rows.context)
        if self._depth == 0:
            none = np.empty((rows.request.size, 0), dtype=np.int64)
            return Draft(none, none, np.empty((rows.request.size, 0, self._distributions.vocabulary_size)))
        return self._draft_source.propose(prefix, self._draft.at(rows.request, rows.position))

    def _signals(self, draft: Draft) -> Signals:
        q = draft.probabilities
        if self._policy.reads != "signals":
            unread = np.broadcast_to(np.nan, q.shape[:2])
            return Signals(top_probability=unread, entropy_nats=unread)
        return Signals(
            top_probability=q.max(axis=2),
            entropy_nats=-(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=2),
        )

    def _target(self, rows: _Rows, draft: Draft) -> Floats:
        """Target distribution at the root and after each node of the chain, [B, K + 1, V]."""
        num_rows, num_places = rows.request.size, self._depth + 1
        # What stands after padding is never read; token 0 keeps it a prefix.
        whole = np.concatenate([rows.context, np.where(draft.token >= 0, draft.token, 0)], axis=1)
        num_context = rows.context.shape[1]
        if num_context:
            tokens = sliding_window_view(whole, num_context, axis=1).reshape(-1, num_context)
        else:
            tokens = np.empty((num_rows * num_places, 0), dtype=np.int64)
        prefix = Prefixes(
            request=np.repeat(rows.request, num_places),
            position=(rows.position[:, np.newaxis] + np.arange(num_places)).ravel(),
            tokens=tokens,
        )
        return self._distributions.target(prefix).reshape(num_rows, num_places, -1)
