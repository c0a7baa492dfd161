"""A run as trace events, the JSON that chrome://tracing and Perfetto open: devices, requests and counters.

Format: "Trace Event Format" (Chromium project, 2016). Each arm is a process, each model and the requests
are its threads; times are microseconds of simulated time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from pydantic import JsonValue

from specsim.report.run_files import Run

_MICROSECONDS = 1e6
_TARGET, _DRAFT = 1, 2
_COUNTERS = ("num_sequences", "context_tokens")
_DETAILS = ("num_sequences", "num_positions", "num_drafted", "num_accepted", "num_emitted")


def trace_json(run: Run) -> str:
    """Return a run as the text of a trace-event file.

    Parameters
    ----------
    run
        Its summary and tables.
    """
    lines = ",\n".join(json.dumps(event, allow_nan=False) for event in trace_events(run))
    return f'{{"displayTimeUnit": "ms", "traceEvents": [\n{lines}\n]}}\n'


def trace_events(run: Run) -> Iterator[dict[str, JsonValue]]:
    """Yield the events of a run: names, steps of both models, counters, requests.

    Parameters
    ----------
    run
        Its summary and tables.
    """
    for process, arm in enumerate(run.arms, start=1):
        yield _name("process_name", process, 0, arm)
        yield _name("thread_name", process, _TARGET, "target")
        yield _name("thread_name", process, _DRAFT, "draft")
        yield from _steps(run, arm, process)
        yield from _requests(run, arm, process)


def _steps(run: Run, arm: str, process: int) -> Iterator[dict[str, JsonValue]]:
    steps = run.steps[run.steps["arm"] == arm]
    times = steps[["start_s", "draft_s", "target_s"]].to_numpy(dtype=np.float64) * _MICROSECONDS
    details = steps[[*_DETAILS, "context_tokens"]].to_numpy(dtype=np.int64).tolist()
    for phase, (start, draft, target), counts in zip(steps["phase"], times.tolist(), details, strict=True):
        args: dict[str, JsonValue] = dict(zip(_DETAILS, counts, strict=False))
        is_prefill = phase == "prefill"
        # A prefill pass runs the target first, a round the draft.
        draft_start, target_start = (start + target, start) if is_prefill else (start, start + draft)
        if draft > 0:
            yield _step("prefill" if is_prefill else "draft", process, _DRAFT, draft_start, draft, args)
        if target > 0:
            yield _step("prefill" if is_prefill else "verify", process, _TARGET, target_start, target, args)
        if not is_prefill:
            for name in _COUNTERS:
                value = counts[-1] if name == "context_tokens" else args[name]
                yield {"ph": "C", "name": name, "pid": process, "ts": start, "args": {"value": value}}


def _requests(run: Run, arm: str, process: int) -> Iterator[dict[str, JsonValue]]:
    requests = run.requests[run.requests["arm"] == arm]
    times = requests[["arrival_s", "first_token_s", "finish_s"]].to_numpy(dtype=np.float64) * _MICROSECONDS
    numbers = requests["request"].to_numpy(dtype=np.int64).tolist()
    for number, (arrival, first_token, finish) in zip(numbers, times.tolist(), strict=True):
        for name, start, end in (("to first token", arrival, first_token), ("decode", first_token, finish)):
            common: dict[str, JsonValue] = {"cat": "request", "name": name, "id": number, "pid": process}
            yield {**common, "ph": "b", "ts": start, "tid": 0}
            yield {**common, "ph": "e", "ts": end, "tid": 0}


def _step(
    name: str, process: int, thread: int, start: float, duration: float, args: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    place: dict[str, JsonValue] = {"pid": process, "tid": thread, "ts": start, "dur": duration}
    return {"ph": "X", "cat": "step", "name": name, **place, "args": args}


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, JsonValue]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
