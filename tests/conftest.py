"""Settings shared by all tests, and the last line of a run: how many tests were skipped, and why."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest

# Examples are the same in every run, and a loaded machine fails no test by being slow.
hypothesis.settings.register_profile("specsim", deadline=None, derandomize=True)
hypothesis.settings.load_profile("specsim")

_REASONS = pytest.StashKey[Counter[str]]()


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
