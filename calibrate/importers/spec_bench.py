"""Spec-Bench results condensed to a row a turn: tokens, steps of the target, wall time, tokens drafted.

Xia et al., "Unlocking Efficiency in Large Language Model Inference" (ACL Findings 2024). A turn becomes one
round row: K is the mean number drafted a round, the rate includes the prefill of the turn.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.by_columns import CsvImporter
from calibrate.importers.tabular import SourceTable
from calibrate.measurements import Trace

_COLUMNS = ("method", "category", "new_tokens", "decoding_steps", "wall_s")
BASELINE = "vanilla"
UNSTATED_DEVICE = "unstated"


@trace_importers.register
class SpecBench(CsvImporter):
    """Reads ``method, category, new_tokens, decoding_steps, wall_s`` and, of drafts, ``gamma_sum``.

    Methods whose drafted tokens the file does not count (trees) are left out and counted.
    """

    kind: Literal["spec_bench"] = "spec_bench"
    """Kind of importer."""
    columns = _COLUMNS

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return each turn as a row of rounds."""
        is_baseline = np.array([method == BASELINE for method in table.text("method")])
        steps, tokens = table.number("decoding_steps"), table.number("new_tokens")
        wall_s = table.number("wall_s")
        for name, values in (("decoding_steps", steps), ("new_tokens", tokens), ("wall_s", wall_s)):
            table.leave_out(~(values > 0), f"{name}: is zero or negative")
        drafted = np.where(is_baseline, 0.0, table.optional_number("gamma_sum"))
        table.leave_out(~np.isfinite(drafted), "gamma_sum: tokens drafted are not counted")
        if defaults.device is None:
            table.warn(f"names no device; called '{UNSTATED_DEVICE}'", "device")
        with np.errstate(divide="ignore", invalid="ignore"):
            columns = {
                "k": drafted / steps,
                # The baseline may count its last step as emitting nothing.
                "acceptance_length": np.where(is_baseline, 1.0, tokens / steps),
                "tokens_per_s": tokens / wall_s,
            }
        return table.trace(
            {
                "device": defaults.device or UNSTATED_DEVICE,
                "model": defaults.model or "",
                "group": table.text("category"),
                "batch": 1,
                **columns,
            },
            header={"source": "Spec-Bench, a row a turn"},
        )
