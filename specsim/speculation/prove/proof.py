"""The verdict of a proof: exact by enumeration where that is possible, by counting otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from specsim.errors import DomainError
from specsim.speculation.prove.exact import RoundLaw, round_law
from specsim.speculation.prove.subject import Subject
from specsim.speculation.prove.two_rounds import two_rounds_p_value

TOLERANCE = 1e-12
"""Largest total variation that is rounding."""
LEAST_P_VALUE = 1e-6
"""Counts less probable than this are taken for a fault, not for bad luck."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found of a rule over one or several pairs of distributions."""

    passed: bool
    """Every law enumerated is the target's up to rounding, counts and replay along a text agree with it."""
    num_pairs: int
    """Pairs of distributions tried."""
    num_enumerated: int
    """Pairs whose law was enumerated; the others were only counted."""
    total_variation: float | None
    """Largest total variation from the target's law; None: nothing was enumerated."""
    max_difference: float | None
    """Largest difference of the probability of any string."""
    replay_total_variation: float | None
    """Largest total variation of the replay along a text from the round; None: nothing replays."""
    p_value: float
    """Smallest over the pairs counted: chi-square over two consecutive rounds."""
    acceptance_probability: float | None
    """Probability that a round keeps at least one draft, mean over the pairs."""
    expected_tokens: float | None
    """Tokens of a round, the final one included, mean over the pairs."""
    laws: tuple[RoundLaw, ...] = field(repr=False)
    """The laws enumerated."""


def prove(
    subjects: Sequence[Subject], *, num_requests: int = 20_000, num_counted: int = 1, seed: int = 0
) -> Proof:
    """Try a rule on pairs of distributions.

    Parameters
    ----------
    subjects
        The rule with its draft, one for each pair.
    num_requests
        Requests whose strings are counted.
    num_counted
        Pairs that are counted; all that cannot be enumerated are counted as well.
    seed
        Seed of the luck that is counted with.

    Examples
    --------
    >>> from specsim.speculation import ChainDraft, ExplicitDistributions, TokenVerifier
    >>> pair = ExplicitDistributions(np.array([0.7, 0.3]), np.array([0.3, 0.7]))
    >>> proof = prove([Subject(pair, ChainDraft(pair, num_tokens=1), TokenVerifier())], num_requests=1000)
    >>> proof.passed, round(proof.acceptance_probability, 12), round(proof.expected_tokens, 12)
    (True, 0.6, 1.6)
    """
    laws: list[RoundLaw] = []
    p_values: list[float] = []
    for number, subject in enumerate(subjects):
        try:
            laws.append(round_law(subject))
            is_counted = number < num_counted
        except DomainError as error:
            if "too many to enumerate" not in str(error):
                raise
            is_counted = True
        if is_counted:
            p_values.append(two_rounds_p_value(subject, num_requests=num_requests, seed=seed))
    total_variation = max((law.total_variation for law in laws), default=None)
    replays = [law.replay_total_variation for law in laws if law.replay_total_variation is not None]
    p_value = min(p_values, default=1.0)
    return Proof(
        passed=p_value > LEAST_P_VALUE and max([total_variation or 0.0, *replays]) < TOLERANCE,
        num_pairs=len(subjects),
        num_enumerated=len(laws),
        total_variation=total_variation,
        max_difference=max((law.max_difference for law in laws), default=None),
        replay_total_variation=max(replays, default=None),
        p_value=p_value,
        acceptance_probability=_mean([law.acceptance_probability for law in laws]),
        expected_tokens=_mean([law.expected_tokens for law in laws]),
        laws=tuple(laws),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
