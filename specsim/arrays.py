"""The two kinds of array that flow through the simulation, and the integer clock they are costed on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

PICOSECONDS_PER_SECOND = 10**12
NANOJOULES_PER_JOULE = 10**9


def to_picoseconds(time_s: Floats) -> Ints:
    """Seconds as whole picoseconds, the simulated clock's unit: rounded once, then summed exactly.

    Examples
    --------
    >>> to_picoseconds(np.array([1.5e-3])).tolist()
    [1500000000]
    """
    return np.rint(time_s * PICOSECONDS_PER_SECOND).astype(np.int64)


def to_nanojoules(energy_j: Floats) -> Ints:
    """Joules as whole nanojoules: rounded once, then summed exactly.

    Examples
    --------
    >>> to_nanojoules(np.array([0.25])).tolist()
    [250000000]
    """
    return np.rint(energy_j * NANOJOULES_PER_JOULE).astype(np.int64)
