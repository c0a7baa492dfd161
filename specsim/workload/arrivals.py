"""When requests arrive: a closed loop of users, or an open stream of given rate and burstiness."""

from __future__ import annotations

import numpy as np

from specsim.arrays import Floats


def arrival_times(
    generator: np.random.Generator, *, num_requests: int, rate_per_s: float, burstiness: float
) -> Floats:
    """Arrival times in seconds of an open stream, [num_requests], the first at the first gap.

    Gaps are gamma distributed with mean 1 / rate and shape ``burstiness``, as in ``vllm bench serve``:
    their coefficient of variation is 1 / sqrt(burstiness), so 1 is a Poisson stream.

    Examples
    --------
    >>> arrival_times(np.random.Generator(np.random.PCG64DXSM(0)), num_requests=2, rate_per_s=1e9,
    ...               burstiness=1.0).shape
    (2,)
    """
    gaps = generator.gamma(shape=burstiness, scale=1.0 / (rate_per_s * burstiness), size=num_requests)
    return np.cumsum(gaps)
