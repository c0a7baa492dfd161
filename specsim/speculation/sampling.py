"""Acceptance, correction and draws: the arithmetic of speculative sampling on given distributions.

Leviathan, Kalman and Matias 2023, Theorem 3.5 and Appendix A.1; Chen et al. 2023, Theorem 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specsim.arrays import Floats, Ints
from specsim.errors import DomainError

Vector: TypeAlias = Sequence[float] | NDArray[np.floating]

SUM_TOLERANCE = 1e-6
"""How far a distribution's sum may be from 1: float32 softmax over a large vocabulary stays within."""


def distribution(values: Vector, *, name: str = "distribution") -> Floats:
    """Return a probability vector in float64, or refuse it.

    Raises
    ------
    DomainError
        Where it is not a vector of at least one probability, does not sum to 1 within 1e-6, or was stored in
        float16, which drops all below 6e-8 and so changes ratios of p and q.

    Examples
    --------
    >>> distribution([0.7, 0.3]).tolist()
    [0.7, 0.3]
    """
    if isinstance(values, np.ndarray) and values.dtype == np.float16:
        raise DomainError(f"{name}: float16 holds no small probabilities; give logits, or at least float32")
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DomainError(f"{name}: not a vector of numbers") from None
    if vector.ndim != 1 or vector.size == 0:
        raise DomainError(f"{name}: shape {vector.shape}, not a vector of at least one probability")
    bad = np.flatnonzero(~((vector >= 0) & (vector <= 1 + SUM_TOLERANCE)))
    if bad.size:
        raise DomainError(f"{name}: {vector[bad[0]]} at {bad[0]} is not a probability")
    total = float(vector.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise DomainError(f"{name}: sums to {total:.9g}, not to 1")
    return vector


def distribution_pair(p: Vector, q: Vector) -> tuple[Floats, Floats]:
    """Return target and draft distributions over the same tokens, or refuse them."""
    target, draft = distribution(p, name="target"), distribution(q, name="draft")
    if target.shape != draft.shape:
        raise DomainError(f"target and draft are over {target.size} and {draft.size} tokens: must be equal")
    return target, draft


def acceptance_rate(p: Vector, q: Vector) -> float:
    """Probability that a token drawn from q is kept under p: the sum of min(p, q).

    Leviathan et al. 2023, Theorem 3.5. Equals 1 minus the total variation distance.

    Examples
    --------
    >>> round(acceptance_rate([0.7, 0.3], [0.3, 0.7]), 12)
    0.6
    """
    target, draft = distribution_pair(p, q)
    return float(min(np.minimum(target, draft).sum(), 1.0))


def correction_distribution(p: Vector, q: Vector) -> Floats:
    """Law of the token emitted after a rejection: max(p - q, 0), normalised; shape [V].

    Leviathan et al. 2023, Appendix A.1. Where p equals q nothing is ever rejected and the law is
    arbitrary; p itself is returned, so that no value is NaN and no token outside p is possible.

    Examples
    --------
    >>> correction_distribution([0.7, 0.3], [0.3, 0.7]).tolist()
    [1.0, 0.0]
    """
    target, draft = distribution_pair(p, q)
    (law,) = corrections(target[np.newaxis], draft[np.newaxis])
    return np.asarray(law, dtype=np.float64)


def corrections(target: Floats, draft: Floats) -> Floats:
    """Rows of :func:`correction_distribution` without the checks; shapes [rows, V]."""
    residual = np.maximum(target - draft, 0.0)
    mass = residual.sum(axis=-1, keepdims=True)
    law: Floats = np.where(mass > 0, residual / np.where(mass > 0, mass, 1.0), target)
    return law


def keep_probabilities(target_at_token: Floats, draft_at_token: Floats) -> Floats:
    """Return min(1, p / q) at drawn tokens; 0 where both are 0, a token that no draw can give."""
    is_drawable = draft_at_token > 0
    ratio = target_at_token / np.where(is_drawable, draft_at_token, 1.0)
    return np.where(is_drawable, np.minimum(ratio, 1.0), np.where(target_at_token > 0, 1.0, 0.0))


def kept_given_text(target_at_token: Floats, draft_at_token: Floats) -> Floats:
    """Return min(1, q / p) at the tokens of a text that the target has sampled, elementwise.

    Token verification draws x from q and keeps it with probability min(1, p/q) (Leviathan et al. 2023,
    section 2.3), which makes min(p, q) of the p that x has; so, given that the text holds x, the draft is it
    and is kept with probability min(1, q/p).

    Parameters
    ----------
    target_at_token
        p of the text's tokens, above 0.
    draft_at_token
        q of the same tokens; where it is NaN, so is what is returned.
    """
    kept: Floats = np.minimum(draft_at_token / target_at_token, 1.0)
    return kept


def draw(probabilities: Floats, uniforms: Floats) -> Ints:
    """Tokens by inversion of the cumulative sum, shape [rows].

    Never a token of zero probability: not at a uniform of 0 or next to 1, nor where rounding leaves
    the cumulative sum below 1.

    Parameters
    ----------
    probabilities
        One distribution a row, [rows, V]; a row need not be normalised.
    uniforms
        One uniform in [0, 1) a row, [rows].

    Raises
    ------
    DomainError
        Where a row has no mass, or a uniform is outside [0, 1).

    Examples
    --------
    >>> draw(np.array([[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]), np.array([0.0, 0.75])).tolist()
    [1, 2]
    """
    cumulative = np.cumsum(probabilities, axis=1)
    total = cumulative[:, -1]
    if not (total.min(initial=1.0) > 0 and total.max(initial=1.0) < np.inf):
        raise DomainError("a distribution to draw from has no mass")
    if not (uniforms.min(initial=0.0) >= 0 and uniforms.max(initial=0.0) < 1):
        raise DomainError("a uniform to draw with is outside [0, 1)")
    # The first entry above u·total adds mass, so it has some, unless u·total was rounded up to total.
    tokens: Ints = (cumulative <= (uniforms * total)[:, np.newaxis]).sum(axis=1)
    if tokens.max(initial=0) == probabilities.shape[1]:
        last = probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)
        tokens = np.minimum(tokens, last)
    return tokens
