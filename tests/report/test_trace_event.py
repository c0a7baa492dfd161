"""Trace events of a run: every step once, in its time, on its thread."""

from __future__ import annotations

import itertools
import json

import pytest

from specsim.report.run_files import Run
from specsim.report.trace_event import trace_json


def _events(run: Run) -> list[dict[str, object]]:
    found = json.loads(trace_json(run))
    events = found["traceEvents"]
    assert isinstance(events, list)
    return events


def test_durations_add_up_to_the_time_of_the_steps(small_run: Run) -> None:
    steps = [event for event in _events(small_run) if event["ph"] == "X"]
    spent = small_run.steps["draft_s"].sum() + small_run.steps["target_s"].sum()
    assert sum(float(str(event["dur"])) for event in steps) == pytest.approx(spent * 1e6)


def test_steps_of_a_thread_do_not_overlap(small_run: Run) -> None:
    threads: dict[tuple[object, object], list[tuple[float, float]]] = {}
    for event in _events(small_run):
        if event["ph"] == "X":
            start = float(str(event["ts"]))
            span = (start, start + float(str(event["dur"])))
            threads.setdefault((event["pid"], event["tid"]), []).append(span)
    assert len(threads) == 3
    for spans in threads.values():
        spans.sort()
        assert all(later[0] >= earlier[1] - 1e-3 for earlier, later in itertools.pairwise(spans))


def test_each_request_begins_and_ends(small_run: Run) -> None:
    events = _events(small_run)
    for phase in ("b", "e"):
        assert len([event for event in events if event["ph"] == phase]) == 2 * len(small_run.requests)


def test_arms_are_processes(small_run: Run) -> None:
    names = [event["args"] for event in _events(small_run) if event["name"] == "process_name"]
    assert names == [{"name": "baseline"}, {"name": "speculation"}]
