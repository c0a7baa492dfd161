"""A run as the report needs it: its summary and tables, from memory or from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from specsim.errors import ConfigError
from specsim.results.reader import first_fault, read_summary, read_table
from specsim.results.result import SimulationResult
from specsim.results.summary import Summary
from specsim.results.writer import PROMPTS_FILE, REQUESTS_FILE, STEPS_FILE
from specsim.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """One run: its summary, requests, prompts and steps."""

    summary: Summary
    requests: pd.DataFrame
    """One row a request and arm."""
    prompts: pd.DataFrame
    """One row a prompt and arm."""
    steps: pd.DataFrame
    """One row a prefill pass or round of the batch."""

    @cached_property
    def scenario(self) -> Scenario:
        """What was simulated.

        Raises
        ------
        ConfigError
            If it is not a scenario of this version.
        """
        try:
            return Scenario.model_validate(self.summary["scenario"])
        except ValidationError as error:
            raise ConfigError(
                f"the run's scenario is none of this version: {first_fault(error)}; run it again"
            ) from error

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms, the baseline first."""
        return ("baseline",) if self.summary["speculation"] is None else ("baseline", "speculation")


def run_of(result: SimulationResult) -> Run:
    """Return the run of a result in memory."""
    return Run(result.summary(), result.requests, result.prompts, result.steps)


def read_run(folder: Path) -> Run:
    """Read a run's folder, as `specsim run -o` writes it.

    Raises
    ------
    ConfigError
        If the folder is not that of a run, or its files are damaged, of another version or of several runs.
    """
    summary = read_summary(folder)
    return Run(
        summary,
        read_table(folder, REQUESTS_FILE, summary),
        read_table(folder, PROMPTS_FILE, summary),
        read_table(folder, STEPS_FILE, summary),
    )
