"""Money: what the devices of an arm cost by the hour, and the electricity that is paid apart.

A device is paid for from the first arrival to the last token, whether it works or waits, as rent is
charged. So where both arms run on the same devices, cost per token is the inverse of throughput.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specsim.arrays import JOULES_PER_KWH, SECONDS_PER_HOUR, Floats


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices of one arm.

    Examples
    --------
    >>> import numpy as np
    >>> rent = Tariff(usd_per_hour=3.6, usd_per_kwh=0.36)
    >>> rent.usd(np.array([10.0]), np.array([1e6])).round(3).tolist()
    [0.11]
    """

    usd_per_hour: float = math.nan
    """All devices of the arm together, US dollars an hour; NaN where the price of one is not known."""
    usd_per_kwh: float = 0.0
    """Electricity, US dollars a kWh; 0 where it is in the price of the devices."""

    def usd(self, time_s: Floats, energy_j: Floats) -> Floats:
        """Cost of devices for a time and of the energy that they take, US dollars, elementwise.

        NaN where a price is not known, or joules are not that would have to be paid.
        """
        rent = time_s * (self.usd_per_hour / SECONDS_PER_HOUR)
        return rent + energy_j * (self.usd_per_kwh / JOULES_PER_KWH) if self.usd_per_kwh else rent
