"""Settings shared by all tests, and the last line of a run: how many tests were skipped, and why."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator

import hypothesis
import pytest
import typer.main

import specsim.config.document

# Examples are the same in every run, and a loaded machine fails no test by being slow.
hypothesis.settings.register_profile("specsim", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=300)
hypothesis.settings.load_profile("specsim")

_REASONS = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_built_twice() -> Iterator[None]:
    """Keep what a process of a user builds once: the commands of an application, 0.1 s, and a document."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((typer.main, "get_command"), (specsim.config.document, "parse")):
            patch.setattr(module, name, functools.lru_cache(maxsize=256)(getattr(module, name)))
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
