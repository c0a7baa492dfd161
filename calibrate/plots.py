"""Two pictures of a calibration: predicted against measured, and residuals over positions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrate.calibration import Calibration
from specsim.report.palette import GREY, look
from specsim.report.plots.fit import plot_predicted_against_measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_residuals(calibration: Calibration, axes: Axes) -> Axes:
    """Draw relative errors of held-out cells over positions, one colour a model.

    Parameters
    ----------
    calibration
        The fit.
    axes
        Where to draw; positions are logarithmic.
    """
    held_out = calibration.held_out
    cells = held_out.cells
    for number, index in enumerate(np.unique(cells.model)):
        rows = cells.model == index
        drawn = look(number)
        axes.scatter(
            cells.num_positions[rows],
            100 * held_out.relative[rows],
            s=14,
            color=drawn.color,
            marker=drawn.marker,
            alpha=0.7,
            linewidth=0,
            label=cells.models[int(index)].name,
        )
    axes.axhline(0.0, color=GREY, linewidth=1.0)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("positions of the step")
    axes.set_ylabel("predicted over measured, less one, %")
    axes.legend(fontsize=8)
    return axes


def save_plots(calibration: Calibration, path: Path) -> None:
    """Write both pictures of held-out cells side by side.

    Parameters
    ----------
    calibration
        The fit.
    path
        Picture to write; its ending says in which form.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import pandas as pd

    held_out = calibration.held_out
    names = np.array([one.name for one in held_out.cells.models])[held_out.cells.model]
    table = pd.DataFrame(
        {"measured": held_out.cells.gpu_s, "predicted": held_out.predicted_s, "group": names}
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 5.0), layout="constrained")
    plot_predicted_against_measured(table, left, error=calibration.threshold)
    plot_residuals(calibration, right)
    total = held_out.total
    figure.suptitle(f"{calibration.profile.name}: held out ({held_out.scheme}), error {total.error:.1%}")
    figure.savefig(path, dpi=120)
    plt.close(figure)
