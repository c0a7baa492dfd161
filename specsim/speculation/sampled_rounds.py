"""Rounds by sampling: tokens are drafted from q, verified against p, and emitted.

Where p and q are known after any prefix, every token is drawn. Stop and next-token draws are keyed by
(request, output position): each position is decided once. Draft draws are keyed by (request, start of the
round, node): a policy may look at drafts that are thrown away, so no later round may see their luck.
"""

from __future__ import annotations

import numpy as np

from specsim.arrays import Bools, Floats, Ints
from specsim.errors import ConfigError
from specsim.speculation.batch_rounds import BatchRounds, BatchRows, chained, places, stacked, taken
from specsim.speculation.distributions import ConditionalDistributions, Prefixes, Signals
from specsim.speculation.draft import Draft, DraftSource, Siblings, node_depths
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.loss import measured_loss
from specsim.speculation.prefixes import last_tokens
from specsim.speculation.rounds import Rounds, Sequences
from specsim.speculation.sampling import draw
from specsim.speculation.uniforms import RoundUniforms
from specsim.speculation.verify.rule import Verifier
from specsim.speculation.walk import Walk, walk

_ROWS_PER_CHUNK = 1024
_MAX_MEASURED = 64
_NUMBERS_PER_WINDOW = 2**16
"""Probabilities of the target over a window of places: bounds memory, and stays within the cache."""


class SampledRounds:
    """A source of rounds that samples every token; see :class:`specsim.speculation.rounds.RoundSource`.

    Parameters
    ----------
    distributions, draft_source, verifier, policy
        Where p and q come from, who drafts, which drafts are kept, and how much to draft. A policy cuts a
        tree at a depth; one that reads signals is for chains.
    uniforms
        The luck of the run.
    num_output_tokens
        Tokens at which each request ends at the latest, the first included, [num_requests].
    shorten_last_draft
        Draft no deeper than may still be emitted.

    Raises
    ------
    ConfigError
        Where the verifier is not stated for such drafts, or the policy needs what sampling cannot give.
    """

    is_approximate = False

    def __init__(
        self,
        distributions: ConditionalDistributions,
        draft_source: DraftSource,
        verifier: Verifier,
        policy: LookaheadPolicy,
        *,
        uniforms: RoundUniforms,
        num_output_tokens: Ints,
        shorten_last_draft: bool = False,
    ) -> None:
        _refuse_mismatch(draft_source, verifier, policy)
        self._distributions = distributions
        self._draft_source = draft_source
        self._verifier = verifier
        self._policy = policy
        self._depth = draft_source.depth
        self._shorten_last_draft = shorten_last_draft
        self._uniforms = uniforms
        self._offset: Ints = np.cumsum(num_output_tokens) - num_output_tokens
        self._emitted: Ints = np.full(int(num_output_tokens.sum()), -1)
        num_context = max(distributions.num_context_tokens, draft_source.num_context_tokens)
        num_requests = num_output_tokens.size
        self._context: Ints = np.full((num_requests, num_context), -1)
        self._state = policy.start(num_requests)
        self._reads_text = num_context > 0
        first = self._first_tokens(num_requests)
        self._emitted[self._offset] = first
        self._context[:, -1:] = first[:, np.newaxis]
        self.num_output_tokens: Ints = np.where(first == self._eos, 1, num_output_tokens)
        """Tokens at which each request ends at the latest: 1 where its first token ends it."""

    def peek(self, sequences: Sequences, *, horizon: int) -> Rounds:
        """1 … ``horizon`` rounds ahead, up to the first in which a sequence ends."""
        request = sequences.request
        rows = BatchRows(
            request, sequences.position, sequences.remaining, self._context[request], self._state[request]
        )
        count = self._num_places(sequences, horizon)
        if count > 1:
            ahead = chained(self._round(places(rows, count)), count, horizon=horizon)
        else:
            ahead = self._one_after_the_other(rows, horizon)
        self._ahead = ahead
        num_rounds = len(ahead.num_drafted)
        widths = np.array(self._draft_source.pass_positions, dtype=np.int64)
        return Rounds(
            num_drafted=ahead.num_drafted,
            num_draft_steps=ahead.num_draft_steps,
            num_positions=ahead.num_drafted + 1,
            num_accepted=ahead.num_accepted,
            num_emitted=ahead.num_emitted,
            is_last=ahead.is_last,
            pass_positions=np.broadcast_to(widths, (num_rounds, widths.size)),
        )

    def commit(self, num_rounds: int) -> None:
        """Make the first ``num_rounds`` of the last peek happen."""
        ahead = taken(self._ahead, np.arange(num_rounds))
        first = self._offset[ahead.after.request] + ahead.position
        place = first[:, :, np.newaxis] + np.arange(self._depth + 1)
        is_emitted = ahead.tokens >= 0
        self._emitted[place[is_emitted]] = ahead.tokens[is_emitted]
        last = taken(ahead.after, num_rounds - 1)
        self._context[last.request] = last.context
        self._state[last.request] = last.state

    def _num_places(self, sequences: Sequences, horizon: int) -> int:
        """Places of each sequence to look at as one batch, at most to the first end; 1 where they differ."""
        if self._reads_text or self._state.shape[1] or horizon == 1:
            return 1
        each = (
            sequences.request.size * (self._draft_source.num_nodes + 1) * self._distributions.vocabulary_size
        )
        return min(_NUMBERS_PER_WINDOW // each, int(sequences.remaining.min()), horizon * (self._depth + 1))

    def _one_after_the_other(self, rows: BatchRows, horizon: int) -> BatchRounds:
        rounds = [self._round(rows)]
        while len(rounds) < horizon and not rounds[-1].is_last.any():
            rounds.append(self._round(rounds[-1].after))
        return stacked(rounds)

    def tokens(self, request: int) -> Ints:
        """Tokens of a request emitted so far, the first (from prefill) included."""
        first = int(self._offset[request])
        end = int(self._offset[request + 1]) if request + 1 < self._offset.size else self._emitted.size
        emitted = self._emitted[first:end]
        return emitted[emitted >= 0]

    def all_tokens(self) -> Ints:
        """Tokens of all requests emitted so far, [num_requests, longest]; -1 pads."""
        length = np.diff(np.append(self._offset, self._emitted.size))
        row = np.repeat(np.arange(length.size), length)
        tokens: Ints = np.full((length.size, int(length.max())), -1)
        tokens[row, np.arange(row.size) - self._offset[row]] = self._emitted
        return tokens

    def loss_per_token(self) -> float | None:
        """Total variation of the next token's law from the target's after what was emitted; None: unknown.

        Measured after 64 places of the texts, spread evenly; after one where no context counts.
        """
        if self._verifier.is_lossless or self._draft_source.num_nodes == 0:
            return 0.0
        return measured_loss(
            self._distributions, self._draft_source, self._verifier, self._seen_prefixes(_MAX_MEASURED)
        )

    def _seen_prefixes(self, most: int) -> Prefixes:
        tokens = self.all_tokens()
        num_context = self._context.shape[1]
        request, position = np.nonzero(tokens >= 0)
        chosen = np.unique(np.linspace(0, request.size - 1, most if num_context else 1).astype(np.int64))
        request, position = request[chosen], position[chosen] + 1
        before = np.concatenate([np.full((len(tokens), num_context), -1), tokens], axis=1)
        place = position[:, np.newaxis] + np.arange(num_context)
        return Prefixes(request, position, before[request[:, np.newaxis], place])

    @property
    def _eos(self) -> int:
        # No token is -2, so that it never ends a sequence.
        return -2 if self._distributions.eos_token_id is None else self._distributions.eos_token_id

    def _first_tokens(self, num_requests: int) -> Ints:
        """Token that prefill emits for each request."""
        tokens: Ints = np.empty(num_requests, dtype=np.int64)
        for first in range(0, num_requests, _ROWS_PER_CHUNK):
            request = np.arange(first, min(first + _ROWS_PER_CHUNK, num_requests))
            prefix = last_tokens(
                Prefixes(request, np.zeros_like(request), self._context[request]),
                self._distributions.num_context_tokens,
            )
            uniforms = self._uniforms.next_token.at(prefix.request, prefix.position)[:, 0]
            tokens[request] = draw(self._distributions.target(prefix), uniforms)
        return tokens

    def _round(self, rows: BatchRows) -> BatchRounds:
        depth = self._depth
        limit = np.full(rows.request.size, depth)
        if self._shorten_last_draft:
            limit = np.minimum(limit, rows.remaining - 1)
        draft = self._draft_source.propose(
            Prefixes(rows.request, rows.position, rows.context),
            self._uniforms.draft.at(rows.request, rows.position),
        )
        length = self._policy.lengths(self._signals(draft), rows.state, limit)
        # The policy is causal, so cutting a whole draft is stopping it there: the rest was never seen.
        depths = node_depths(draft.parent)
        draft.token = np.where(depths < length[:, np.newaxis], draft.token, -1)
        target = self._target(rows, draft, depths)
        place = rows.position[:, np.newaxis] + np.arange(depth)
        stop = self._uniforms.stop.at(np.repeat(rows.request, depth), place.ravel())[:, 0]
        kept = self._walk(draft, self._verifier.descend(draft, target), stop.reshape(place.shape))
        law = self._verifier.next_token(draft, target, kept.last)
        after = rows.position + kept.num_kept
        following = draw(law, self._uniforms.next_token.at(rows.request, after)[:, 0])
        num_steps = self._num_steps(draft, depths, length, is_stopped=length < limit)
        return self._committed(rows, draft, depths, num_steps, kept, following)

    def _walk(self, draft: Draft, keep: Floats, stop: Floats) -> Walk:
        return walk(draft, keep, stop)

    def _num_steps(self, draft: Draft, depths: Ints, length: Ints, *, is_stopped: Bools) -> Ints:
        """Draft passes paid, [B]: one a level that has drafts, or those of a lookup, hit or miss."""
        num_passes = len(self._draft_source.pass_positions)
        if num_passes < self._depth:
            return np.minimum(length, num_passes)
        return _num_levels(draft, depths) + self._policy.passes_ahead * is_stopped

    def _committed(
        self, rows: BatchRows, draft: Draft, depths: Ints, num_steps: Ints, kept: Walk, following: Ints
    ) -> BatchRounds:
        """Cut what was kept at the cap and at an end token, and move on."""
        num_kept = kept.num_kept
        node = np.arange(self._depth + 1)
        tokens = np.concatenate([kept.tokens, np.full((num_kept.size, 1), -1)], axis=1)
        tokens[np.arange(num_kept.size), num_kept] = following
        is_end = tokens == self._eos
        until_end = np.where(is_end.any(axis=1), is_end.argmax(axis=1) + 1, num_kept + 1)
        num_emitted = np.minimum(until_end, rows.remaining)
        tokens[node >= num_emitted[:, np.newaxis]] = -1
        is_last = (num_emitted == rows.remaining) | (is_end & (tokens >= 0)).any(axis=1)
        whole = np.concatenate([rows.context, tokens], axis=1)
        last = num_emitted[:, np.newaxis] + np.arange(rows.context.shape[1])
        after = BatchRows(
            request=rows.request,
            position=rows.position + num_emitted,
            remaining=rows.remaining - num_emitted,
            context=np.take_along_axis(whole, last, axis=1),
            state=self._policy.observe(rows.state, _num_levels(draft, depths), num_kept),
        )
        return BatchRounds(
            position=rows.position,
            tokens=tokens,
            num_drafted=(draft.token >= 0).sum(axis=1),
            num_draft_steps=num_steps,
            num_accepted=np.minimum(num_kept, num_emitted),
            num_emitted=num_emitted,
            is_last=is_last,
            after=after,
        )

    def _signals(self, draft: Draft) -> Signals:
        q = draft.probabilities if draft.model_law is None else draft.model_law
        if self._policy.reads != "signals":
            unread = np.broadcast_to(np.nan, q.shape[:2])
            return Signals(top_probability=unread, entropy_nats=unread)
        return Signals(
            top_probability=q.max(axis=2),
            entropy_nats=-(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=2),
        )

    def _target(self, rows: BatchRows, draft: Draft, depths: Ints) -> Floats:
        """Target distribution at the root and after each node, [B, N + 1, V]."""
        num_rows, num_places = rows.request.size, draft.token.shape[1] + 1
        num_context = self._distributions.num_context_tokens
        at_row = np.arange(num_rows)
        tokens: Ints = np.empty((num_rows, num_places, num_context), dtype=np.int64)
        if num_context:
            tokens[:, 0] = rows.context[:, rows.context.shape[1] - num_context :]
            for node in range(num_places - 1):
                tokens[:, node + 1, :-1] = tokens[at_row, draft.parent[:, node] + 1, 1:]
                # What stands after padding is never read; token 0 keeps it a prefix.
                tokens[:, node + 1, -1] = np.maximum(draft.token[:, node], 0)
        depth = np.concatenate([np.zeros((num_rows, 1), dtype=np.int64), depths + 1], axis=1)
        prefix = Prefixes(
            request=np.repeat(rows.request, num_places),
            position=(rows.position[:, np.newaxis] + depth).ravel(),
            tokens=tokens.reshape(num_rows * num_places, num_context),
        )
        return self._distributions.target(prefix).reshape(num_rows, num_places, -1)


def _refuse_mismatch(draft_source: DraftSource, verifier: Verifier, policy: LookaheadPolicy) -> None:
    if policy.reads == "batch":
        raise ConfigError.at("lookahead", "a policy that reads the batch is not supported")
    if policy.reads == "signals" and draft_source.siblings != "one":
        raise ConfigError.at(
            "lookahead", "a policy that reads the draft's confidence is for chains, not for trees"
        )
    refuse_siblings(draft_source.siblings, verifier)


def refuse_siblings(siblings: Siblings, verifier: Verifier) -> None:
    """Raise a ConfigError where a rule is not stated for drafts of such siblings."""
    if siblings not in verifier.siblings:
        raise ConfigError.at(
            "verifier",
            f"not stated for drafts whose siblings are '{siblings}'; it takes {', '.join(verifier.siblings)}",
        )


def _num_levels(draft: Draft, depths: Ints) -> Ints:
    """Levels that have drafts, [B]: of a chain, its length."""
    levels: Ints = np.where(draft.token >= 0, depths + 1, 0).max(axis=1, initial=0)
    return levels
