"""The two kinds of array that flow through the simulation, and the integer clock they are costed on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specsim.errors import DomainError

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

PICOSECONDS_PER_SECOND = 10**12
NANOJOULES_PER_JOULE = 10**9
SECONDS_PER_HOUR = 3600.0
JOULES_PER_KWH = 3.6e6

MAX_PER_PASS = 2**54
"""Most picoseconds (5 hours) or nanojoules (18 MJ) of one pass: the 256 draft passes that a round may have
then still add up in 64 bits."""
MAX_CLOCK_PS = 2**62
"""End of simulated time, picoseconds (53 days): a pass that begins before it also ends within 64 bits."""


def to_picoseconds(time_s: Floats) -> Ints:
    """Seconds as whole picoseconds, the simulated clock's unit: rounded once, then summed exactly.

    Raises
    ------
    DomainError
        Where a time is not a number or more than `MAX_PER_PASS`.

    Examples
    --------
    >>> to_picoseconds(np.array([1.5e-3])).tolist()
    [1500000000]
    """
    return _whole(time_s, PICOSECONDS_PER_SECOND, "takes", "s")


def to_nanojoules(energy_j: Floats) -> Ints:
    """Joules as whole nanojoules: rounded once, then summed exactly.

    Raises
    ------
    DomainError
        Where an energy is not a number or more than `MAX_PER_PASS`.

    Examples
    --------
    >>> to_nanojoules(np.array([0.25])).tolist()
    [250000000]
    """
    return _whole(energy_j, NANOJOULES_PER_JOULE, "costs", "J")


def _whole(values: Floats, per_unit: int, verb: str, unit: str) -> Ints:
    # NaN compares false, so it is refused as well.
    if not (np.abs(values) <= MAX_PER_PASS / per_unit).all():
        worst = values.flat[int(np.argmax(np.abs(values)))]
        raise DomainError(
            f"one pass {verb} {worst:.3g} {unit}, at most {MAX_PER_PASS / per_unit:.3g} {unit} are counted;"
            " look for a figure that is off by orders of magnitude, in the profile or the lengths"
        )
    return np.rint(values * per_unit).astype(np.int64)
