"""A chi-square test over consecutive rounds on keyed luck, as a run has them.

One round may be exact and two of them not, where luck that one has looked at is used by the next. So many
requests are served with the luck of a run, and the strings that they emit across two rounds are counted.
"""

from __future__ import annotations

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import DomainError
from specsim.speculation.distributions import Prefixes
from specsim.speculation.prove.strings import string_law, string_numbers
from specsim.speculation.prove.subject import Subject
from specsim.speculation.rounds import Sequences
from specsim.speculation.uniforms import RoundUniforms
from specsim.streams import RandomStreams

_MAX_STRINGS = 4_000_000
_BATCH = 1000
_COUNTS_PER_STRING = 30
_LEAST_EXPECTED = 8.0
"""Strings expected less often are pooled into one."""


def two_rounds_p_value(subject: Subject, *, num_requests: int, seed: int) -> float:
    """Probability of counts as far from the target's law as those of sampled rounds, were they exact.

    Pearson's chi-square over the strings in every window of the first tokens, as many as cover the boundary
    of two rounds, where there are not too many. A window is as long as leaves enough counts for each string,
    at least two tokens; the smallest p-value is multiplied by the number of windows (Bonferroni).

    Parameters
    ----------
    subject
        What is proved.
    num_requests
        Requests served.
    seed
        Seed of their luck.

    Raises
    ------
    DomainError
        Where even strings of three tokens are too many to count.
    """
    size, depth = subject.distributions.vocabulary_size, subject.draft_source.depth
    length = depth + 3
    while size ** (length + 1) > _MAX_STRINGS:
        length -= 1
    if length < 2:
        raise DomainError(f"too many strings of tokens over a vocabulary of {size} to count")
    tokens = _served(subject, num_requests, length, seed)[:, : length + 1]
    law = _law_with_first(subject, length).ravel()
    width = max(2, int(np.log(num_requests / _COUNTS_PER_STRING) / np.log(size))) if size > 1 else 2
    width = min(width, length + 1)
    p_values = []
    for first in range(length + 2 - width):
        due = law.reshape(size**first, size**width, -1).sum(axis=(0, 2))
        number = string_numbers(tokens[:, first : first + width], size)
        p_values.append(_p_value(np.bincount(number, minlength=size**width), due * num_requests))
    return min(1.0, min(p_values) * len(p_values))


def _served(subject: Subject, num_requests: int, length: int, seed: int) -> Ints:
    """Tokens of requests after at least two rounds each and ``length`` tokens after the first."""
    depth = subject.draft_source.depth
    cap = length + 2 * (depth + 1) + 1
    rounds = subject.rounds(
        RoundUniforms.keyed(RandomStreams(seed), num_nodes=subject.draft_source.num_nodes),
        np.full(num_requests, cap),
    )
    position: Ints = np.ones(num_requests, dtype=np.int64)
    for first in range(0, num_requests, _BATCH):
        active = np.arange(first, min(first + _BATCH, num_requests))
        while active.size:
            one = rounds.peek(Sequences(active, position[active], cap - position[active]), horizon=1)
            rounds.commit(1)
            position[active] += one.num_emitted[0]
            active = active[position[active] <= length]
    return rounds.all_tokens()


def _law_with_first(subject: Subject, length: int) -> Floats:
    """Law of the first token and ``length`` more, [V, V^length]."""
    distributions = subject.distributions
    nothing = np.full((1, distributions.num_context_tokens), -1)
    zero = np.zeros(1, dtype=np.int64)
    p = distributions.target(Prefixes(zero, zero, nothing))[0]
    law: Floats = p[:, np.newaxis] * string_law(distributions, np.arange(p.size), length)
    return law


def _p_value(counts: Ints, expected: Floats) -> float:
    # scipy.special, not scipy.stats, which takes a second to import.
    from scipy.special import chdtrc

    if ((expected == 0) & (counts > 0)).any():
        return 0.0
    is_rare = expected < _LEAST_EXPECTED
    seen = np.append(counts[~is_rare], counts[is_rare].sum())
    due = np.append(expected[~is_rare], expected[is_rare].sum())
    is_cell = due > 0
    statistic = float(((seen - due)[is_cell] ** 2 / due[is_cell]).sum())
    freedom = int(is_cell.sum()) - 1
    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0
