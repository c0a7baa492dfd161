"""Fits of traces made from known figures, and what they say where the trace cannot tell."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from calibrate import Measurements
from calibrate.fit import fit_time
from calibrate.law import Form
from calibrate.predict import Predictor
from calibrate.select import choose_form
from specsim.errors import DomainError
from specsim.hardware import RooflineProfile, load_model
from tests.calibrate.synthetic import FIGURES, MODELS, TILE, h100, measured, true_profile


def _hits(num_trials: int, *, outliers: float) -> Counter[str]:
    """Trials in which a figure lies within two standard errors of the truth."""
    hits: Counter[str] = Counter()
    for seed in range(num_trials):
        trace = measured(true_profile(), seed=seed, outliers=outliers)
        fit = fit_time(trace, h100(), form=Form(TILE), with_intervals=False)
        for figure in fit.figures:
            error = figure.standard_error
            hits[figure.path] += error is not None and abs(figure.value - FIGURES[figure.path]) <= 2 * error
    return hits


@pytest.mark.verification
@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_figures_lie_within_two_standard_errors_in_179_to_198_of_200_trials(outliers: float) -> None:
    hits = _hits(200, outliers=outliers)
    assert set(hits) == set(FIGURES)
    assert {path: count for path, count in hits.items() if not 179 <= count <= 198} == {}


@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_figures_are_recovered_from_a_trace_made_of_them(outliers: float) -> None:
    hits = _hits(6, outliers=outliers)
    assert set(hits) == set(FIGURES)
    assert sum(hits.values()) >= 0.8 * 6 * len(FIGURES)


def test_cross_validation_finds_the_tile() -> None:
    fit = fit_time(measured(true_profile(tile=128), seed=3, noise=0.005), h100(), with_intervals=False)
    assert fit.form == Form(128)


def test_a_hard_corner_is_found_where_there_is_one() -> None:
    sharp = true_profile(tile=1)
    sharp = sharp.model_copy(update={"overhead": sharp.overhead.model_copy(update={"smooth_exponent": None})})
    fit = fit_time(measured(sharp, seed=4, noise=0.005), h100(), with_intervals=False)
    said = Predictor(fit.cells)(fit.profile).time_s
    assert np.abs(said / fit.cells.gpu_s - 1).mean() < 0.006


def _eight_billion(profile: RooflineProfile) -> Measurements:
    return measured(profile, seed=5, models=(load_model("llama-3.1-8b"),))


def test_one_model_ends_in_a_message_and_not_in_a_bandwidth_beyond_the_datasheet() -> None:
    fit = fit_time(_eight_billion(true_profile()), h100())
    said = {one.path: str(one) for one in fit.not_identified}
    assert {"efficiency.memory", "overhead.step_s"} <= set(said)
    assert "one model" in said["efficiency.memory"]
    assert "two models whose weights a layer differ" in said["efficiency.memory"]
    assert fit.profile.efficiency.memory.value == 0.88
    assert "efficiency.memory" not in {one.path for one in fit.figures}


def test_two_models_of_one_size_are_told_apart_no_better_than_one() -> None:
    twin = load_model("llama-3.1-8b").model_copy(update={"name": "twin", "num_hidden_layers": 40})
    trace = measured(true_profile(), seed=6, models=(load_model("llama-3.1-8b"), twin))
    fit = fit_time(trace, h100(), form=Form(TILE), with_intervals=False)
    assert "models of one size" in str(fit.not_identified)


def test_no_efficiency_exceeds_the_datasheet() -> None:
    fast = {**FIGURES, "efficiency.memory": 1.0, "efficiency.compute": 1.0}
    trace = measured(true_profile(fast), seed=7)
    quicker = trace.with_columns({"wall_s": 0.8 * trace.wall_s})
    fit = fit_time(quicker, h100(), form=Form(TILE), with_intervals=False)
    assert fit.profile.efficiency.memory.value <= 1.0
    assert fit.profile.efficiency.compute.value <= 1.0
    assert any(one.is_at_bound for one in fit.figures)


def test_the_prior_is_kept_where_no_row_has_a_launch_or_attention() -> None:
    trace = measured(true_profile(), seed=8)
    trace = trace.take((trace.context_tokens == 0) & (trace.num_sequences == 1))
    parts = np.full(len(trace), "attention+launch")
    fit = fit_time(trace.with_columns({"excludes": parts}), h100(), form=Form(TILE), with_intervals=False)
    assert fit.profile.overhead.step_s == h100().overhead.step_s
    assert fit.profile.attention.floor_s == h100().attention.floor_s


def test_intervals_hold_the_best_value_and_widen_with_noise() -> None:
    def width(noise: float) -> float:
        fit = fit_time(measured(true_profile(), seed=9, noise=noise), h100(), form=Form(TILE))
        for figure in fit.figures:
            assert figure.low <= figure.value <= figure.high
        (memory,) = (one for one in fit.figures if one.path == "efficiency.memory")
        return memory.high - memory.low

    assert width(0.005) < width(0.03)


def test_both_clocks_tell_the_hosts_share() -> None:
    trace = measured(true_profile(), seed=10, noise=0.002)
    launch_s = FIGURES["overhead.step_s"] + FIGURES["overhead.sequence_s"] * trace.num_sequences
    both = trace.with_columns({"gpu_s": trace.wall_s - launch_s})
    fit = fit_time(both, h100(), form=Form(TILE), with_intervals=False)
    assert fit.profile.overhead.step_s == pytest.approx(FIGURES["overhead.step_s"], rel=0.1)
    assert fit.profile.overhead.sequence_s == pytest.approx(FIGURES["overhead.sequence_s"], rel=0.1)


def test_repeats_count_once_and_their_spread_is_told() -> None:
    one = measured(true_profile(), seed=11, noise=0.01)
    many = Measurements.joined([one, measured(true_profile(), seed=12, noise=0.01), one])
    fit = fit_time(many, h100(), form=Form(TILE), with_intervals=False)
    assert len(fit.cells) == len(one)
    assert fit.repeat_spread == pytest.approx(0.006, rel=0.6)


def test_five_cells_are_refused() -> None:
    with pytest.raises(DomainError, match="5 timed cells"):
        fit_time(measured(true_profile(), seed=13).take(np.arange(5)), h100())


def test_a_table_is_recommended_where_the_law_cannot_follow() -> None:
    trace = measured(true_profile(), seed=14, noise=0.0, models=MODELS[:1])
    trace = trace.take((trace.context_tokens == 0) & (trace.num_sequences == 1))
    # A slow switch of kernels that no tile describes, smooth between the points.
    bent = trace.wall_s * (1.0 + 0.4 * np.sin(np.log(trace.num_positions)) ** 2)
    fit = fit_time(trace.with_columns({"wall_s": bent}), h100(), with_intervals=False)
    assert fit.choice is not None
    assert fit.choice.table_error is not None
    assert fit.choice.prefers_table == (fit.choice.table_error * 1.05 < fit.choice.error)


def test_the_form_is_chosen_on_cells_left_out() -> None:
    from calibrate.law import TimeLaw
    from calibrate.observations import observe

    rows = observe(measured(true_profile(), seed=15, noise=0.005)).rows
    law = TimeLaw(rows, h100())
    choice = choose_form(law, law.candidates())
    assert choice.form.tile_positions == TILE
    assert choice.error == min(choice.errors.values())
