"""What a worker does: simulate a group of scenarios, and keep each outcome as soon as it is known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from specsim.engine.simulate import simulate
from specsim.errors import SpecsimError
from specsim.results.writer import write
from specsim.scenario import Scenario
from specsim.sweep.outcome import Outcome, figures
from specsim.sweep.store import Store


def simulate_group(
    scenarios: Sequence[tuple[str, Scenario]], store: Path | None, runs: Path | None
) -> list[Outcome]:
    """Simulate scenarios one after the other, in a worker process.

    Parameters
    ----------
    scenarios
        Their keys, and themselves.
    store
        Folder that each outcome is written to at once, so that a later crash does not lose it; None: none.
    runs
        Folder that each whole run is written into, under its key; None: none.
    """
    outcomes = []
    for key, scenario in scenarios:
        outcome = _simulated(key, scenario, runs)
        if store is not None:
            Store(store).put(outcome)
        outcomes.append(outcome)
    return outcomes


def _simulated(key: str, scenario: Scenario, runs: Path | None) -> Outcome:
    start_s = time.perf_counter()
    try:
        result = simulate(scenario)
        summary = result.summary()
        if result.key != key:
            message = "the worker's version of specsim or of a trace is not that of the sweep"
            return Outcome.failed(key, message, is_lasting=False)
        if runs is not None:
            write(result, runs / key)
    except SpecsimError as error:
        return Outcome.failed(key, str(error), is_lasting=True, time_s=time.perf_counter() - start_s)
    except Exception as error:
        # One bad point must not end a long sweep; the row names the bug.
        message = f"internal error: {type(error).__name__}: {error}"
        return Outcome.failed(key, message, is_lasting=False, time_s=time.perf_counter() - start_s)
    time_s = time.perf_counter() - start_s
    return Outcome(key, "", True, time_s, dict(figures(summary)), result.caveats)
