"""Plots of what a sweep's analysis found: break-even, tornado, Sobol' and Morris effects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specsim.report.figures import Plot
from specsim.report.numbers import figure
from specsim.report.plots import plot_break_even, plot_effects, plot_tornado
from specsim.report.plots.labels import label, sentence, words
from specsim.report.plots.values import short_value
from specsim.sweep.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

_MEASURES = {
    "sobol": ("alone", "with its interactions", "share of the variance"),
    "morris": ("mean effect of a step, µ*", "spread of it, σ", ""),
}
"""Per design: names of both measures, and the label of the axis; none: the metric's."""
_LOG_FROM = 10.0
"""Places that differ by this factor are drawn on a logarithmic axis."""
_MOST_SAID = 4
"""Crossings that are said in words."""


def analysis_plots(sweep: SweepTable) -> Iterator[Plot]:
    """Yield a plot of what the analysis found, if it is of more than one axis."""
    yield from _tornado(sweep)
    yield from _effects(sweep)
    if len(sweep.axes) in (2, 3):
        yield from _break_even(sweep)


def found_rows(sweep: SweepTable, name: str) -> pd.DataFrame | None:
    """Return a part of the analysis as a table, None where there is none."""
    import pandas as pd

    analysis = sweep.about.get("analysis")
    found = analysis.get(name) if isinstance(analysis, dict) else None
    return pd.DataFrame(found) if isinstance(found, list) and found else None


def found_crossings(sweep: SweepTable) -> pd.DataFrame | None:
    """Return the crossings of a search for break-even; an end beyond the range is the range's."""
    found = found_rows(sweep, "break_even")
    if found is None:
        return None
    axis = sweep.frame()[sweep.axes[0]]
    return found.assign(low=found["low"].fillna(axis.min()), high=found["high"].fillna(axis.max()))


def place_in_words(sweep: SweepTable) -> str:
    """Return where the metric crosses 1 along the first axis, as a sentence."""
    found = found_rows(sweep, "break_even")
    if found is None or len(found) > _MOST_SAID:
        return ""
    axis = words(sweep.axes[0])
    said = [
        f"{short_value(row.place)} [{_end(row.low)}, {_end(row.high)}], above 1 {row.gains} it"
        for row in found.itertuples()
    ]
    return f" Break-even at {axis} {'; '.join(said)}."


def _end(place: object) -> str:
    return short_value(place) if isinstance(place, float) and math.isfinite(place) else "beyond"


def _break_even(sweep: SweepTable) -> Iterator[Plot]:
    """Yield the place of break-even over the other axes."""
    import pandas as pd

    found = found_rows(sweep, "break_even")
    if found is None:
        return
    others = pd.DataFrame(list(found["others"]), index=found.index)
    table = pd.concat([found.drop(columns="others"), others], axis=1)
    along, metric = sweep.axes[0], str(sweep.about.get("metric"))
    # The axis with more values lies across, the other makes the groups.
    across, *series = sorted(sweep.axes[1:], key=lambda axis: -others[axis].nunique())
    places = table["place"].astype(float)
    spans = [table[end].astype(float) for end in ("low", "high")]
    table = table.assign(place=places, low=spans[0], high=spans[1])
    lines = len(set(zip(*(sweep.columns[axis] for axis in sweep.axes[1:]), strict=True)))
    without = lines - len(others.drop_duplicates())
    yield Plot(
        "break-even",
        f"Break-even of {words(metric)}",
        f"At {words(along)} {short_value(places.min())} to {short_value(places.max())}; it pays on the side"
        f" that a mark points to.{f' Nowhere in {without} of {lines} lines.' if without else ''}",
        lambda axes: plot_break_even(
            table,
            axes,
            along=along,
            across=across,
            series=series[0] if series else None,
            is_log=0 < _LOG_FROM * places.min() < places.max(),
        ),
        height_in=3.4,
    )


def _tornado(sweep: SweepTable) -> Iterator[Plot]:
    """Yield the tornado where the sweep is one and its middle is known."""
    table = found_rows(sweep, "tornado")
    analysis = sweep.about.get("analysis")
    center = analysis.get("at_scenario") if isinstance(analysis, dict) else None
    if table is None or not isinstance(center, (int, float)):
        return
    ends = zip(table["key"], table["low_label"], table["high_label"], strict=True)
    named = [f"{words(str(key))}\n{short_value(low)} … {short_value(high)}" for key, low, high in ends]
    metric = str(sweep.about.get("metric"))
    most, turning = table.iloc[0], [words(key) for key in table["key"][table["crosses_one"]]]
    yield Plot(
        "tornado",
        f"What moves {words(metric)}",
        f"{figure(center)} as the scenario is; {words(most['key'])} moves it most,"
        f" from {figure(most['at_low'])} to {figure(most['at_high'])}."
        + (f" Alone across 1: {', '.join(turning)}." if turning else " None alone takes it across 1."),
        lambda axes: plot_tornado(table.assign(parameter=named), axes, value=metric, center=float(center)),
        height_in=1.4 + 0.5 * len(table),
    )


def _effects(sweep: SweepTable) -> Iterator[Plot]:
    metric = str(sweep.about.get("metric"))
    for design, (main, other, quantity) in _MEASURES.items():
        table = found_rows(sweep, design)
        if table is None:
            continue
        table = table.assign(
            parameter=[words(key) for key in table["key"]],
            other_half_width=table["other_half_width"].astype(float),
        )
        most = table.iloc[0]
        share = (
            f"{100 * most['other']:.0f} % of the variance"
            if design == "sobol"
            else f"{figure(most['main'], digits=2)} a step"
        )
        yield Plot(
            design,
            f"What moves {words(metric)}",
            f"{sentence(words(most['key']))} most: {share}; {words(table.iloc[-1]['key'])} least.",
            lambda axes, table=table, main=main, other=other, quantity=quantity: plot_effects(  # type: ignore[misc]
                table, axes, main=main, other=other, quantity=quantity or label(metric)
            ),
            height_in=1.6 + 0.45 * len(table),
        )
