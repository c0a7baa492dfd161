"""The exact law of a round, found by running the engine's rounds on every cell of their uniforms.

All that a round does is a function of its uniforms: one a draft node, one a depth for the walk, one for the
token after. The cells in which nothing changes are found one uniform after the other by asking the rounds
themselves, so a draft that is not drawn from the q it states, or a uniform that is used twice, shows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import DomainError
from specsim.speculation.cells import cells, jumps
from specsim.speculation.distributions import Prefixes
from specsim.speculation.draft import Draft, DraftSource
from specsim.speculation.prove.strings import string_law, string_numbers
from specsim.speculation.prove.subject import Subject
from specsim.speculation.prove.text import replayed_endings
from specsim.speculation.rounds import Sequences
from specsim.speculation.ruled_paths import path_law
from specsim.speculation.uniforms import RoundUniforms
from specsim.speculation.verify.rule import Verifier

MAX_CELLS = 60_000
"""The most cells that are enumerated."""
_ROWS_PER_CHUNK = 8192


@dataclass(frozen=True, slots=True)
class RoundLaw:
    """The law of the D + 1 tokens after the first, where one round is followed by plain sampling."""

    first: Ints
    """First tokens, from prefill, that the round may start after, [firsts]."""
    chance: Floats
    """Probability of each, [firsts]."""
    emitted: Floats
    """Law of the tokens that follow, [firsts, V^(D+1)], strings numbered in base V."""
    target: Floats
    """The same under plain sampling from the target."""
    acceptance_probability: float
    """Probability that at least one draft is kept."""
    expected_tokens: float
    """Expected tokens of the round, the final one included."""
    num_cells: int
    """Cells enumerated."""
    vocabulary_size: int
    """V."""
    depth: int
    """Drafts that can be kept in a row at most, D."""
    replay_total_variation: float | None
    """Total variation of a replay along the text from the round, both as joint laws of drafts kept and tokens
    emitted; None: siblings that are drawn, or a rule that does not replay."""

    @property
    def num_tokens(self) -> int:
        """D + 1."""
        return self.depth + 1

    @property
    def total_variation(self) -> float:
        """Total variation distance of the two joint laws."""
        return float(self.chance @ np.abs(self.emitted - self.target).sum(axis=1)) / 2

    @property
    def max_difference(self) -> float:
        """Largest difference of the probability of a string after some first token."""
        return float(np.abs(self.emitted - self.target).max())


def round_law(subject: Subject) -> RoundLaw:
    """Enumerate a round.

    Parameters
    ----------
    subject
        What is proved. Its distributions are asked for the first token as well, unless they read no context.

    Raises
    ------
    DomainError
        Where there are more cells than can be enumerated.
    """
    distributions, depth = subject.distributions, subject.draft_source.depth
    if distributions.vocabulary_size ** (depth + 1) > MAX_CELLS:
        raise DomainError(f"more than {MAX_CELLS} strings of {depth + 1} tokens: too many to enumerate")
    first, chance = _first_tokens(subject)
    luck = _Luck(
        first=(np.cumsum(chance) - chance / 2) / chance.sum(),
        draft=np.full((first.size, subject.draft_source.num_nodes), 0.5),
        stop=np.full((first.size, depth + 2), 0.5),
        next_token=np.full(first.size, 0.5),
        start=np.arange(first.size),
        weight=np.ones(first.size),
    )
    for node in range(subject.draft_source.num_nodes):
        luck = _split(subject, luck, "draft", node)
    for place in range(1, depth + 2):
        luck = _split(subject, luck, "stop", place)
    luck = _split(subject, luck, "next_token", 0)
    seen = _observe(subject, luck)
    share = luck.weight * chance[luck.start]

    def ending(length: int) -> Floats:
        ends = seen.num_emitted == length
        number = string_numbers(seen.tokens[ends, :length], distributions.vocabulary_size)
        law: Floats = np.zeros((first.size, distributions.vocabulary_size**length))
        np.add.at(law, (luck.start[ends], number), luck.weight[ends])
        return law

    replay = None
    if _is_replayed(subject):
        replayed = replayed_endings(
            subject,
            first,
            path_law(subject.verifier),
            token=seen.draft[:, 0],
            parent=seen.draft[:, 1],
            start=luck.start,
            weight=luck.weight,
        )
        apart = [np.abs(ending(length) - law).sum(axis=1) for length, law in enumerate(replayed, start=1)]
        replay = float(chance @ np.sum(apart, axis=0)) / 2
    return RoundLaw(
        first=first,
        chance=chance,
        emitted=string_law(distributions, first, depth + 1, ending=ending),
        target=string_law(distributions, first, depth + 1),
        acceptance_probability=float(share @ (seen.num_accepted > 0)),
        expected_tokens=float(share @ seen.num_emitted),
        num_cells=luck.weight.size,
        vocabulary_size=distributions.vocabulary_size,
        depth=depth,
        replay_total_variation=replay,
    )


def _is_replayed(subject: Subject) -> bool:
    """Tell whether the rule replays such drafts along a text: chains, and trees that no luck decides."""
    is_known = subject.draft_source.siblings in ("one", "certain") and subject.policy.reads == "nothing"
    replays = subject.verifier.is_lossless and subject.verifier.needs != "conditional"
    # An end token cuts a round where the enumeration of texts goes on.
    return is_known and replays and subject.distributions.eos_token_id is None


@dataclass(slots=True)
class _Luck:
    """Uniforms of rows, and how much of all luck each row stands for; arrays [rows, …]."""

    first: Floats
    """Of the first token, [rows]."""
    draft: Floats
    """Of each node, [rows, N]."""
    stop: Floats
    """Of each output position, [rows, D + 2]: one past the deepest, which no walk should look at."""
    next_token: Floats
    """Of the token after, [rows]."""
    start: Ints
    """Which first token the row has, [rows]."""
    weight: Floats
    """Share of the luck after that first token, [rows]."""

    def rows(self, row: Ints) -> _Luck:
        """Return some rows, repeated as asked."""
        return _Luck(**{field.name: getattr(self, field.name)[row] for field in fields(self)})

    def column(self, name: str, place: int) -> Floats:
        """Return the uniforms at one place, [rows]: a view that can be written to."""
        values: Floats = getattr(self, name)
        return values if values.ndim == 1 else values[:, place]


@dataclass(slots=True)
class _Seen:
    """What rounds did with their luck, arrays [rows, …]."""

    draft: Ints
    """Tokens and parents of the draft, [rows, 2, N]."""
    draft_law: Floats
    """Law that each node is said to be drawn from, [rows, N, V]."""
    last: Ints
    """Last kept node, [rows]."""
    tokens: Ints
    """Emitted tokens, [rows, D + 1]; -1 pads."""
    num_accepted: Ints
    num_emitted: Ints
    descent: Floats
    """Where the walk may jump at each depth, [rows, N]."""
    law: Floats
    """Law that the token after is drawn from, [rows, V]."""


def _split(subject: Subject, luck: _Luck, name: str, place: int) -> _Luck:
    """Replace each row by one row for each cell of one of its uniforms."""
    seen = _observe(subject, luck)
    if name == "draft":
        guesses = jumps(seen.draft_law[:, place])
    else:
        guesses = seen.descent if name == "stop" else jumps(seen.law)

    def outcome(row: Ints, at: Floats) -> Ints:
        asked = luck.rows(row)
        asked.column(name, place)[:] = at
        found = _observe(subject, asked)
        if name == "draft":
            return found.draft[:, :, : place + 1].reshape(row.size, -1)
        return np.column_stack([found.last, found.tokens])

    found = cells(outcome, guesses)
    if found.row.size > MAX_CELLS:
        raise DomainError(f"more than {MAX_CELLS} cells of luck: too many to enumerate")
    split = luck.rows(found.row)
    split.column(name, place)[:] = found.middle
    split.weight *= found.width
    return split


def _first_tokens(subject: Subject) -> tuple[Ints, Floats]:
    """First tokens after which rounds differ, and the probability of each."""
    distributions = subject.distributions
    num_context = distributions.num_context_tokens
    nothing = Prefixes(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full((1, num_context), -1))
    p = distributions.target(nothing)[0]
    if num_context == 0:
        return np.array([int(p.argmax())]), np.ones(1)
    first = np.flatnonzero(p > 0)
    return first, p[first] / p[first].sum()


def _observe(subject: Subject, luck: _Luck) -> _Seen:
    """Run the engine's rounds once on each row of luck."""
    parts = [
        _observe_chunk(subject, luck.rows(np.arange(first, min(first + _ROWS_PER_CHUNK, luck.weight.size))))
        for first in range(0, luck.weight.size, _ROWS_PER_CHUNK)
    ]
    return _Seen(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Seen)))


def _observe_chunk(subject: Subject, luck: _Luck) -> _Seen:
    num_rows, depth = luck.weight.size, subject.draft_source.depth
    source, verifier = _WatchedSource(subject.draft_source), _WatchedVerifier(subject.verifier)
    watched = replace(subject, draft_source=source, verifier=verifier)
    rounds = watched.rounds(
        RoundUniforms(stop=_GivenStops(luck), next_token=_GivenNext(luck), draft=_GivenDrafts(luck)),
        np.full(num_rows, depth + 2),
    )
    rows, ones = np.arange(num_rows), np.ones(num_rows, dtype=np.int64)
    one = rounds.peek(Sequences(rows, ones, ones * (depth + 1)), horizon=1)
    rounds.commit(1)
    return _Seen(
        draft=np.stack([source.draft.token, source.draft.parent], axis=1),
        draft_law=source.draft.probabilities,
        last=verifier.last,
        tokens=rounds.all_tokens()[:, 1:],
        num_accepted=one.num_accepted[0],
        num_emitted=one.num_emitted[0],
        descent=_upto_among_siblings(source.draft, verifier.keep),
        law=verifier.law,
    )


def _upto_among_siblings(draft: Draft, keep: Floats) -> Floats:
    """Sum of each node's probability and those of its elder siblings, [rows, N]."""
    upto: Floats = np.empty_like(keep)
    for node in range(keep.shape[1]):
        is_sibling = draft.parent[:, : node + 1] == draft.parent[:, node, np.newaxis]
        upto[:, node] = np.where(is_sibling, keep[:, : node + 1], 0.0).sum(axis=1)
    return upto


@dataclass(slots=True)
class _GivenDrafts:
    luck: _Luck

    def at(self, request: Ints, position: Ints) -> Floats:
        return self.luck.draft[request]


@dataclass(slots=True)
class _GivenStops:
    luck: _Luck

    def at(self, request: Ints, position: Ints) -> Floats:
        return self.luck.stop[request, position][:, np.newaxis]


@dataclass(slots=True)
class _GivenNext:
    luck: _Luck

    def at(self, request: Ints, position: Ints) -> Floats:
        return np.where(position == 0, self.luck.first[request], self.luck.next_token[request])[:, np.newaxis]


class _WatchedSource:
    """A draft source that remembers what it proposed."""

    def __init__(self, source: DraftSource) -> None:
        self._source = source
        self.siblings, self.num_nodes, self.depth = source.siblings, source.num_nodes, source.depth
        self.num_context_tokens, self.pass_positions = source.num_context_tokens, source.pass_positions
        self.enumerate = source.enumerate

    def propose(self, prefix: Prefixes, uniforms: Floats) -> Draft:
        draft = self._source.propose(prefix, uniforms)
        # A policy may cut the draft in place.
        self.draft = replace(draft, token=draft.token.copy())
        return draft


class _WatchedVerifier:
    """A rule that remembers what it said."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.is_lossless, self.needs, self.siblings = verifier.is_lossless, verifier.needs, verifier.siblings

    def descend(self, draft: Draft, target: Floats) -> Floats:
        self.keep = self._verifier.descend(draft, target)
        return self.keep

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        self.last = last
        self.law = self._verifier.next_token(draft, target, last)
        return self.law
