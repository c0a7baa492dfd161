"""Plots: each takes a table and an Axes, draws, and returns the Axes; none computes anything."""

from __future__ import annotations

from specsim.report.plots.acceptance import plot_acceptance_by_position
from specsim.report.plots.break_even import plot_break_even
from specsim.report.plots.curves import plot_against_batch, plot_pareto
from specsim.report.plots.effects import plot_effects
from specsim.report.plots.fit import plot_predicted_against_measured
from specsim.report.plots.gantt import plot_request_gantt
from specsim.report.plots.maps import plot_map
from specsim.report.plots.parts import plot_parts
from specsim.report.plots.roofline import Ceiling, plot_roofline
from specsim.report.plots.spread import plot_spread
from specsim.report.plots.timeline import plot_over_time
from specsim.report.plots.tornado import plot_tornado

__all__ = [
    "Ceiling",
    "plot_acceptance_by_position",
    "plot_against_batch",
    "plot_break_even",
    "plot_effects",
    "plot_map",
    "plot_over_time",
    "plot_pareto",
    "plot_parts",
    "plot_predicted_against_measured",
    "plot_request_gantt",
    "plot_roofline",
    "plot_spread",
    "plot_tornado",
]
