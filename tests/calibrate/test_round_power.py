"""The law of rounds under caps and clocks: recovered where it is known, and like the board it came from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate.round_power import fit_round_power
from specsim.errors import DomainError
from tests.calibrate.made_up_rounds import FIGURES, NOMINAL_MEMORY_HZ, NOMINAL_SM_HZ, grid, made_up

_ROWS = grid(depths=(0, 1, 3, 5, 7), settings=((420, None), (250, None), (420, 1200), (420, 600)))


def test_rounds_under_caps_and_clocks_are_recovered() -> None:
    rounds, truth = made_up(_ROWS, noise=0.003), made_up(_ROWS, noise=0.0)
    fit = fit_round_power(rounds, nominal_sm_hz=NOMINAL_SM_HZ, nominal_memory_hz=NOMINAL_MEMORY_HZ)
    again = fit.predict(rounds)
    assert again.round_s == pytest.approx(truth.round_s, rel=0.02)
    assert again.power_w == pytest.approx(truth.power_w, rel=0.02)
    assert again.clock_fraction * NOMINAL_SM_HZ == pytest.approx(truth.sm_clock_hz, rel=0.05)
    (host,) = (one for one in fit.figures if one.path == "host_s_per_draft")
    assert host.value == pytest.approx(FIGURES["host_s_per_draft"], rel=0.2)


def test_one_locked_clock_cannot_tell_the_hosts_time() -> None:
    rounds = made_up(_ROWS)
    rounds = rounds.take(rounds.sm_lock_hz != 600e6)
    assert "host_s" not in {one.path for one in fit_round_power(rounds).figures}


def test_an_rtx_3090_under_caps_is_as_measured() -> None:
    # thc1006 (CC0 1.0): K = 0, 3, 7 at 420 W: 24.1, 42.2 and 71.5 ms.
    rounds = made_up(grid(depths=(0, 3, 7), settings=((420, None),)), noise=0.0)
    assert 1e3 * rounds.round_s == pytest.approx([24.1, 42.2, 71.5], rel=0.04)


def test_rounds_without_power_are_refused() -> None:
    rounds = made_up(_ROWS)
    with pytest.raises(DomainError, match="without power"):
        fit_round_power(replace(rounds, power_w=np.full(len(rounds), np.nan)))
