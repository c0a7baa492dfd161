"""Rounds of a target, calibrated: figures come back, cells are predicted, and what is not known is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from calibrate import RoundMeasurements, Trace, trace_of
from calibrate.report import text_lines
from calibrate.round_calibration import RoundCalibration, RoundPower, calibrate_rounds
from calibrate.round_held_out import QUANTITIES, RoundErrors, hold_out_rounds
from calibrate.round_power import RoundPowerFit, fit_round_power
from calibrate.round_predictions import RoundCellPredictions, predict_round_cells
from specsim.errors import ConfigError, DomainError
from specsim.streams import Purpose, RandomStreams
from tests.calibrate.made_up_rounds import FIGURES, NOMINAL_MEMORY_HZ, NOMINAL_SM_HZ, grid, made_up


def _law(rounds: RoundMeasurements) -> RoundPower:
    """Return the law of rounds, with no rounds left out."""
    fit = fit_round_power(rounds, nominal_sm_hz=NOMINAL_SM_HZ, nominal_memory_hz=NOMINAL_MEMORY_HZ)
    return RoundPower.of(fit, rounds)


@pytest.fixture(scope="module")
def law() -> RoundPower:
    """Return the law of made-up rounds under caps and locked clocks, without those under 320 W."""
    rounds = made_up(grid())
    return _law(rounds.take(rounds.power_cap_w != 320.0))


def _rounds(table: pd.DataFrame, *, device: str = "rtx-3090", are_timed: bool = False) -> RoundMeasurements:
    rounds = trace_of(table, file="cells.csv", header={"device": device}, are_timed=are_timed).rounds
    assert rounds is not None
    return rounds


def _costed(table: pd.DataFrame, **more: float) -> RoundCalibration:
    """Return the calibration of rounds of 6 + 0.4·K ms, without watts."""
    table = table.assign(acceptance_length=1.0, **more)
    rate = table.get("batch", 1) / (6e-3 + 4e-4 * table["k"])
    (found,) = calibrate_rounds(_rounds(table.assign(tokens_per_s=rate), are_timed=True)).values()
    return found


def _predict(calibration: RoundCalibration, cells: RoundMeasurements) -> RoundCellPredictions:
    trace = Trace(rounds=cells, name="cells.csv")
    return predict_round_cells({calibration.target: calibration}, trace)


def _by_law(law: RoundPower, cells: RoundMeasurements) -> RoundCellPredictions:
    return _predict(RoundCalibration("", law.rounds, "not fitted", (), law), cells)


def test_figures_that_rounds_tell_come_back_within_their_errors(law: RoundPower) -> None:
    unknown = {one.path for one in law.untold}
    told = [one for one in law.fit.figures if one.path not in unknown]
    assert len(told) >= 9
    for one in told:
        assert one.standard_error is not None
        assert abs(one.value - FIGURES[one.path]) < 3.5 * one.standard_error, one.path


def test_a_cap_that_was_left_out_is_predicted(law: RoundPower) -> None:
    cells = made_up(grid()).take(made_up(grid()).power_cap_w == 320.0)
    found = _by_law(law, cells)
    assert found.prediction.round_s == pytest.approx(cells.round_s, rel=0.02)
    assert found.prediction.power_w == pytest.approx(cells.power_w, rel=0.02)
    assert found.prediction.tokens_per_s(cells) == pytest.approx(cells.tokens_per_s, rel=0.02)
    assert ((found.low_s < cells.round_s) & (cells.round_s < found.high_s)).all()
    assert found.outside == ((),) * len(cells)


def test_new_rounds_lie_in_their_interval_about_as_often_as_said(law: RoundPower) -> None:
    cells = RoundMeasurements.joined([made_up(grid(), seed=seed) for seed in range(20, 60)])
    found = _by_law(law, cells)
    assert 0.9 < np.mean((found.low_s < cells.round_s) & (cells.round_s < found.high_s)) < 0.99


def test_without_locked_clocks_the_split_of_the_watts_is_not_told() -> None:
    rounds = made_up(grid(settings=[(420, None), (350, None), (300, None), (250, None)]))
    rounds = replace(rounds, sm_clock_hz=np.full(len(rounds), np.nan))
    unknown = {one.path: one for one in _law(rounds).untold}
    assert {"host_s", "host_s_per_draft", "clock_w", "position_j"} <= set(unknown)
    assert "locked clocks" in unknown["host_s"].cells


@pytest.mark.parametrize(
    ("cell", "outside", "is_predicted"),
    [
        ({"k": 3, "power_cap_w": 300}, (), True),
        ({"k": 2.5, "power_cap_w": 420, "sm_lock_mhz": 1300}, (), True),
        ({"k": 8, "power_cap_w": 300}, ("k",), True),
        ({"k": 3}, ("power_cap_w",), True),
        ({"k": 3, "power_cap_w": 200, "sm_lock_mhz": 1000}, ("power_cap_w", "sm_lock_mhz"), True),
        ({"k": 3, "power_cap_w": 140}, ("power_cap_w",), True),
        ({"k": 3, "power_cap_w": 110}, ("power_cap_w",), False),
        ({"k": 3, "power_cap_w": 1}, ("power_cap_w",), False),
        ({"k": 3, "power_cap_w": 300, "mem_mhz": 5001}, ("mem_mhz",), True),
        ({"k": 3, "power_cap_w": 300, "batch": 8}, ("batch",), False),
    ],
)
def test_a_cell_outside_what_was_measured_is_marked(
    law: RoundPower, cell: dict[str, float], outside: tuple[str, ...], is_predicted: bool
) -> None:
    found = _by_law(law, _rounds(pd.DataFrame([cell])))
    assert found.outside == (outside,)
    assert np.isfinite(found.prediction.round_s[0]) == is_predicted
    assert np.isfinite(found.high_s[0]) == is_predicted


def test_a_clock_that_no_row_watched_is_not_predicted(law: RoundPower) -> None:
    nothing = np.full(len(law.rounds), np.nan)
    blind = replace(law.rounds, sm_lock_hz=nothing, sm_clock_hz=nothing, memory_clock_hz=nothing)
    cells = pd.DataFrame({"k": 3, "power_cap_w": 300, "sm_lock_mhz": [None, 1400], "mem_mhz": [None, 5001]})
    found = _by_law(replace(law, rounds=blind), _rounds(cells))
    assert np.isfinite(found.prediction.round_s).tolist() == [True, False]
    assert found.outside == ((), ("sm_lock_mhz", "mem_mhz"))


def test_an_interval_of_a_depth_that_was_not_measured_has_the_error_of_depths_left_out(
    law: RoundPower,
) -> None:
    fit = replace(law.fit, figures=tuple(replace(one, value=1.05 * one.value) for one in law.fit.figures))
    wrong = replace(law, held_out=hold_out_rounds(law.rounds, lambda rows: fit))
    cells = _rounds(pd.DataFrame({"k": [3, 2], "power_cap_w": 420}))
    known, new = np.log(_by_law(wrong, cells).high_s / _by_law(law, cells).prediction.round_s)
    assert new > 0.05 > known


def test_rounds_are_left_out_by_depth_and_by_cap_and_what_fits_need_is_kept(law: RoundPower) -> None:
    trained, done = [], []

    def fit(rows: RoundMeasurements) -> RoundPowerFit:
        trained.append((set(rows.num_speculative_tokens), set(rows.power_cap_w)))
        if 420.0 not in rows.power_cap_w:
            raise DomainError("too few")
        return law.fit

    depths, caps = hold_out_rounds(law.rounds, fit, on_fit=lambda *counts: done.append(counts))
    assert [sorted({0, 1, 3, 6} - some) for some, _ in trained[:4]] == [[0], [1], [3], [6]]
    assert [sorted({250, 420} - some) for _, some in trained[4:]] == [[250], [420]]
    assert (depths.axis, depths.kept, len(depths.values)) == ("k", (), len(law.rounds))
    assert (caps.axis, caps.kept, set(caps.values)) == ("power_cap_w", (420.0,), {250.0})
    assert done == [(number, 6) for number in range(1, 7)]
    for errors in (depths, caps):
        assert max(errors.rms(name) for name in QUANTITIES) < 0.02
        assert all(abs(errors.mean(name)) <= errors.rms(name) for name in QUANTITIES)


def test_rounds_without_a_cap_that_were_not_left_out_are_told_by_a_word(law: RoundPower) -> None:
    kept = RoundErrors("power_cap_w", np.zeros(0), {}, (420.0, np.inf))
    calibration = RoundCalibration("", law.rounds, "not fitted", (), replace(law, held_out=(kept,)))
    lines = text_lines(Trace(rounds=law.rounds, name="f.csv"), None, rounds={"": calibration}, threshold=0.1)
    assert "  cap of 420, none was not left out: the other rounds are too few" in lines


@pytest.mark.verification
def test_what_is_left_out_is_predicted_unless_watts_are_shuffled() -> None:
    rounds = made_up(
        grid(depths=(0, 1, 2, 4, 6), settings=[(420, None), (320, None), (250, None), (420, 1200)])
    )
    order = RandomStreams(3).generator(Purpose.POLICY).permutation(len(rounds))
    shuffled = replace(rounds, power_w=rounds.power_w[order])
    true, control = (calibrate_rounds(one)[""].power for one in (rounds, shuffled))
    assert isinstance(true, RoundPower)
    assert isinstance(control, RoundPower)
    for own, other in zip(true.held_out, control.held_out, strict=True):
        assert own.rms("tokens_per_s") < 0.05
        assert own.rms("power_w") < 0.07
        assert other.rms("power_w") > 0.15


def test_rounds_without_watts_have_a_cost_and_no_law() -> None:
    calibration = _costed(pd.DataFrame({"k": [1, 3, 5, 7]}))
    assert calibration.power is None
    found = _predict(calibration, _rounds(pd.DataFrame({"k": [4, 9], "acceptance_length": 3.0})))
    assert found.prediction.round_s[0] == pytest.approx(7.6e-3)
    assert found.low_s[0] <= found.prediction.round_s[0] <= found.high_s[0]
    assert np.isnan([found.prediction.round_s[1], found.high_s[1], *found.prediction.power_w]).all()
    assert found.outside == ((), ("k",))


def test_a_cost_is_judged_on_depths_between_others() -> None:
    table = pd.DataFrame({"k": [1, 3, 5, 7], "acceptance_length": 1.0})
    time_s = 6e-3 + 4e-4 * table["k"] + np.array([0.0, 0.0, 1e-3, 0.0])
    (found,) = calibrate_rounds(_rounds(table.assign(tokens_per_s=1 / time_s), are_timed=True)).values()
    (errors,) = found.held_out
    assert errors.kept == (1.0, 7.0)
    assert list(errors.values) == [3.0, 5.0]
    assert list(errors.relative) == ["tokens_per_s"]
    assert errors.relative["tokens_per_s"][1] == pytest.approx(9e-3 / 8e-3 - 1)
    assert _costed(pd.DataFrame({"k": [1, 3, 5, 7]})).held_out[0].rms("tokens_per_s") < 1e-9


def test_the_baseline_does_not_stand_in_for_a_depth_left_out() -> None:
    (errors,) = _costed(pd.DataFrame({"k": [0, 0, 3, 3, 7, 7]})).held_out
    assert (errors.kept, len(errors.values)) == ((3.0, 7.0), 0)


def test_a_cost_of_rounds_under_one_cap_says_nothing_of_another() -> None:
    calibration = _costed(pd.DataFrame({"k": [1, 3, 5, 7]}), power_cap_w=600)
    found = _predict(calibration, _rounds(pd.DataFrame({"k": 3, "power_cap_w": [600, None, 450]})))
    assert found.outside == ((), (), ("power_cap_w",))
    assert np.isnan(found.prediction.round_s).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("rows", "missing"),
    [
        (
            {"k": [3], "power_cap_w": [300]},
            "2 depths (there are 1), and 2 caps or locked clocks (there are 1), and 15",
        ),
        ({"k": [1, 2, 3, 4, 5, 6, 7, 8], "power_cap_w": 300}, "needs 2 caps or locked clocks (there are 1)"),
        (
            {"k": [1, 3, 1, 3], "power_cap_w": [300, 300, 400, 400]},
            "15 measured times, watts and clocks (there are 8)",
        ),
        (
            {"k": [1, 3], "power_cap_w": [300, 400], "batch": [1, 8]},
            "it is of one batch; the rounds hold 1, 8",
        ),
    ],
)
def test_too_few_rows_are_told_what_is_missing(rows: dict[str, object], missing: str) -> None:
    found = _costed(pd.DataFrame(rows), mean_power_w=290.0)
    assert isinstance(found.power, str)
    assert missing in found.power


def test_rounds_of_several_devices_are_not_mixed() -> None:
    found = _costed(pd.DataFrame({"k": [1, 3, 5, 7], "device": ["a", "a", "b", "b"]}))
    assert found.cost == "rows of several devices (a, b); choose one with --device"
    with pytest.raises(DomainError, match="rounds of an unnamed target: rows of several devices"):
        _predict(found, _rounds(pd.DataFrame({"k": [1]}), device="a"))


def test_targets_of_one_name_are_one() -> None:
    first, second = (
        _rounds(
            pd.DataFrame(
                {"k": depths, "acceptance_length": 1.0, "tokens_per_s": 100.0, "model": "llama-3.1-8b"}
            ),
            are_timed=True,
        )
        for depths in ([1, 2], [3, 4])
    )
    apart = replace(
        RoundMeasurements.joined([first, second]), models=first.models * 2, model=np.array([0, 0, 1, 1])
    )
    found = calibrate_rounds(apart)
    assert list(found) == ["llama-3.1-8b"]
    assert len(found["llama-3.1-8b"].rounds) == 4


def test_cells_of_a_target_or_device_that_was_not_measured_are_refused() -> None:
    calibrations = {
        name: replace(_costed(pd.DataFrame({"k": [1, 3, 5, 7]})), target=name) for name in ("a", "b")
    }
    cells = pd.DataFrame({"k": [2, 2], "model": ["llama-3.1-8b", ""]})
    with pytest.raises(ConfigError) as raised:
        predict_round_cells(calibrations, Trace(rounds=_rounds(cells), name="cells.csv"))
    assert [str(one) for one in raised.value.faults] == [
        "cells.csv:1: model: no rounds of 'llama-3.1-8b' were measured (measured: a, b)",
        "cells.csv:2: model: is missing (measured: a, b)",
    ]
    other = _rounds(pd.DataFrame({"k": [2]}), device="h100-sxm")
    with pytest.raises(ConfigError, match=r"cells.csv:1: device: no rounds on 'h100-sxm' were measured"):
        _predict(_costed(pd.DataFrame({"k": [1, 3, 5, 7]})), other)
