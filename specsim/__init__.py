"""Does speculative decoding pay on this device, with this target and this draft: simulate it.

``specsim.simulate("my.yaml")`` runs a scenario; its ``summary()`` is the verdict with all metrics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specsim.engine.simulate import simulate
    from specsim.results.result import SimulationResult
    from specsim.scenario import Scenario, load_scenario

__all__ = ["Scenario", "SimulationResult", "__version__", "load_scenario", "simulate"]

__version__ = "0.1.0"

# Loaded at first use: `import specsim` and `specsim --help` need none of them.
_HOMES = {
    "Scenario": "specsim.scenario",
    "SimulationResult": "specsim.results.result",
    "load_scenario": "specsim.scenario",
    "simulate": "specsim.engine.simulate",
}


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'specsim' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
