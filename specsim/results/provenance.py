"""Where a result comes from: versions, profile and trace, and what limits its reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Literal, TypeAlias

ProfileKind: TypeAlias = Literal["datasheet", "fitted", "unit"]
"""From a vendor's figures, from measured runs, or none: costs that only count target steps."""

_RECORDED_DISTRIBUTIONS = ("numpy", "scipy", "simpy")


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that is needed beside scenario and seed to run again, and to know how far to trust the result."""

    specsim_version: str
    profile: str
    """Name of the accelerator profile of the target."""
    profile_kind: ProfileKind
    """What the step times rest on."""
    profile_sha256: str
    """Hash of the profile as used, overrides included."""
    held_out_error: float | None = None
    """Mean absolute relative error of step times on measurements that they were not fitted to."""
    held_out_power_error: float | None = None
    """The same of fitted watts; None where they are not fitted."""
    trace: str | None = None
    """Recorded trace that the acceptance comes from, in words."""
    stand_in: str | None = None
    """The pair of models that the trace was recorded on, where it is not the scenario's own pair."""
    acceptance_is_assumed: bool = False
    """Acceptance follows rates that the scenario states, not p and q of models."""
    approximate: bool = False
    """Replay outside the conditions under which it is exact."""
    lossy: bool = False
    """The verification rule changes the distribution of the output."""
    total_variation: float | None = None
    """Of a lossy rule's next token from the target's law, measured, mean over places; None: not measured."""
    power_is_estimated: bool = False
    """The joules rest on a guess, in part or altogether."""
    guessed_watts: tuple[str, ...] = ()
    """Figures of the devices' power that are guesses, such as ``compute_w``."""
    device_energy_is_estimated: bool = False
    """The floor of the chips' energy rests on a guessed figure."""
    price: str | None = None
    """Prices and where they come from, in words; None where no price is known."""
    price_is_estimated: bool = False
    """The cost of a token rests on a guessed price, or pays for guessed joules."""
    notes: tuple[str, ...] = ()
    """Further limitations, one sentence each."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of the libraries that the numbers depend on."""


def installed_versions() -> dict[str, str]:
    """Versions of the libraries that the numbers depend on, by distribution.

    Examples
    --------
    >>> sorted(installed_versions())
    ['numpy', 'scipy', 'simpy']
    """
    return {name: version(name) for name in _RECORDED_DISTRIBUTIONS}
