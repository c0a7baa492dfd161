"""A calibration as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from calibrate.calibration import Calibration
from calibrate.figures import Figure
from calibrate.held_out import Slice
from calibrate.measurements import Trace
from calibrate.predictions import CellPredictions
from calibrate.round_calibration import RoundCalibration, RoundPower, targets_of
from calibrate.round_held_out import RoundErrors
from calibrate.round_predictions import RoundCellPredictions

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | int | bool | None"

_US, _MJ, _MHZ = 1e6, 1e3, 1e6


def as_json(
    trace: Trace,
    calibration: Calibration | None,
    *,
    rounds: Mapping[str, RoundCalibration],
    threshold: float,
    predicted_steps: CellPredictions | None = None,
    predicted_rounds: RoundCellPredictions | None = None,
) -> dict[str, Json]:
    """Return all that a calibration found, ready for ``json.dumps``.

    Parameters
    ----------
    trace
        What was read.
    calibration
        The fit of its steps; None where it has none.
    rounds
        What its rounds gave, by target.
    threshold
        Held-out error that is still good enough.
    predicted_steps, predicted_rounds
        Cells that were asked for; None where none were.
    """
    found: dict[str, Json] = {
        "trace": {
            "files": trace.name,
            "num_rows": trace.num_rows,
            "num_dropped": trace.num_dropped,
            "header": dict(trace.header),
        },
        "warnings": [str(one) for one in trace.warnings],
        "rounds": {name: _round_cost(one) for name, one in rounds.items()},
        "round_power": {
            name: _round_power(one.power) for name, one in rounds.items() if one.power is not None
        },
        "round_verdicts": {
            name: {"error": one.error, "threshold": threshold, "passed": one.passes(threshold)}
            for name, one in rounds.items()
            if one.error is not None
        },
    }
    if calibration is not None:
        found |= _calibration(calibration)
    predictions: list[Json] = []
    rows: list[int] = []
    if predicted_steps is not None:
        predictions += _step_predictions(predicted_steps)
        rows += predicted_steps.cells.row.tolist()
    if predicted_rounds is not None:
        predictions += _round_predictions(predicted_rounds)
        rows += predicted_rounds.cells.row.tolist()
    if predictions:
        found["predictions"] = [predictions[index] for index in np.argsort(rows)]
    return found


def _calibration(calibration: Calibration) -> dict[str, Json]:
    timed, held_out = calibration.timed, calibration.held_out
    choice = timed.choice
    errors = choice.errors if choice is not None else {}
    power = calibration.held_out_power
    return {
        "profile": calibration.profile.name,
        "passed": calibration.passed,
        "threshold": calibration.threshold,
        "form": str(timed.form),
        "forms": {str(form): error for form, error in errors.items()},
        "table_error": None if choice is None else choice.table_error,
        "recommended_kind": calibration.recommended_kind,
        "num_cells": len(timed.cells),
        "repeat_spread": timed.repeat_spread,
        "figures": [_figure(one) for one in calibration.figures],
        "covariance": {
            "paths": [one.path for one in timed.figures],
            "matrix": [[float(value) for value in row] for row in timed.covariance],
        },
        "not_identified": [
            {"path": one.path, "held_at": one.value, "reason": one.reason, "measure": one.cells}
            for one in calibration.not_identified
        ],
        "jacobian": {
            "rank": timed.rank.rank,
            "num_parameters": timed.rank.num_parameters,
            "condition": _finite(timed.rank.condition),
        },
        "held_out": {
            "scheme": held_out.scheme,
            **_slice(held_out.total),
            "by_phase": [_slice(one) for one in held_out.by_phase()],
            "by_positions": [_slice(one) for one in held_out.by_positions()],
        },
        "held_out_power": None if power is None else _slice(power),
    }


def _figure(figure: Figure) -> dict[str, Json]:
    return {
        "path": figure.path,
        "value": figure.value,
        "standard_error": figure.standard_error,
        "low": figure.low,
        "high": figure.high,
        "is_at_bound": figure.is_at_bound,
    }


def _slice(part: Slice) -> dict[str, Json]:
    return {"name": part.name, "num_cells": part.num_cells, "error": part.error, "bias": part.bias}


def _round_cost(calibration: RoundCalibration) -> Json:
    cost = calibration.cost
    if isinstance(cost, str):
        return cost
    a, b, c = cost.coefficients_s
    return {
        "round_s": a,
        "draft_token_s": b,
        "position_s": c,
        "standard_errors_s": [math.sqrt(max(float(cost.covariance[at, at]), 0.0)) for at in range(3)],
        "spread": cost.spread,
        "num_rows": cost.num_rows,
        "depths": list(cost.depths),
        "batches": list(cost.batches),
        "held_out": [_round_errors(one) for one in calibration.held_out],
    }


def _round_power(power: RoundPower | str) -> Json:
    if isinstance(power, str):
        return power
    fit = power.fit
    return {
        "figures": [_figure(one) for one in fit.figures],
        "not_identified": [
            {"path": one.path, "reason": one.reason, "measure": one.cells} for one in power.untold
        ],
        "nominal_sm_mhz": fit.nominal_sm_hz / _MHZ if power.watches_sm_clock else None,
        "nominal_mem_mhz": fit.nominal_memory_hz / _MHZ if power.watches_memory_clock else None,
        "spread": power.spread,
        "num_rows": len(power.rounds),
        "held_out": [_round_errors(one) for one in power.held_out],
    }


def _round_errors(errors: RoundErrors) -> dict[str, Json]:
    values = np.unique(errors.values)
    return {
        "left_out": errors.axis,
        "kept": [_finite(one) for one in errors.kept],
        **_sizes(errors),
        "by_value": [
            {"value": _finite(float(one)), **_sizes(errors.take(errors.values == one))} for one in values
        ],
    }


def _sizes(errors: RoundErrors) -> dict[str, Json]:
    found: dict[str, Json] = {"num_rows": len(errors.values)}
    for name in errors.relative if len(errors.values) else ():
        found[name] = {"rms": errors.rms(name), "mean": errors.mean(name)}
    return found


def _step_predictions(found: CellPredictions) -> Iterator[dict[str, Json]]:
    cells = found.cells
    for index in range(len(cells)):
        yield {
            "row": int(cells.row[index]),
            "device": str(cells.device[index]),
            "model": cells.models[int(cells.model[index])].name,
            "dtype": str(cells.dtype[index]),
            "tp": int(cells.tensor_parallel_size[index]),
            "phase": str(cells.phase[index]),
            "positions": int(cells.num_positions[index]),
            "batch": int(cells.num_sequences[index]),
            "ctx": int(cells.context_tokens[index]),
            "t_gpu_us": float(found.time_s[index]) * _US,
            "low": float(found.low_s[index]) * _US,
            "high": float(found.high_s[index]) * _US,
            "power_w": _finite(float(found.power_w[index])),
            "is_outside": bool(found.is_outside[index]),
        }


def _round_predictions(found: RoundCellPredictions) -> Iterator[dict[str, Json]]:
    cells, prediction = found.cells, found.prediction
    rate, energy_j = prediction.tokens_per_s(cells), prediction.energy_per_token_j(cells)
    targets = targets_of(cells)
    for index in range(len(cells)):
        yield {
            "row": int(cells.row[index]),
            "device": str(cells.device[index]),
            "model": str(targets[index]),
            "k": float(cells.num_speculative_tokens[index]),
            "batch": int(cells.num_sequences[index]),
            "acceptance_length": _finite(cells.acceptance_length[index]),
            "power_cap_w": _finite(cells.power_cap_w[index]),
            "sm_lock_mhz": _finite(cells.sm_lock_hz[index] / _MHZ),
            "mem_mhz": _finite(cells.memory_clock_hz[index] / _MHZ),
            "t_gpu_us": _finite(prediction.round_s[index] * _US),
            "low": _finite(found.low_s[index] * _US),
            "high": _finite(found.high_s[index] * _US),
            "power_w": _finite(prediction.power_w[index]),
            "tokens_per_s": _finite(rate[index]),
            "energy_mj": _finite(energy_j[index] * _MJ),
            "is_outside": bool(found.outside[index]),
            "outside": list(found.outside[index]),
        }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
