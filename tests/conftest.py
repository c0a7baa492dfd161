"""Settings shared by all tests, and the last line of a run: how many tests were skipped, and why."""

from __future__ import annotations

import functools
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module

import hypothesis
import pytest
import typer.main

import specsim.config.document

# Examples are the same in every run, and a loaded machine fails no test by being slow.
hypothesis.settings.register_profile("specsim", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=300)
hypothesis.settings.load_profile("specsim")

_REASONS = pytest.StashKey[Counter[str]]()


def _cached_by_value(function: Callable[..., object]) -> Callable[..., object]:
    """Cache a function of tables, which cannot be hashed, by what its arguments pickle to."""
    known: dict[bytes, object] = {}

    def call(*given: object, **named: object) -> object:
        key = pickle.dumps((given, named))
        if key not in known:
            known[key] = function(*given, **named)
        return known[key]

    return call


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_built_twice() -> Iterator[None]:
    """Keep what a user's process builds once: commands of an application, a document, the fit of a trace."""
    kept = [(typer.main, "get_command", functools.cache), (specsim.config.document, "parse", functools.cache)]
    # Loaded where some test fits a trace; it would take others a second.
    if "calibrate" in sys.modules:
        kept.append((import_module("calibrate.calibration"), "fit_time", _cached_by_value))
    with pytest.MonkeyPatch.context() as patch:
        for module, name, cached in kept:
            patch.setattr(module, name, cached(getattr(module, name)))
        yield


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REASONS] = Counter()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        config.stash[_REASONS][reason.removeprefix("Skipped: ")] += 1


def pytest_unconfigure(config: pytest.Config) -> None:
    reasons = config.stash.get(_REASONS, Counter())
    why = "; ".join(f"{count}: {reason}" for reason, count in sorted(reasons.items()))
    print(f"skipped: {reasons.total()}" + (f" ({why})" if why else ""))
