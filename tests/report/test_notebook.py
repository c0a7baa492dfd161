"""What a result shows in a notebook and gives to a script."""

from __future__ import annotations

import pytest

from specsim.engine.simulate import simulate
from specsim.results import SimulationResult
from specsim.scenario import load_scenario


@pytest.fixture(scope="module")
def result() -> SimulationResult:
    return simulate(load_scenario("two_token_example", overrides=("workload.num_prompts=4", "name=<b>")))


def test_plot_is_one_figure_of_every_plot(result: SimulationResult) -> None:
    figure = result.plot()
    titles = {axes.get_title() for axes in figure.axes}
    assert {"Where time goes", "Acceptance by position", "The first request on the clock"} <= titles


def test_notebook_shows_the_verdict_and_both_arms(result: SimulationResult) -> None:
    shown = result._repr_html_()
    assert result.summary()["verdict"]["text"].replace("<", "&lt;") in shown
    assert "<th>speculation</th>" in shown
    assert "TPOT mean, ms" in shown


def test_tables_come_by_name(result: SimulationResult) -> None:
    tables = result.to_pandas()
    assert list(tables) == ["requests", "prompts", "steps", "rounds"]
    assert tables["rounds"]["num_emitted"].sum() + 2 * 4 == tables["requests"]["num_output_tokens"].sum()
