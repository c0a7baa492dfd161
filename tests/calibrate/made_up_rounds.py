"""Rounds under caps and locked clocks, made from known figures of their law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from calibrate import RoundMeasurements, trace_of
from calibrate.round_power import predict_rounds
from specsim.streams import Purpose, RandomStreams

FIGURES: Mapping[str, float] = {
    "clock_s": 16.4e-3,
    "clock_s_per_draft": 6.3e-3,
    "memory_s": 22.7e-3,
    "memory_s_per_draft": 2.4e-3,
    "host_s": 0.0,
    "host_s_per_draft": 1.4e-3,
    "exponent": 5.3,
    "active_w": 115.0,
    "clock_w": 76.0,
    "position_j": 0.67,
    "round_j": 2.28,
    "meter_fraction": 1.0,
    "knee_fraction": 0.85,
    "slope": 1.85,
}
"""An RTX 3090's, about: a fit of thc1006's rows (CC0 1.0, 2025)."""

NOMINAL_SM_HZ, NOMINAL_MEMORY_HZ = 1.7e9, 9.501e9
DEPTHS = (0, 1, 3, 6)
SETTINGS = ((420, None), (320, None), (250, None), (420, 1200), (420, 1500))
"""Cap, W, and locked clock, MHz; None: free."""


def grid(
    depths: Sequence[float] = DEPTHS, settings: Sequence[tuple[float, float | None]] = SETTINGS
) -> pd.DataFrame:
    """Return rows of rounds in the columns of a trace, all under each setting, not measured yet."""
    rows = pd.DataFrame(
        [(k, *setting) for k in depths for setting in settings],
        columns=["k", "power_cap_w", "sm_lock_mhz"],
    )
    return rows.assign(acceptance_length=1 + 0.5 * rows["k"])


def made_up(rows: pd.DataFrame, *, seed: int = 7, noise: float = 0.004) -> RoundMeasurements:
    """Return rows of `grid` as a device with `FIGURES` would be timed and metered."""
    table = rows.assign(tokens_per_s=1.0, mean_power_w=1.0, mem_mhz=NOMINAL_MEMORY_HZ / 1e6)
    rounds = trace_of(table, file="made up", header={"device": "rtx-3090"}).rounds
    assert rounds is not None
    said = predict_rounds(
        FIGURES,
        rounds,
        nominal_sm_hz=NOMINAL_SM_HZ,
        nominal_memory_hz=NOMINAL_MEMORY_HZ,
        highest_fraction=1.06,
    )
    draw = RandomStreams(seed).generator(Purpose.POLICY).normal(0.0, noise, (2, len(rounds)))
    return replace(
        rounds,
        tokens_per_s=rounds.acceptance_length / (said.round_s * np.exp(draw[0])),
        power_w=said.power_w * np.exp(draw[1]),
        sm_clock_hz=said.clock_fraction * NOMINAL_SM_HZ,
    )
