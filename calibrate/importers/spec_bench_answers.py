"""Spec-Bench's answer files as its evaluation writes them: one question a line, counters of every turn.

Xia et al. (ACL Findings 2024). Draft lengths are not in these files. Those of a draft model under
transformers' schedule can be told from the acceptance (start at 5, +2 after a round that kept all,
else −1, at least 1, anew each turn); other methods are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from calibrate.importer import Defaults, trace_importers
from calibrate.importers.file_start import start_of
from calibrate.importers.json_file import json_lines
from calibrate.importers.spec_bench import UNSTATED_DEVICE
from calibrate.importers.tabular import SourceTable, refuse
from calibrate.measurements import Trace
from specsim.config.base import Spec
from specsim.errors import ConfigError

_FIRST_LENGTH, _RISE, _FALL, _LEAST = 5, 2, 1, 1


@trace_importers.register
class SpecBenchAnswers(Spec):
    """Reads ``model_answer/*.jsonl`` of the plain baseline and of a draft model (``sps``)."""

    kind: Literal["spec_bench_answers"] = "spec_bench_answers"
    """Kind of importer."""

    def recognises(self, path: Path) -> bool:
        """Tell whether the first line counts steps and times of turns."""
        first = start_of(path).split(b"\n", 1)[0]
        return first.startswith(b"{") and all(
            key in first for key in (b'"decoding_steps"', b'"wall_time"', b'"question_id"')
        )

    def read(self, path: Path, *, defaults: Defaults) -> Trace:
        """Read a file.

        Raises
        ------
        ConfigError
            Where a line is not such a record, or draft lengths can neither be read nor told.
        """
        import pandas as pd

        turns = list(_turns(path))
        if not turns:
            raise refuse(path, "holds no turns")
        table = SourceTable(
            path, pd.DataFrame(turns), np.array([turn["line"] for turn in turns], dtype=np.int64)
        )
        if defaults.device is None:
            table.warn(f"names no device; called '{UNSTATED_DEVICE}'", "device")
        steps, tokens, wall_s = (table.number(name) for name in ("steps", "tokens", "wall_s"))
        for name, values in (("decoding_steps", steps), ("new_tokens", tokens), ("wall_time", wall_s)):
            table.leave_out(~(values > 0), f"{name}: is zero or negative")
        with np.errstate(divide="ignore", invalid="ignore"):
            length, rate = table.number("emitted"), tokens / wall_s
        return table.trace(
            {
                "device": defaults.device or UNSTATED_DEVICE,
                "model": defaults.model or "",
                "group": table.text("category"),
                "batch": 1,
                "k": table.number("drafted"),
                "acceptance_length": length,
                "tokens_per_s": rate,
            },
            header={"source": "Spec-Bench, answers"},
        )


def heuristic_lengths(emitted: list[int]) -> list[int] | None:
    """Draft lengths of transformers' schedule along a turn, or None where the schedule is refuted.

    Parameters
    ----------
    emitted
        Tokens emitted each round, bonus token included.

    Examples
    --------
    >>> heuristic_lengths([6, 3, 7, 1])
    [5, 7, 6, 8]
    >>> heuristic_lengths([6, 9]) is None
    True
    """
    length, lengths = _FIRST_LENGTH, []
    for count in emitted:
        if count - 1 > length:
            return None
        lengths.append(length)
        length = length + _RISE if count - 1 == length else max(length - _FALL, _LEAST)
    return lengths


def _turns(path: Path) -> Iterator[dict[str, object]]:
    for number, record in json_lines(path):
        try:
            yield from _turns_of(path, number, record)
        except ConfigError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise refuse(path, f"is not an answer: {type(error).__name__} {error}", row=number) from None


def _turns_of(path: Path, number: int, record: Mapping[str, object]) -> Iterator[dict[str, object]]:
    model, category = str(record["model_id"]), str(record.get("category", ""))
    for choice in record["choices"]:  # type: ignore[attr-defined]
        remaining = [int(count) for count in choice.get("accept_lengths", [])]
        for turn, steps in enumerate(choice["decoding_steps"]):
            emitted, remaining = remaining[:steps], remaining[steps:]
            tokens = int(choice["new_tokens"][turn])
            is_plain = "vanilla" in model or all(count == 1 for count in emitted)
            drafted = 0.0
            if not is_plain:
                lengths = heuristic_lengths(emitted) if "sps" in model else None
                if not lengths:
                    raise refuse(path, f"draft lengths of '{model}' are not in the file", row=number)
                drafted = sum(lengths) / len(lengths)
            yield {
                "line": number,
                "category": category,
                "steps": int(steps),
                "tokens": tokens,
                "wall_s": float(choice["wall_time"][turn]),
                "drafted": drafted,
                "emitted": 1.0 if is_plain else sum(emitted) / len(emitted),
            }
