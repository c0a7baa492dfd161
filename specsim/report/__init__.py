"""Reports: the summary of a run in print."""

from __future__ import annotations

from specsim.report.tables import print_summary, verdict_line

__all__ = ["print_summary", "verdict_line"]
