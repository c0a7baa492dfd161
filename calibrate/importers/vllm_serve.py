"""``vllm bench serve --save-result``: inter-token latencies give the step, with speculation the round.

The batch is the mean number of sequences decoding, Σ of all inter-token latencies over the duration
(Little's law). A gap between chunks is a step, so the median gap is the time of one: of a decode step
without speculation, of a round with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.file_start import has_keys
from calibrate.importers.json_file import number_at, numbers_at, read_json_object
from calibrate.importers.model_names import known_models
from calibrate.importers.tabular import SourceTable, refuse
from calibrate.measurements import Trace
from specsim.arrays import Floats
from specsim.config.base import Spec

_US_PER_S = 1e6


@trace_importers.register
class VllmServe(Spec):
    """Reads one benchmark of a server; ``--save-detailed`` gives the latencies that it needs."""

    kind: Literal["vllm_serve"] = "vllm_serve"
    """Kind of importer."""

    def recognises(self, path: Path) -> bool:
        """Tell by its keys."""
        return has_keys(path, "duration", "completed", "request_throughput")

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file: one step row, and one round row where tokens were drafted.

        Raises
        ------
        ConfigError
            Where a key is missing or holds no time, or nobody said which device it ran on.
        """
        import pandas as pd

        record = read_json_object(path)
        if defaults.device is None:
            raise refuse(path, "names no device; state it (--device)")
        table = SourceTable(path, pd.DataFrame([{}]), np.array([1], dtype=np.int64))
        gaps_s = _gaps(path, record, table)
        median_s = float(np.median(gaps_s))
        batch = max(round(float(gaps_s.sum()) / number_at(path, record, "duration")), 1)
        table.warn(f"the batch is the mean number of sequences decoding, {batch}", "duration")
        if record.get("failed"):
            table.warn(f"{record['failed']} requests failed and are not in the figures", "failed")
        name = defaults.model or str(record.get("model_id", ""))
        models = {} if defaults.model is not None else known_models([name])
        shared = {"device": defaults.device, "model": name, "batch": batch}
        if record.get("spec_decode_num_drafts"):
            drafts = number_at(path, record, "spec_decode_num_drafts")
            length = number_at(path, record, "spec_decode_acceptance_length")
            columns = {
                **shared,
                "k": number_at(path, record, "spec_decode_num_draft_tokens") / drafts,
                "acceptance_length": length,
                "tokens_per_s": batch * length / median_s,
            }
        else:
            context = numbers_at(path, record, "input_lens").mean()
            context += numbers_at(path, record, "output_lens").mean() / 2
            columns = {
                **shared,
                "positions": batch,
                "ctx": round(float(context)),
                "phase": "decode",
                "t_wall_us": _US_PER_S * median_s,
                "dtype": defaults.dtype or "bfloat16",
                "tp": defaults.tensor_parallel_size or 1,
            }
        return table.trace(columns, header={"source": "vllm bench serve"}, models=models)


def _gaps(path: Path, record: Mapping[str, object], table: SourceTable) -> Floats:
    """All inter-token latencies, s; those that are no positive number are counted and left out."""
    lists = record.get("itls")
    if not isinstance(lists, list):
        raise refuse(path, "missing; run with --save-detailed", column="itls")
    try:
        gaps_s: Floats = np.array([float(gap) for gaps in lists for gap in gaps])
    except (TypeError, ValueError, OverflowError):
        raise refuse(path, "is not a list of lists of seconds", column="itls") from None
    is_good = np.isfinite(gaps_s) & (gaps_s > 0)
    if not is_good.any():
        raise refuse(path, "holds no positive time", column="itls")
    if not is_good.all():
        table.warn(f"{int((~is_good).sum())} of {len(gaps_s)} latencies are no positive number", "itls")
    if np.median(gaps_s[is_good]) > 60.0:
        raise refuse(path, "median above a minute; are they seconds, not ms?", column="itls")
    good_s: Floats = gaps_s[is_good]
    return good_s
