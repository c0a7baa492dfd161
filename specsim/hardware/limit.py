"""The physical limit of a step: what the bytes and the arithmetic alone need at datasheet peaks.

t_lim = max(bytes/bandwidth, FLOPs/peak) and e_lim = bytes·ε_B + FLOPs·ε_F + P_idle·t_lim, the bound of the
roofline (Williams, Waterman & Patterson 2009) for time and of the energy roofline (Choi et al. 2013).
Bytes are the active weights (embedding table apart), the KV cache read and the KV entries written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specsim.arrays import Floats


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of time and energy on n devices of one kind.

    Examples
    --------
    >>> h100 = Limit(bandwidth_bytes_per_s=3.35e12, peak_flops_per_s=989e12)
    >>> weights, cache = 2 * 7_504_924_672, 2 * 65536 * 2049
    >>> round(float(h100.time(np.array([weights + cache]), np.array([16e9]))[0]) * 1e3, 2)
    4.56
    """

    bandwidth_bytes_per_s: float
    """Datasheet bandwidth of all devices together, bytes/s."""
    peak_flops_per_s: float
    """Datasheet peak of all devices together, FLOP/s."""
    energy_per_byte_j: float = 0.0
    """ε_B, J/byte."""
    energy_per_flop_j: float = 0.0
    """ε_F, J/FLOP."""
    idle_w: float = 0.0
    """P_idle of all devices together, W."""

    def time(self, num_bytes: Floats, flops: Floats) -> Floats:
        """Return the least time of steps, s."""
        return np.maximum(num_bytes / self.bandwidth_bytes_per_s, flops / self.peak_flops_per_s)

    def energy(self, num_bytes: Floats, flops: Floats) -> Floats:
        """Return the least energy of steps, J."""
        moved = num_bytes * self.energy_per_byte_j + flops * self.energy_per_flop_j
        return moved + self.idle_w * self.time(num_bytes, flops)
