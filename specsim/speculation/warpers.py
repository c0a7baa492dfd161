"""Warpers: from logits to the distribution that is really sampled from.

The order is that of the serving engines: temperature, then top-k, then top-p, then normalisation.
Ties go to the lowest token id.
"""

from __future__ import annotations

import numpy as np

from specsim.arrays import Floats
from specsim.errors import DomainError
from specsim.speculation.sampling import Vector, distribution

GREEDY_TEMPERATURE = 1e-5
"""Below it sampling is greedy: vLLM's threshold."""


def temperature(logits: Vector, value: float) -> Floats:
    """Distribution of logits at a temperature, [V]; below 1e-5 all mass on the largest logit.

    Raises
    ------
    DomainError
        Where a logit is NaN or +inf, all are -inf, or the temperature is negative or not finite.

    Examples
    --------
    >>> temperature([1.0, 3.0, 3.0], 0.0).tolist()
    [0.0, 1.0, 0.0]
    """
    scores = np.asarray(logits, dtype=np.float64)
    if scores.ndim != 1 or scores.size == 0:
        raise DomainError(f"logits: shape {scores.shape}, not a vector of at least one")
    if np.isnan(scores).any() or np.isposinf(scores).any() or np.isneginf(scores).all():
        raise DomainError("logits: NaN, +inf, or -inf everywhere")
    if not (np.isfinite(value) and value >= 0):
        raise DomainError(f"temperature: {value} is not a finite number of at least 0")
    if value < GREEDY_TEMPERATURE:
        greedy: Floats = np.zeros_like(scores)
        greedy[np.argmax(scores)] = 1.0
        return greedy
    weights = np.exp((scores - scores.max()) / value)
    warped: Floats = weights / weights.sum()
    return warped


def top_k(p: Vector, k: int) -> Floats:
    """Keep the k most probable tokens, normalised, [V].

    Examples
    --------
    >>> top_k([0.25, 0.5, 0.25], 2).round(3).tolist()
    [0.333, 0.667, 0.0]
    """
    probabilities = distribution(p)
    if k < 1:
        raise DomainError(f"top_k: {k} keeps no token; at least 1")
    return _kept(probabilities, _by_probability(probabilities)[:k])


def top_p(p: Vector, mass: float) -> Floats:
    """Keep the fewest most probable tokens that reach a mass, normalised, [V].

    Holtzman et al. 2020, nucleus sampling.

    Examples
    --------
    >>> top_p([0.2, 0.5, 0.3], 0.6).round(3).tolist()
    [0.0, 0.625, 0.375]
    """
    probabilities = distribution(p)
    if not 0 < mass <= 1:
        raise DomainError(f"top_p: {mass} is not in (0, 1]")
    order = _by_probability(probabilities)
    mass_before = np.cumsum(probabilities[order]) - probabilities[order]
    return _kept(probabilities, order[mass_before < mass])


def warp(
    logits: Vector, *, temperature_value: float, top_k_value: int | None = None, top_p_value: float = 1.0
) -> Floats:
    """Distribution that an engine samples from: temperature, then top-k, then top-p; [V].

    Examples
    --------
    >>> warp([0.0, 1.0, 2.0], temperature_value=1.0, top_k_value=1).tolist()
    [0.0, 0.0, 1.0]
    """
    warped = temperature(logits, temperature_value)
    if top_k_value is not None:
        warped = top_k(warped, top_k_value)
    return warped if top_p_value == 1 else top_p(warped, top_p_value)


def _by_probability(probabilities: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.argsort(-probabilities, kind="stable")


def _kept(probabilities: Floats, tokens: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Floats:
    kept = np.zeros_like(probabilities)
    kept[tokens] = probabilities[tokens]
    kept /= kept.sum()
    return kept
