"""Sensitivity: which of the keys varied moves a figure, over the whole space that the axes span.

``sobol``: the share of the figure's variance that each key explains alone (first order) and with all its
interactions (total); Saltelli et al. 2010, "Variance based sensitivity analysis of model output", and
Sobol' 2001. ``morris``: the mean absolute effect of one step of each key (mu*) and its spread (sigma),
for many keys at few runs; Morris 1991, Campolongo et al. 2007. Both by SALib, an extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from specsim.arrays import Floats
from specsim.errors import ConfigError, DomainError
from specsim.streams import Purpose, RandomStreams

NUM_LEVELS = 4
"""Levels of a Morris design, as in Morris 1991."""
NUM_RESAMPLES = 1000
"""Resamples behind the intervals of the indices."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one key does to a figure."""

    key: str
    main: float
    """Sobol': first-order index. Morris: mu*, in the figure's unit."""
    main_half_width: float
    """Of its 95 % interval."""
    other: float
    """Sobol': total index. Morris: sigma, in the figure's unit."""
    other_half_width: float | None
    """Of its 95 % interval; sigma has none."""


def sobol_fractions(num_samples: int, num_axes: int, streams: RandomStreams) -> Floats:
    """Saltelli's sample, [num_samples (num_axes + 2), num_axes].

    Raises
    ------
    ConfigError
        If the number of samples is not a power of two, which a Sobol' sequence needs to be balanced.
    """
    if num_samples < 2 or num_samples & (num_samples - 1):
        raise ConfigError(f"sobol needs a power of two as the number of samples, not {num_samples}")
    sample = _salib("sample.sobol").sample
    return np.asarray(
        sample(_problem(num_axes), num_samples, calc_second_order=False, seed=_generator(streams))
    )


def morris_fractions(num_samples: int, num_axes: int, streams: RandomStreams) -> Floats:
    """Trajectories of one step a key, [num_samples (num_axes + 1), num_axes]."""
    if num_samples < 2:
        raise ConfigError("morris needs at least 2 trajectories")
    sample = _salib("sample.morris").sample
    return np.asarray(
        sample(_problem(num_axes), num_samples, num_levels=NUM_LEVELS, seed=_generator(streams))
    )


def sobol_effects(
    values: Sequence[float | None], keys: Sequence[str], streams: RandomStreams
) -> list[Effect]:
    """First-order and total indices of each key, largest total first.

    Parameters
    ----------
    values
        The figure at each point of `sobol_fractions`.
    keys
        The axes.
    streams
        Of the intervals.

    Raises
    ------
    DomainError
        If a point has no figure: the indices need all of them.
    """
    figures = _complete(values)
    if figures.std() == 0.0:
        return [Effect(key, 0.0, 0.0, 0.0, 0.0) for key in keys]
    found = _salib("analyze.sobol").analyze(
        _problem(len(keys)),
        figures,
        calc_second_order=False,
        num_resamples=NUM_RESAMPLES,
        seed=_generator(streams),
    )
    rows = zip(
        keys, *(np.asarray(found[name]).tolist() for name in ("S1", "S1_conf", "ST", "ST_conf")), strict=True
    )
    return sorted((Effect(*row) for row in rows), key=lambda effect: -effect.other)


def morris_effects(
    fractions: Floats, values: Sequence[float | None], keys: Sequence[str], streams: RandomStreams
) -> list[Effect]:
    """Return mu* and sigma of each key, largest mu* first.

    Parameters
    ----------
    fractions
        The design, [points, axes].
    values
        The figure at each point.
    keys
        The axes.
    streams
        Of the intervals.

    Raises
    ------
    DomainError
        If a point has no figure: the effects need all of them.
    """
    found = _salib("analyze.morris").analyze(
        _problem(len(keys)),
        fractions,
        _complete(values),
        num_levels=NUM_LEVELS,
        num_resamples=NUM_RESAMPLES,
        seed=_generator(streams),
    )
    rows = zip(
        keys,
        *(np.asarray(found[name]).tolist() for name in ("mu_star", "mu_star_conf", "sigma")),
        strict=True,
    )
    effects = [Effect(key, mean, half_width, sigma, None) for key, mean, half_width, sigma in rows]
    return sorted(effects, key=lambda effect: -effect.main)


def _complete(values: Sequence[float | None]) -> Floats:
    figures = [value for value in values if value is not None]
    if len(figures) < len(values):
        lacking = len(values) - len(figures)
        raise DomainError(
            f"{lacking} of {len(values)} points have no figure; sensitivity needs all, so narrow the ranges"
        )
    return np.array(figures, np.float64)


def _problem(num_axes: int) -> dict[str, object]:
    names = [f"x{index}" for index in range(num_axes)]
    return {"num_vars": num_axes, "names": names, "bounds": [[0.0, 1.0]] * num_axes}


def _generator(streams: RandomStreams) -> np.random.Generator:
    return streams.generator(Purpose.SWEEP_DESIGN)


def _salib(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(f"SALib.{name}")
    except ImportError:
        raise ConfigError("designs sobol and morris need SALib: install specsim-llm[sensitivity]") from None
