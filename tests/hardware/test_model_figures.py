"""Figures of the shipped models change with their sources only."""

from __future__ import annotations

from pytest_regressions.data_regression import DataRegressionFixture

from specsim.config import find, names, read
from specsim.hardware import load_model
from specsim.hardware.provenance import figures


def _recorded(name: str) -> dict[str, object]:
    given = read(find("models", name)).data
    return {"source": load_model(name).source, **{path: f"{value:.15g}" for path, value in figures(given)}}


def test_figures_of_models_change_with_their_sources_only(data_regression: DataRegressionFixture) -> None:
    """A figure that changes fails until it is recorded anew beside its source (``--force-regen``)."""
    data_regression.check({name: _recorded(name) for name in names("models")}, basename="figures")
