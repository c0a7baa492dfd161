"""Mixtures of experts: how many experts a pass over several positions wakes."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.errors import DomainError


def expected_distinct_experts(
    num_experts: int, experts_per_token: int, num_positions: Ints | Floats, *, correlation: float = 1.0
) -> Floats:
    r"""Return the expected number of distinct experts that one layer reads for each pass, shape as given.

    With every position choosing k of E experts uniformly and independently of the others, an expert
    is left alone by all n positions with probability :math:`(1 - k/E)^n`, so that the pass reads

    .. math:: k + \rho \left(E \left[1 - (1 - k/E)^n\right] - k\right), \qquad n \ge 1

    and nothing for n = 0. The first position always reads k; the factor :math:`\rho` scales only
    what further positions add, since positions of one text choose alike. It is not a constant of a
    model: one layer of 256 experts, 8 a token, measured on an H100 read 100 experts at 16 positions
    (:math:`\rho` = 0.98) and 182 at 64 (0.81). With :math:`\rho` < 1 a pass never reads all experts,
    so the law ends where a pass is large enough to wake them all.

    Parameters
    ----------
    num_experts
        E, routed experts of the layer.
    experts_per_token
        k, experts that one position is routed to.
    num_positions
        n, positions of each pass over the whole batch.
    correlation
        Factor in (0, 1]; 1 is independent choice, the most experts on average.

    Raises
    ------
    DomainError
        If k is not in 1 … E, n is negative, or the correlation is not in (0, 1].

    Examples
    --------
    >>> expected_distinct_experts(8, 2, np.array([1, 2, 4])).round(3).tolist()
    [2.0, 3.5, 5.469]
    """
    if not 1 <= experts_per_token <= num_experts:
        raise DomainError(f"experts_per_token: {experts_per_token} is not in 1 … {num_experts}, the experts")
    if not 0 < correlation <= 1:
        raise DomainError(f"correlation: {correlation} is not in (0, 1]")
    positions = np.asarray(num_positions, dtype=np.float64)
    if not np.all(positions >= 0):
        raise DomainError(f"num_positions: {positions.min()} is not a number of positions")
    k = float(experts_per_token)
    independent = num_experts * (1.0 - (1.0 - k / num_experts) ** positions)
    return np.where(positions > 0, k + correlation * (independent - k), 0.0)
