"""Numbers in print: so many digits, an interval in brackets, a mark where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable

ABSENT = "-"
"""In place of a number that is undefined or unknown."""
_MOST_WRITTEN_OUT = 1e9


def figure(value: float | None, *, digits: int = 3) -> str:
    """Return a number to significant digits; larger ones are whole, from 1e9 with an exponent.

    Examples
    --------
    >>> figure(1.5), figure(0.01234), figure(1234.5), figure(2.5e12), figure(None)
    ('1.50', '0.0123', '1234', '2.50e+12', '-')
    """
    if value is None or math.isnan(value):
        return ABSENT
    if 10**digits - 0.5 <= abs(value) < _MOST_WRITTEN_OUT:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def signed_percent(change: float | None, *, decimals: int = 1) -> str:
    """Return a relative change in percent without the sign for it; from ten on with a decimal less.

    Examples
    --------
    >>> signed_percent(0.0843), signed_percent(-0.172), signed_percent(-0.00001)
    ('+8.4', '-17', '+0.0')
    """
    if change is None or math.isnan(change):
        return ABSENT
    # Rounded first, and -0 made 0, so that nothing is shown as -0.0.
    percent = round(100.0 * change, decimals) + 0.0
    return f"{percent:+.{decimals if abs(percent) < 10 else decimals - 1}f}"


def with_interval(
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    show: Callable[[float | None], str] = figure,
    unit: str = "",
) -> str:
    """Return a number with its interval in brackets, without one where it has none or of no width.

    Examples
    --------
    >>> with_interval(1.5, 1.25, 1.75, unit="x"), with_interval(1.5, None, None)
    ('1.50x [1.25, 1.75]', '1.50')
    """
    shown = show(value)
    if value is None:
        return shown
    if low is None or high is None or show(low) == show(high) == shown:
        return f"{shown}{unit}"
    return f"{shown}{unit} [{show(low)}, {show(high)}]"
