"""Figures so far off that floating point gives up: refused, where numpy would only warn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from specsim.errors import DomainError


@contextmanager
def refused_overflow() -> Iterator[None]:
    """Turn an overflow, a division by zero or an undefined number into a DomainError.

    Raises
    ------
    DomainError
        Where the figures of a profile, a model or a workload leave the range of floating point.

    Examples
    --------
    >>> with refused_overflow():  # doctest: +ELLIPSIS
    ...     np.float64(1e300) * 1e300
    Traceback (most recent call last):
    specsim.errors.DomainError: the figures cannot be computed with (overflow encountered in ...
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except (FloatingPointError, OverflowError, ZeroDivisionError) as error:
        raise DomainError(
            f"the figures cannot be computed with ({error}); look for one that is off by orders of magnitude,"
            " in the profile, the model or the workload"
        ) from error
