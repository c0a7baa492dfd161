"""Joules that rest in part on guessed watts: how far they may be off, and when that is too far to show them.

Energy is linear in the watts that it is made of: a guess at half or at twice its value takes away half of
what it contributes, or adds as much again, and leaves the rest.
"""

from __future__ import annotations

LEAST, MOST = 0.5, 2.0
"""Factors between which the true watts are taken to lie, all guesses off together."""
MOST_GUESSED = 0.5
"""Largest share of guessed watts in joules that are shown: between 25 % less and 50 % more."""


def is_shown(guessed_fraction: float) -> bool:
    """Tell whether joules are bounded well enough to be shown, by the share that guessed watts contribute.

    Examples
    --------
    >>> is_shown(0.06), is_shown(0.9)
    (True, False)
    """
    return guessed_fraction <= MOST_GUESSED


def bounds(guessed_fraction: float) -> tuple[float, float]:
    """Return by which factors joules change where their guessed watts are half or twice what was guessed.

    Examples
    --------
    >>> bounds(0.1)
    (0.95, 1.1)
    """
    return 1.0 + (LEAST - 1.0) * guessed_fraction, 1.0 + (MOST - 1.0) * guessed_fraction
