"""The serving loop as a SimPy process: admit, prefill, draft, verify, commit."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import simpy

from specsim.arrays import MAX_CLOCK_PS, PICOSECONDS_PER_SECOND, Bools, Ints
from specsim.engine.arrivals import ArrivalQueue
from specsim.engine.draft_cache import draft_cached
from specsim.engine.pair import Block, Pair
from specsim.engine.recorder import Recorder
from specsim.engine.shapes import PrefillPasses, contexts, prefill_passes
from specsim.errors import DomainError
from specsim.speculation.rounds import Rounds, RoundSource, Sequences

Process = Generator[simpy.Event, None, None]

_MAX_PREFILLS = 1024


@dataclass(slots=True)
class Plan:
    """What the loop serves, and within which limits."""

    num_prompt_tokens: Ints
    """Prompt lengths, [num_requests]."""
    num_output_tokens: Ints
    """Tokens at which each request ends at the latest, [num_requests]."""
    is_cut_by_recorder: Bools
    """The recording, not the text, ends the request, [num_requests]: its last round is censored."""
    max_num_seqs: int
    """Most sequences in a batch."""
    max_num_batched_tokens: int
    """Most tokens in a prefill pass."""
    horizon: int
    """Rounds that may be stepped in one block; results do not depend on it."""


class Server:
    """Continuous service of one target, with or without a draft.

    New requests are prefilled first, then all running sequences take rounds together. A block of rounds
    is cut at the first round in which a sequence ends, or a request arrives that can be admitted.

    Parameters
    ----------
    env
        The environment whose clock counts picoseconds.
    plan
        What is served.
    arrivals
        The queue that requests wait in.
    pair
        The models.
    rounds
        Where the rounds come from.
    recorder
        Where all of it is written down.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        plan: Plan,
        arrivals: ArrivalQueue,
        pair: Pair,
        rounds: RoundSource,
        recorder: Recorder,
    ) -> None:
        self._env = env
        self._plan = plan
        self._arrivals = arrivals
        self._pair = pair
        self._rounds = rounds
        self._recorder = recorder
        self._request: Ints = np.zeros(0, dtype=np.int64)
        self._position: Ints = np.zeros(0, dtype=np.int64)
        self._draft_cached: Ints = np.zeros(0, dtype=np.int64)
        self._prefills: dict[bytes, tuple[PrefillPasses, Block]] = {}

    @property
    def _now_ps(self) -> int:
        return int(self._env.now)

    def serve(self) -> Process:
        """Serve until no request is left."""
        while True:
            room = self._plan.max_num_seqs - self._request.size
            admitted = self._arrivals.admit(self._now_ps, room=room)
            if admitted:
                yield from self._prefill(np.array(admitted, dtype=np.int64))
            elif self._request.size:
                yield from self._step(has_room=room > 0)
            elif (arrival_ps := self._arrivals.next_arrival_ps()) is not None:
                yield self._env.timeout(arrival_ps - self._now_ps)
            else:
                return

    def _prefill(self, admitted: Ints) -> Process:
        passes, block = self._prefill_block(self._plan.num_prompt_tokens[admitted])
        self._recorder.add_steps("prefill", self._now_ps, block)
        ends_ps: Ints = self._now_ps + np.cumsum(block.duration_ps)
        yield from self._occupy(block)
        first_token_ps = ends_ps[passes.last_pass]
        self._recorder.first_token(admitted, first_token_ps)
        goes_on = self._plan.num_output_tokens[admitted] > 1
        # An answer of one token is whole with it, though passes over other prompts follow.
        for request, time_ps in zip(admitted[~goes_on], first_token_ps[~goes_on].tolist(), strict=True):
            self._finish(request[None], time_ps, num_output_tokens=1)
        running = admitted[goes_on]
        self._request = np.concatenate([self._request, running])
        self._position = np.concatenate([self._position, np.ones_like(running)])
        prompts = self._plan.num_prompt_tokens[running]
        self._draft_cached = np.concatenate([self._draft_cached, prompts])

    def _prefill_block(self, num_prompt_tokens: Ints) -> tuple[PrefillPasses, Block]:
        """Return the passes over some prompts and their cost, which recur with the lengths."""
        key = num_prompt_tokens.tobytes()
        found = self._prefills.get(key)
        if found is None:
            passes = prefill_passes(
                num_prompt_tokens, max_num_batched_tokens=self._plan.max_num_batched_tokens
            )
            found = self._prefills[key] = passes, self._pair.prefill(passes.shape)
            if len(self._prefills) > _MAX_PREFILLS:
                self._prefills.pop(next(iter(self._prefills)))
        return found

    def _step(self, *, has_room: bool) -> Process:
        caps = self._plan.num_output_tokens[self._request]
        sequences = Sequences(self._request, self._position, caps - self._position)
        rounds = self._rounds.peek(sequences, horizon=self._plan.horizon)
        # The last emitted token is not in the cache yet: the next round computes it.
        cached_tokens = self._plan.num_prompt_tokens[self._request] + self._position - 1
        context = contexts(cached_tokens, rounds)
        held = draft_cached(self._pair.first_pass, context, rounds, self._draft_cached)
        block = self._pair.rounds(context, rounds, held[:-1])
        if has_room:
            count = self._rounds_until_arrival(block)
            block, rounds = block.first(count), rounds.first(count)
        self._recorder.add_rounds(
            self._request, rounds, is_censored=rounds.is_last & self._plan.is_cut_by_recorder[self._request]
        )
        self._recorder.add_steps("decode", self._now_ps, block)
        yield from self._occupy(block)
        self._commit(rounds, draft_cached=held[rounds.num_rounds])

    def _rounds_until_arrival(self, block: Block) -> int:
        """Return the rounds of a block up to and including the one during which the next request arrives."""
        arrival_ps = self._arrivals.next_arrival_ps()
        ends_ps = self._now_ps + np.cumsum(block.duration_ps)
        if arrival_ps is None or arrival_ps > ends_ps[-1]:
            return int(ends_ps.size)
        return int(np.searchsorted(ends_ps, arrival_ps)) + 1

    def _commit(self, rounds: Rounds, *, draft_cached: Ints) -> None:
        self._rounds.commit(rounds.num_rounds)
        self._position = self._position + rounds.num_emitted.sum(axis=0)
        self._draft_cached = draft_cached
        is_last = rounds.is_last[-1]
        if is_last.any():
            self._finish(self._request[is_last], self._now_ps, num_output_tokens=self._position[is_last])
            self._request, self._position = self._request[~is_last], self._position[~is_last]
            self._draft_cached = draft_cached[~is_last]

    def _finish(self, request: Ints, time_ps: int, *, num_output_tokens: Ints | int) -> None:
        self._recorder.finish(request, time_ps, num_output_tokens=num_output_tokens)
        self._arrivals.answered(time_ps, num_requests=request.size)

    def _occupy(self, block: Block) -> Process:
        """Hold the accelerators for a block: one timeout on one accelerator, in turns on two."""
        if self._now_ps + float(block.duration_ps.sum(dtype=np.float64)) > MAX_CLOCK_PS:
            raise DomainError(
                f"the run takes more than {MAX_CLOCK_PS / PICOSECONDS_PER_SECOND:.3g} s of simulated time,"
                " which is all that the clock counts; ask for fewer prompts or tokens, or a faster device"
            )
        target, draft = self._pair.target.accelerator, self._pair.draft
        if draft is None or self._pair.shares_accelerator:
            yield target.submit(int(block.duration_ps.sum()))
            return
        for draft_ps, target_ps in zip(block.draft_ps.tolist(), block.target_ps.tolist(), strict=True):
            if draft_ps:
                yield draft.accelerator.submit(draft_ps)
            yield target.submit(target_ps)
