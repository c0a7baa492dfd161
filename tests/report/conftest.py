"""One small run and its report, made once for all tests of this folder."""

from __future__ import annotations

import pytest

from specsim.engine.simulate import simulate
from specsim.report.run_files import Run, run_of
from specsim.report.run_report import run_report
from specsim.scenario import Scenario, load_scenario

_SETTINGS = (
    "workload.num_prompts=6",
    "workload.max_concurrency=2",
    "workload.output_tokens=48",
    "show_estimated_energy=true",
)


@pytest.fixture(scope="session")
def small_scenario() -> Scenario:
    return load_scenario("laptop", overrides=_SETTINGS)


@pytest.fixture(scope="session")
def small_run(small_scenario: Scenario) -> Run:
    return run_of(simulate(small_scenario))


@pytest.fixture(scope="session")
def small_report(small_run: Run) -> str:
    return run_report(small_run)
