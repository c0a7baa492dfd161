"""The scenario: the whole input of a run, and where it is read from."""

from specsim.scenario.load import REFERENCES, load_scenario, scenario_of
from specsim.scenario.scenario import RequestClass, Scenario

__all__ = ["REFERENCES", "RequestClass", "Scenario", "load_scenario", "scenario_of"]
