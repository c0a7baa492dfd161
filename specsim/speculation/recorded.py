"""Replay of a recorded trace: p and q along the path that the target has sampled.

Given the path x, the draft at position i of a round started at s is kept iff it equals x_i, under token
verification with probability a(s, i) = min(1, q_{s,i}(x_i) / p_i(x_i)), independently over positions. A
greedy target has p(x) = 1, so a = q(x); a deterministic draft has a = 1 if it equals x_i, else 0.
"""

from __future__ import annotations

import pathlib
from functools import cached_property
from typing import Literal, cast

import numpy as np
from pydantic import Field

from specsim.arrays import Bools, Floats, Ints
from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.speculation.distributions import Ending, Path, PathProbabilities, Signals
from specsim.speculation.kinds import DISTRIBUTIONS, BuildContext
from specsim.speculation.logged import Imputation, Momentum
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.rewarp import rewarp_draft
from specsim.speculation.sampling import kept_given_text
from specsim.speculation.trace import DraftSampleMethod, Trace
from specsim.speculation.trace_prompts import of_domain

_MOST_REWARPING_ERROR = 0.02
"""Mean uncertainty of the acceptance beyond which another draft temperature is refused."""


@DISTRIBUTIONS.register
class TraceSpec(Spec):
    """Exact replay of a recorded trace."""

    kind: Literal["trace"] = "trace"
    """A recorded trace."""
    path: str
    """File of the trace: beside the scenario, or from the working folder."""
    imputation: Imputation = "none"
    """What stands at positions that a log of accepted lengths never drafted; none: its own lengths only."""

    draft_temperature: float | None = Field(default=None, gt=0)
    """Temperature of the draft, if another than recorded; needs a trace with unions, and is approximate."""
    temperature: float | None = Field(default=None, ge=0)
    """Temperature of the target, to be sure of it: another than recorded is refused."""
    domain: str | None = None
    """Replay the prompts of this domain alone, such as ``code``."""
    language: str | None = None
    """Replay the prompts in this language alone, such as ``en``."""

    def find(self, folder: pathlib.Path) -> pathlib.Path:
        """Return the trace's file: in ``folder``, else as seen from the working folder."""
        given = pathlib.Path(self.path)
        candidates = [folder / given, given]
        found = next((candidate for candidate in candidates if candidate.exists()), None)
        if found is None:
            raise ConfigError.at("distributions.path", f"no trace '{self.path}' (searched: {folder} and .)")
        return found

    def build(self, context: BuildContext) -> RecordedPaths:
        """Load the trace; faults of its file are a ConfigError."""
        trace = Trace.load(self.find(context.folder))
        header = trace.header
        if self.temperature is not None and self.temperature != header.temperature:
            raise ConfigError.at(
                "distributions.temperature",
                f"the trace was recorded at {header.temperature:g}, not"
                f" {self.temperature:g}; the target's temperature is part of the path: record another trace",
            )
        trace = self._chosen(trace)
        is_changed = self.draft_temperature not in (None, header.draft_temperature)
        if self.draft_temperature is not None and is_changed:
            trace = _rewarped(trace, self.draft_temperature)
        return RecordedPaths(
            trace,
            is_rewarped=is_changed,
            draft_sample_method=context.draft_sample_method,
            num_speculative_tokens=context.num_speculative_tokens,
            imputation=self.imputation,
        )

    def _chosen(self, trace: Trace) -> Trace:
        domains, languages = ([name] if name is not None else [] for name in (self.domain, self.language))
        try:
            return of_domain(trace, domains=domains, languages=languages)
        except ConfigError as error:
            key = "domain" if self.domain is not None else "language"
            raise ConfigError.at(f"distributions.{key}", str(error)) from None


class RecordedPaths:
    """The continuations of a trace; request r takes prompt r, repeating.

    Parameters
    ----------
    trace
        The recording. Proposals or heads, where recorded, go before scalars.
    draft_sample_method
        How the draft draws; a lookup proposes the same either way.
    num_speculative_tokens
        The most that a round drafts; more than a recorded depth is refused.
    imputation
        For a log of accepted lengths: what stands where nothing was drafted.
    is_rewarped
        The draft's temperature is not the recorded one; its results are marked.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        draft_sample_method: DraftSampleMethod = "probabilistic",
        num_speculative_tokens: int = 0,
        imputation: Imputation = "none",
        is_rewarped: bool = False,
    ) -> None:
        if imputation != "none" and trace.logged_drafts is None:
            raise ConfigError.at(
                "distributions.imputation", "only a log of accepted lengths has gaps to fill"
            )
        self.trace = trace
        self._imputation = imputation
        self._is_rewarped = is_rewarped
        self.records_tails = (
            trace.tail_token is not None
            and trace.tail_token.shape[1] >= num_speculative_tokens - 1
            and draft_sample_method == trace.header.draft_sample_method
            and not is_rewarped
        )
        self.drafts_in_one_pass = trace.proposal_token is not None
        self._offsets = trace.offsets
        self._last = trace.num_tokens - 1
        tables = (trace.proposal_token, trace.q_from_start)
        self._depth = next((table.shape[1] for table in tables if table is not None), None)
        if self._depth is not None and num_speculative_tokens > self._depth:
            raise ConfigError.at(
                "speculative_config.num_speculative_tokens",
                f"{num_speculative_tokens} is more than the depth of"
                f" {self._depth} that the trace of '{trace.header.draft}' holds",
            )
        if trace.q_from_start is not None and draft_sample_method == "greedy":
            raise ConfigError.at(
                "speculative_config.draft_sample_method",
                f"greedy needs the argmax of each head, which the trace of"
                f" '{trace.header.draft}' does not hold; use probabilistic",
            )
        self._target = trace.p_token.astype(np.float64)
        self._draft = self._of_scalars(draft_sample_method)

    @property
    def num_prompts(self) -> int:
        """Prompts in the trace: the units of resampling."""
        return self.trace.num_prompts

    def path(self, request: int) -> Path | None:
        """Return the continuation of a request's prompt."""
        prompt = request % self.trace.num_prompts
        first, end = self._offsets[prompt : prompt + 2].tolist()
        return Path(
            prompt=prompt,
            domain=str(self.trace.domain[prompt]),
            num_prompt_tokens=int(self.trace.num_prompt_tokens[prompt]),
            num_tokens=end - first,
            ended_by=cast("Ending", str(self.trace.ended_by[prompt])),
        )

    @property
    def offers(self) -> Literal["acceptance", "path"]:
        """How much is known of p and q: those of the path, or the lengths alone that a log holds."""
        return "acceptance" if self.trace.logged_drafts is not None else "path"

    def acceptance(self, request: Ints, position: Ints, depth: int) -> Floats:
        """Probability that token verification keeps the draft at each depth, [B, depth]; 0 past the end."""
        known = self.probabilities(request, position, depth)
        return kept_given_text(known.target, known.draft)

    def probabilities(self, request: Ints, position: Ints, depth: int) -> PathProbabilities:
        """Return p and q of the path's token at each depth, [B, depth]; of a log, 1 and what is kept."""
        start, at, is_inside = self._places(request, position, depth)
        trace = self.trace
        if trace.proposal_token is not None:
            proposal = trace.proposal_token[start, :depth]
            is_token = (proposal == trace.token[at]) & is_inside
            draft = np.where(proposal >= 0, is_token, np.nan)
        elif trace.q_from_start is not None:
            draft = np.where(is_inside, trace.q_from_start[start, :depth].astype(np.float64), 0.0)
        else:
            draft = np.where(is_inside, self._draft[at], 0.0)
        return PathProbabilities(self._target[at], draft)

    @property
    def num_ranked(self) -> int:
        """Ranks of the path's token in the draft that are known: below k with unions of both top-k."""
        if self.trace.union_ids is not None:
            width: int = self.trace.union_ids.shape[1]
            return width // 2
        return 0 if self.trace.draft_argmax is None else 1

    def ranks(self, request: Ints, position: Ints, depth: int) -> Ints:
        """Rank of the path's token in the draft at each depth, [B, depth]; ``num_ranked`` if not known."""
        _, at, is_inside = self._places(request, position, depth)
        return np.where(is_inside, self._rank[at], self.num_ranked)

    @cached_property
    def _rank(self) -> Ints:
        trace, unranked = self.trace, self.num_ranked
        assert trace.draft_argmax is not None
        is_top = np.equal(trace.draft_argmax, trace.token)
        if trace.union_ids is None or trace.log_q is None:
            return np.where(is_top, 0, unranked)
        is_token = trace.union_ids == trace.token[:, np.newaxis]
        own = np.where(is_token, trace.log_q, -np.inf).max(axis=1, keepdims=True)
        is_before = np.logical_not(np.logical_or.accumulate(is_token, axis=1))
        # Equals rank by their ids, which a union holds in rising order.
        is_above = (trace.log_q > own) | ((trace.log_q == own) & is_before)
        rank = np.maximum((is_above & (trace.union_ids >= 0)).sum(axis=1), 1)
        return np.where(is_top, 0, np.where(is_token.any(axis=1), np.minimum(rank, unranked), unranked))

    def signals(self, request: Ints, position: Ints, depth: int) -> Signals:
        """Signals at each depth along the path, [B, depth]; NaN past its end or where none are recorded."""
        start, at, is_inside = self._places(request, position, depth)
        trace = self.trace
        unknown = np.full(at.shape, np.nan)
        top, entropy = unknown, unknown
        if trace.top_probability_from_start is not None and trace.entropy_from_start_nats is not None:
            top = trace.top_probability_from_start[start, :depth].astype(np.float64)
            entropy = trace.entropy_from_start_nats[start, :depth].astype(np.float64)
        elif (
            trace.proposal_token is None
            and trace.draft_top_probability is not None
            and trace.draft_entropy_nats is not None
        ):
            top = trace.draft_top_probability[at].astype(np.float64)
            entropy = trace.draft_entropy_nats[at].astype(np.float64)
        return Signals(
            top_probability=np.where(is_inside, top, np.nan),
            entropy_nats=np.where(is_inside, entropy, np.nan),
        )

    def drafted_signals(self, request: Ints, position: Ints, depth: int, kept: Ints) -> Signals:
        """Signals at each depth of a round of which the first ``kept`` drafts are kept, [B, depth]."""
        along = self.signals(request, position, depth)
        trace = self.trace
        assert trace.tail_token is not None
        assert trace.tail_top_probability is not None
        assert trace.tail_entropy_nats is not None
        prompt = request % trace.num_prompts
        rejected = self._offsets[prompt] + position + kept
        is_inside = rejected < self._offsets[prompt + 1]
        ahead = np.arange(depth) - kept[:, np.newaxis] - 1
        place = np.clip(ahead, 0, trace.tail_token.shape[1] - 1)
        row = np.minimum(rejected, self._last)[:, np.newaxis]
        is_known = is_inside[:, np.newaxis] & (trace.tail_token[row, place] >= 0)
        is_tail = ahead >= 0
        for values, tail in (
            (along.top_probability, trace.tail_top_probability),
            (along.entropy_nats, trace.tail_entropy_nats),
        ):
            seen = np.where(is_known, tail[row, place].astype(np.float64), np.nan)
            values[is_tail] = seen[is_tail]
        return along

    def is_exact_for(self, policy: LookaheadPolicy, *, num_speculative_tokens: int) -> bool:
        """Tell whether rounds under a policy ask only for what was recorded.

        A log of accepted lengths answers for its own lengths alone: those that the policy drafts in each
        of its rounds must be the logged ones.

        Raises
        ------
        ConfigError
            They are not, and no imputation is named.
        """
        if self.trace.logged_drafts is None:
            return not self._is_rewarped
        if policy.reads in ("nothing", "history") and self._drafts_as_logged(policy, num_speculative_tokens):
            return self.trace.header.log == "in_order"
        if self._imputation == "none":
            raise ConfigError.at(
                "distributions.imputation",
                "the log holds other draft lengths than the lookahead drafts;"
                " use the logged lengths, or say 'momentum' to fill in what was never drafted",
            )
        return False

    def _drafts_as_logged(self, policy: LookaheadPolicy, num_speculative_tokens: int) -> bool:
        rounds = self.trace.logged_rounds()
        first = np.searchsorted(rounds.prompt, np.arange(self.num_prompts))
        end = np.searchsorted(rounds.prompt, np.arange(self.num_prompts), side="right")
        state = policy.start(self.num_prompts)
        prompt = np.flatnonzero(first < end)
        row = first[prompt]
        while prompt.size:
            unknown = np.full((prompt.size, num_speculative_tokens), np.nan)
            limit = np.full(prompt.size, num_speculative_tokens)
            length = policy.lengths(Signals(unknown, unknown), state[prompt], limit)
            # The last round may have been cut short by the cap of the text.
            is_last = row + 1 == end[prompt]
            if np.any((length != rounds.drafted[row]) & ~(is_last & (length > rounds.drafted[row]))):
                return False
            state[prompt] = policy.observe(state[prompt], rounds.drafted[row], rounds.accepted[row])
            prompt, row = prompt[~is_last], row[~is_last] + 1
        return True

    def _of_log(self) -> Floats:
        rounds = self.trace.logged_rounds()
        kept = np.ones(self.trace.num_tokens)
        closing = rounds.start + rounds.accepted
        is_censored = rounds.accepted == rounds.drafted
        kept[self._offsets[:-1]] = 0.0
        kept[closing] = 0.0
        if self._imputation == "momentum":
            filled = Momentum.fit(rounds).after_full_rounds(rounds)
            kept[closing[is_censored]] = filled[is_censored]
        return kept

    def _of_scalars(self, draft_sample_method: DraftSampleMethod) -> Floats:
        trace = self.trace
        if trace.logged_drafts is not None:
            return self._of_log()
        if trace.q_token is None or trace.draft_argmax is None:
            return np.empty(0)
        if draft_sample_method == "greedy":
            is_token: Floats = (trace.draft_argmax == trace.token).astype(np.float64)
            return is_token
        return trace.q_token.astype(np.float64)

    def _places(self, request: Ints, position: Ints, depth: int) -> tuple[Ints, Ints, Bools]:
        """Row of each start, [B]; row of each draft and whether it is on the path, [B, depth]."""
        prompt = request % self.trace.num_prompts
        start = self._offsets[prompt] + position
        at = start[:, np.newaxis] + np.arange(depth)
        is_inside = at < self._offsets[prompt + 1][:, np.newaxis]
        return start, np.minimum(at, self._last), is_inside


def _rewarped(trace: Trace, temperature: float) -> Trace:
    rewarped = rewarp_draft(trace, temperature)
    error = float(rewarped.overlap_error.mean())
    if error > _MOST_REWARPING_ERROR:
        raise ConfigError.at(
            "distributions.draft_temperature",
            f"at {temperature:g} the acceptance would be uncertain by"
            f" {error:.3f}, more than {_MOST_REWARPING_ERROR:g}: too much lies outside the recorded tokens",
        )
    return rewarped.trace
