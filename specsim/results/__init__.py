"""Results: columns, tables, metrics, intervals, verdict and the files of a run."""

from __future__ import annotations

from specsim.results.provenance import Provenance, installed_versions
from specsim.results.result import ResultTables, SimulationResult
from specsim.results.summary import Summary
from specsim.results.table import Labels

__all__ = ["Labels", "Provenance", "ResultTables", "SimulationResult", "Summary", "installed_versions"]
