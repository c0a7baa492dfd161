"""Closed forms of speculative decoding: what a simulation must agree with where they apply.

Leviathan, Kalman and Matias 2023 (arXiv 2211.17192): a draft is kept with probability ``acceptance_rate``
(α), independently, ``lookahead`` (γ) drafts a round, a draft pass costs ``draft_cost_ratio`` (c) target
passes, and verifying γ + 1 positions costs one. Real acceptance is not independent and real passes
are not free of their width; that is what the simulator is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.speculation.sampling import Vector, distribution_pair


def total_variation(p: Vector, q: Vector) -> float:
    """Total variation distance, half the sum of the absolute differences: 1 - acceptance rate.

    Leviathan et al. 2023, Definition 3.2 and Lemma 3.3.

    Examples
    --------
    >>> round(total_variation([0.7, 0.3], [0.3, 0.7]), 12)
    0.4
    """
    target, draft = distribution_pair(p, q)
    return float(np.abs(target - draft).sum() / 2)


def expected_tokens(acceptance_rate: float, lookahead: int) -> float:
    """Tokens a round emits on average: (1 - α^(γ+1)) / (1 - α), the final token included.

    Leviathan et al. 2023, Equation 1. Generations are long: their end cuts no round.

    Examples
    --------
    >>> round(expected_tokens(0.8, 5), 3)
    3.689
    """
    _check(acceptance_rate, lookahead)
    if acceptance_rate == 1:
        return lookahead + 1.0
    if acceptance_rate == 0:
        return 1.0
    # expm1 keeps all digits where α is close to 1.
    return -math.expm1((lookahead + 1) * math.log(acceptance_rate)) / (1 - acceptance_rate)


def wall_time_improvement(acceptance_rate: float, lookahead: int, draft_cost_ratio: float) -> float:
    """Baseline time over speculative time: (1 - α^(γ+1)) / ((1 - α)(γc + 1)).

    Leviathan et al. 2023, Theorem 3.8.

    Examples
    --------
    >>> round(wall_time_improvement(0.75, 7, 0.02), 2)
    3.16
    """
    _check_cost("draft_cost_ratio", draft_cost_ratio)
    return expected_tokens(acceptance_rate, lookahead) / (lookahead * draft_cost_ratio + 1)


def operations_factor(acceptance_rate: float, lookahead: int, draft_operations_ratio: float = 0.0) -> float:
    """Speculative operations a token over baseline: (1 - α)(γĉ + γ + 1) / (1 - α^(γ+1)).

    Leviathan et al. 2023, Theorem 3.11; ĉ is the draft's operations a token over the target's. A draft model
    computes its own last token as well where all γ are kept, ĉ α^γ a round; the simulation counts that.

    Examples
    --------
    >>> round(operations_factor(0.2, 5), 2)
    4.8
    """
    _check_cost("draft_operations_ratio", draft_operations_ratio)
    work = lookahead * draft_operations_ratio + lookahead + 1
    return work / expected_tokens(acceptance_rate, lookahead)


def best_lookahead(acceptance_rate: float, draft_cost_ratio: float, *, limit: int | None = None) -> int:
    """Lookahead of the largest wall-time improvement; the smallest where several are equal.

    Leviathan et al. 2023, Section 3.5: the integer argmax of Theorem 3.8. The improvement has one
    peak, so the search stops at the first lookahead that is no better.

    Raises
    ------
    DomainError
        Where every longer lookahead is better and no ``limit`` is given.

    Examples
    --------
    >>> best_lookahead(0.8, 0.05)
    8
    """
    _check(acceptance_rate, 0 if limit is None else limit)
    _check_cost("draft_cost_ratio", draft_cost_ratio)
    is_endless = acceptance_rate > 0 and (draft_cost_ratio == 0 or (acceptance_rate == 1 > draft_cost_ratio))
    if is_endless:
        if limit is None:
            raise DomainError("no best lookahead: every longer draft is better; give a limit")
        return limit
    best, improvement = 0, 1.0
    while limit is None or best < limit:
        longer = wall_time_improvement(acceptance_rate, best + 1, draft_cost_ratio)
        if longer <= improvement:
            break
        best, improvement = best + 1, longer
    return best


def mixture_expected_tokens(acceptance_rates: Vector, token_shares: Vector, lookahead: int) -> float:
    """Tokens a round emits on average over requests of several acceptance rates: 1 / Σ share / E.

    The shares are of emitted tokens, so rounds add up: a harmonic mean, always below the value at
    the mean acceptance rate's own requests. Never put the mean acceptance rate into Equation 1.

    Examples
    --------
    >>> round(mixture_expected_tokens([0.5, 0.9], [0.5, 0.5], 5), 3)
    2.773
    """
    rates, shares = np.asarray(acceptance_rates, dtype=np.float64), np.asarray(token_shares, dtype=np.float64)
    if rates.ndim != 1 or rates.shape != shares.shape:
        raise DomainError("acceptance_rates and token_shares: give one share for each rate")
    if not (np.all(shares >= 0) and abs(shares.sum() - 1) < 1e-9):
        raise DomainError("token_shares: must be at least 0 and sum to 1")
    tokens = np.array([expected_tokens(float(rate), lookahead) for rate in rates])
    return 1 / float((shares / tokens).sum())


@dataclass(frozen=True, slots=True)
class FiniteLength:
    """Expectations over a generation of a given number of tokens."""

    expected_rounds: float
    """Rounds, each one target pass."""
    expected_drafted: float
    """Draft tokens, those past the end included."""
    num_tokens: int
    """Tokens emitted by rounds, the first (from prefill) not counted."""

    def wall_time_improvement(self, draft_cost_ratio: float) -> float:
        """Baseline time over speculative time: N / (E[rounds] + c·E[drafted])."""
        _check_cost("draft_cost_ratio", draft_cost_ratio)
        return self.num_tokens / (self.expected_rounds + draft_cost_ratio * self.expected_drafted)


def finite_length(
    acceptance_rate: float, lookahead: int, num_tokens: int, *, shorten_last_draft: bool = False
) -> FiniteLength:
    """Return expected rounds and drafts of exactly ``num_tokens`` tokens, by dynamic programming.

    R(n) = 1 + Σ_k P(k kept) R(n - min(k + 1, n)): Equation 1 with the end taken into account.

    Parameters
    ----------
    acceptance_rate, lookahead
        α and γ.
    num_tokens
        Tokens that rounds emit.
    shorten_last_draft
        Draft no more than may still be emitted: min(γ, n - 1) with n tokens left.

    Examples
    --------
    >>> round(finite_length(0.8, 4, 10).expected_rounds, 6)
    3.389824
    """
    _check(acceptance_rate, lookahead)
    if num_tokens < 1:
        raise DomainError(f"num_tokens: {num_tokens} is not at least 1")
    emitted = _emitted_law(acceptance_rate, lookahead)
    rounds, drafted = np.zeros(num_tokens + 1), np.zeros(num_tokens + 1)
    for left in range(1, num_tokens + 1):
        reach = min(lookahead, left - 1)
        # Emitting more than is left ends the generation, where both values are 0.
        law = emitted[: reach + 1]
        before = slice(left - 1, left - 2 - reach if left - 2 - reach >= 0 else None, -1)
        rounds[left] = 1 + law @ rounds[before]
        drafted[left] = (reach if shorten_last_draft else lookahead) + law @ drafted[before]
    return FiniteLength(float(rounds[-1]), float(drafted[-1]), num_tokens)


def _emitted_law(acceptance_rate: float, lookahead: int) -> Floats:
    kept: Floats = np.power(acceptance_rate, np.arange(lookahead + 1))
    law: Floats = kept * (1 - acceptance_rate)
    law[-1] = kept[-1]
    return law


def _check(acceptance_rate: float, lookahead: int) -> None:
    if not 0 <= acceptance_rate <= 1:
        raise DomainError(f"acceptance_rate: {acceptance_rate} is not in [0, 1]")
    if lookahead < 0:
        raise DomainError(f"lookahead: {lookahead} is negative")


def _check_cost(name: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise DomainError(f"{name}: {value} is not a finite number of at least 0")
