"""A calibration in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from calibrate.calibration import Calibration
from calibrate.figures import Figure
from calibrate.held_out import Slice
from calibrate.measurements import Trace
from calibrate.predictions import CellPredictions
from calibrate.round_calibration import RoundCalibration, RoundPower, num_settings
from calibrate.round_held_out import RoundErrors
from calibrate.round_predictions import RoundCellPredictions

_US, _MJ = 1e6, 1e3
_AXES = {"k": "depth", "power_cap_w": "cap"}
_QUANTITIES = {"tokens_per_s": "tokens/s", "power_w": "W", "energy_j": "J a token"}


def text_lines(
    trace: Trace,
    calibration: Calibration | None,
    *,
    rounds: Mapping[str, RoundCalibration],
    threshold: float,
    predicted_steps: CellPredictions | None = None,
    predicted_rounds: RoundCellPredictions | None = None,
) -> Iterator[str]:
    """Yield the report, the verdict first; the arguments are those of `calibrate.report_json.as_json`."""
    if calibration is not None:
        yield from _verdict(calibration)
    yield from (_round_verdict(one, threshold) for one in rounds.values() if one.error is not None)
    yield f"{trace.name}: {trace.num_rows} rows, {trace.num_dropped} dropped"
    yield from (f"  {warning}" for warning in trace.warnings)
    if calibration is not None:
        yield from _figure_lines(calibration)
        yield from _error_lines(calibration)
    for one in rounds.values():
        yield from _round_lines(one)
    if predicted_steps is not None:
        yield from _step_table(predicted_steps)
    if predicted_rounds is not None:
        yield from _round_table(predicted_rounds)


def _verdict(calibration: Calibration) -> Iterator[str]:
    total = calibration.held_out.total
    word = "PASS" if calibration.passed else "FAIL"
    bound = f"at most {calibration.threshold:.1%}"
    yield f"{word}  Held-out error of step time {total.error:.1%} (bias {total.bias:+.1%}), {bound} allowed"
    if calibration.recommended_kind == "table":
        choice = calibration.timed.choice
        assert choice is not None
        assert choice.table_error is not None
        yield (
            f"A table of the measured points predicts points left out better: {choice.table_error:.1%} "
            f"against {choice.error:.1%}; use kind: table inside what was measured"
        )


def _round_verdict(calibration: RoundCalibration, threshold: float) -> str:
    word = "PASS" if calibration.passes(threshold) else "FAIL"
    error = f"tokens/s {calibration.error:.1%} rms"
    return f"{word}  Held-out error of {_title(calibration.target)}: {error}, at most {threshold:.1%} allowed"


def _figure_lines(calibration: Calibration) -> Iterator[str]:
    timed = calibration.timed
    rank = f"rank {timed.rank.rank} of {timed.rank.num_parameters}, condition {timed.rank.condition:.3g}"
    yield f"Form: {timed.form}; {len(timed.cells)} cells; {rank}"
    yield from _figure_table(calibration.figures)
    yield from (str(one) for one in calibration.not_identified)


def _figure_table(figures: Sequence[Figure], *, untold: Collection[str] = ()) -> Iterator[str]:
    yield f"{'figure':32} {'value':>11} {'std. error':>11}   95 % interval"
    for one in figures:
        if one.path in untold:
            yield f"{one.path:32} {one.value:11.4g}    not told"
            continue
        error = "at bound" if one.standard_error is None else f"{one.standard_error:.2g}"
        yield f"{one.path:32} {one.value:11.4g} {error:>11}   {one.low:.4g} – {one.high:.4g}"


def _error_lines(calibration: Calibration) -> Iterator[str]:
    held_out = calibration.held_out
    yield f"Held out: {held_out.scheme}"
    for title, parts in (("phase", held_out.by_phase()), ("positions", held_out.by_positions())):
        for part in parts:
            yield _error_line(f"{title} {part.name}", part)
    if calibration.held_out_power is not None:
        yield _error_line("power at measured time", calibration.held_out_power)


def _error_line(title: str, part: Slice) -> str:
    return f"  {title:24} {part.num_cells:6} cells  error {part.error:6.1%}  bias {part.bias:+.1%}"


def _round_lines(calibration: RoundCalibration) -> Iterator[str]:
    title, cost, power = _title(calibration.target), calibration.cost, calibration.power
    if isinstance(cost, str):
        yield f"{title}: {cost}"
    else:
        a, b, c = (1e3 * value for value in cost.coefficients_s)
        depths = f"K {cost.depths[0]:g}–{cost.depths[1]:g}"
        mixed = ", all caps and clocks together" if num_settings(calibration.rounds) > 1 else ""
        spread = f"spread {cost.spread:.1%}{mixed}"
        yield f"{title}: {a:.3g} + {b:.3g}·K + {c:.3g}·(K+1)·B ms, {depths}, {spread}"
        yield from (_left_out(one) for one in calibration.held_out if len(one.values))
    if isinstance(power, str):
        yield f"{title}: {power}"
    elif power is not None:
        yield from _power_lines(title, power)


def _power_lines(title: str, power: RoundPower) -> Iterator[str]:
    yield f"{title} under caps: {len(power.rounds)} rounds with watts, spread of times {power.spread:.1%}"
    yield from _figure_table(power.fit.figures, untold={one.path for one in power.untold})
    for cells in dict.fromkeys(one.cells for one in power.untold):
        paths = ", ".join(one.path for one in power.untold if one.cells == cells)
        yield f"not told by these rounds: {paths}; to tell them measure {cells}"
    for errors in power.held_out:
        if len(errors.values):
            yield _left_out(errors)
        if errors.kept:
            kept = ", ".join("none" if math.isinf(one) else f"{one:g}" for one in errors.kept)
            yield f"  {_AXES[errors.axis]} of {kept} was not left out: the other rounds are too few"


def _left_out(errors: RoundErrors) -> str:
    found = [
        f"{_QUANTITIES[name]} {errors.rms(name):.1%} rms (mean {errors.mean(name):+.1%})"
        for name in errors.relative
    ]
    return f"  one {_AXES[errors.axis]} left out: {len(errors.values)} rounds, {', '.join(found)}"


def _step_table(found: CellPredictions) -> Iterator[str]:
    cells = found.cells
    yield f"{'row':>6} {'positions':>9} {'batch':>6} {'ctx':>7} {'t_gpu_us':>10}   95 % interval   power_w"
    for at in range(len(cells)):
        shape = f"{cells.num_positions[at]:9} {cells.num_sequences[at]:6} {cells.context_tokens[at]:7}"
        interval = f"{_US * found.low_s[at]:.4g} – {_US * found.high_s[at]:.4g}"
        note = "   outside what was measured" if found.is_outside[at] else ""
        time_us, power_w = _US * found.time_s[at], _or_dash(found.power_w[at])
        yield f"{cells.row[at]:6} {shape} {time_us:10.4g}   {interval}   {power_w}{note}"


def _round_table(found: RoundCellPredictions) -> Iterator[str]:
    cells, prediction = found.cells, found.prediction
    rate, energy_j = prediction.tokens_per_s(cells), prediction.energy_per_token_j(cells)
    columns = (
        "row",
        "k",
        "batch",
        "power_cap_w",
        "t_gpu_us",
        "low",
        "high",
        "power_w",
        "tokens_per_s",
        "energy_mj",
    )
    yield " ".join(f"{name:>{max(len(name), 7)}}" for name in columns)
    for at in range(len(cells)):
        values = (
            cells.row[at],
            cells.num_speculative_tokens[at],
            cells.num_sequences[at],
            cells.power_cap_w[at],
            _US * prediction.round_s[at],
            _US * found.low_s[at],
            _US * found.high_s[at],
            prediction.power_w[at],
            rate[at],
            _MJ * energy_j[at],
        )
        line = " ".join(
            f"{_or_dash(value):>{max(len(name), 7)}}" for name, value in zip(columns, values, strict=True)
        )
        note = f"   outside what was measured: {', '.join(found.outside[at])}" if found.outside[at] else ""
        yield line + note


def _title(target: str) -> str:
    return f"rounds of {target or 'an unnamed target'}"


def _or_dash(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "–"
