"""Draw the pictures of README and docs anew: ``python docs/make_figures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd

from specsim import load_scenario, simulate
from specsim.report.plots import plot_against_batch

IMAGES = Path(__file__).parent / "images"
CONCURRENCY = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LOOKAHEADS = (1, 2, 4, 6)


def speedup_against_concurrency() -> None:
    """Draw the speed-up per user of ``chat_8b`` against its concurrent users, a band for each lookahead."""
    points = pd.DataFrame([_point(users, lookahead) for users in CONCURRENCY for lookahead in LOOKAHEADS])
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    plot_against_batch(points, axes, low="speedup.tpot.ci_low", high="speedup.tpot.ci_high")
    axes.set_title("Llama 3.1 8B with a 1B draft on an H100, 70 % acceptance", fontsize=10)
    figure.savefig(IMAGES / "speedup.png", dpi=110)


def _point(users: int, lookahead: int) -> dict[str, float]:
    overrides = [
        f"workload.max_concurrency={users}",
        f"workload.num_prompts={max(64, 2 * users)}",
        f"speculative_config.num_speculative_tokens={lookahead}",
    ]
    speedup = simulate(load_scenario("chat_8b", overrides=overrides)).summary()["speedup"]
    assert speedup is not None
    tpot = speedup["tpot"]
    return {
        "workload.max_concurrency": users,
        "speculative_config.num_speculative_tokens": lookahead,
        "speedup.tpot": tpot["mean"] or float("nan"),
        "speedup.tpot.ci_low": tpot["ci_low"] or float("nan"),
        "speedup.tpot.ci_high": tpot["ci_high"] or float("nan"),
    }


if __name__ == "__main__":
    speedup_against_concurrency()
