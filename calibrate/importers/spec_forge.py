"""SpecForge's benchmark of EAGLE-3 drafts: output rate and acceptance length by depth of the draft.

sgl-project/SpecForge, results of SGLang serving. A row becomes one round row: K is the depth of the chain.
Trees (``topk`` above 1) verify more positions than K + 1 and are left out and counted.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.by_columns import CsvImporter
from calibrate.importers.model_names import models_in
from calibrate.importers.tabular import SourceTable
from calibrate.measurements import Trace
from specsim.hardware import load_model

_COLUMNS = ("model", "bench", "batch_size", "spec_steps", "topk", "output_tok_s", "accept_length")
_DEVICE = "H200"


@trace_importers.register
class SpecForge(CsvImporter):
    """Reads ``model, bench, batch_size, spec_steps, topk, output_tok_s, accept_length``."""

    kind: Literal["spec_forge"] = "spec_forge"
    """Kind of importer."""
    columns = _COLUMNS

    def trace_of(self, table: SourceTable, defaults: Defaults) -> Trace:
        """Return rows of rounds; with ``defaults.model`` those of that model alone."""
        table.leave_out(table.number("topk") > 1, "topk: a tree of drafts, not a chain")
        if defaults.device is None:
            table.warn(f"names no device; taken for {_DEVICE}, the title of its dashboard", "device")
        names = table.text("model")
        models = models_in(table, "model")
        if defaults.model is not None:
            wanted = load_model(defaults.model).name
            others = [name in models and models[name].name != wanted for name in names]
            table.leave_out(np.array(others), f"model: is not {defaults.model}")
        return table.trace(
            {
                "device": defaults.device or _DEVICE,
                "model": names,
                "group": table.text("bench"),
                "k": table.number("spec_steps"),
                "batch": table.number("batch_size"),
                "acceptance_length": table.number("accept_length"),
                "tokens_per_s": table.number("output_tok_s"),
            },
            header={"source": "SpecForge, SGLang serving"},
            models=models,
        )
