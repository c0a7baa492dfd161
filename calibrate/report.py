"""A calibration in words and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from calibrate.calibration import Calibration
from calibrate.held_out import Slice
from calibrate.measurements import Trace
from calibrate.predictions import CellPredictions
from calibrate.rounds import RoundCost

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | int | bool | None"

_US = 1e6


def as_json(
    trace: Trace,
    calibration: Calibration | None,
    *,
    rounds: Mapping[str, RoundCost | str],
    predictions: CellPredictions | None = None,
) -> dict[str, Json]:
    """Return all that a calibration found, ready for ``json.dumps``.

    Parameters
    ----------
    trace
        What was read.
    calibration
        The fit of its steps; None where it has none.
    rounds
        Cost of rounds by target, or why there is none.
    predictions
        Cells that were asked for.
    """
    found: dict[str, Json] = {
        "trace": {
            "files": trace.name,
            "num_rows": trace.num_rows,
            "num_dropped": trace.num_dropped,
            "header": dict(trace.header),
        },
        "warnings": [str(one) for one in trace.warnings],
        "rounds": {name: _round_cost(cost) for name, cost in rounds.items()},
    }
    if calibration is not None:
        found |= _calibration(calibration)
    if predictions is not None:
        found["predictions"] = list(_predictions(predictions))
    return found


def text_lines(
    trace: Trace, calibration: Calibration | None, *, rounds: Mapping[str, RoundCost | str]
) -> Iterator[str]:
    """Yield the report, the verdict first."""
    if calibration is not None:
        yield from _verdict(calibration)
    yield f"{trace.name}: {trace.num_rows} rows, {trace.num_dropped} dropped"
    yield from (f"  {warning}" for warning in trace.warnings)
    if calibration is not None:
        yield from _figure_lines(calibration)
        yield from _error_lines(calibration)
    for name, cost in rounds.items():
        yield _round_line(name, cost)


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


def _figure_lines(calibration: Calibration) -> Iterator[str]:
    timed = calibration.timed
    rank = f"rank {timed.rank.rank} of {timed.rank.num_parameters}, condition {timed.rank.condition:.3g}"
    yield f"Form: {timed.form}; {len(timed.cells)} cells; {rank}"
    yield f"{'figure':32} {'value':>11} {'std. error':>11}   95 % interval"
    for one in calibration.figures:
        error = "at bound" if one.standard_error is None else f"{one.standard_error:.2g}"
        yield f"{one.path:32} {one.value:11.4g} {error:>11}   {one.low:.4g} – {one.high:.4g}"
    yield from (str(one) for one in calibration.not_identified)


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


def _round_line(name: str, cost: RoundCost | str) -> str:
    title = f"rounds of {name or 'an unnamed target'}"
    if isinstance(cost, str):
        return f"{title}: {cost}"
    a, b, c = (1e3 * value for value in cost.coefficients_s)
    depths = f"K {cost.depths[0]:g}–{cost.depths[1]:g}"
    return f"{title}: {a:.3g} + {b:.3g}·K + {c:.3g}·(K+1)·B ms, {depths}, spread {cost.spread:.1%}"


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
        "figures": [
            {
                "path": one.path,
                "value": one.value,
                "standard_error": one.standard_error,
                "low": one.low,
                "high": one.high,
                "is_at_bound": one.is_at_bound,
            }
            for one in calibration.figures
        ],
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


def _slice(part: Slice) -> dict[str, Json]:
    return {"name": part.name, "num_cells": part.num_cells, "error": part.error, "bias": part.bias}


def _round_cost(cost: RoundCost | str) -> Json:
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
    }


def _predictions(found: CellPredictions) -> Iterator[dict[str, Json]]:
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
