"""What both arms cost by the hour: prices of the scenario, else those of the profiles, with their source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specsim.engine.deploy import Deployed
from specsim.hardware.provenance import is_guess
from specsim.results.tariff import Tariff
from specsim.scenario import Scenario
from specsim.scenario.parts import Cost


@dataclass(frozen=True, slots=True)
class Rent:
    """Price of all devices that one model has to itself."""

    usd_per_hour: float
    """US dollars an hour; NaN where it is not known."""
    source: str
    """Price and where it comes from, in words; empty where it is not known."""
    is_estimated: bool = False
    """The price is a guess."""


def rents(scenario: Scenario, target: Deployed, draft: Deployed | None) -> tuple[Rent, ...]:
    """Return the rent of the target's devices, and of the draft's where it has its own.

    Examples
    --------
    >>> from specsim.engine.prepare import prepare
    >>> from specsim.scenario import load_scenario
    >>> prepared = prepare(load_scenario("chat_8b", overrides=["cost.usd_per_hour=2.5"]))
    >>> rents(prepared.scenario, prepared.target, prepared.draft)[0].source
    '2.5 USD/h (scenario)'
    """
    cost = scenario.cost or Cost()
    found = [_rent(target, cost.usd_per_hour)]
    if draft is not None and draft.has_own_devices:
        found.append(_rent(draft, cost.draft_usd_per_hour))
    return tuple(found)


def tariffs(scenario: Scenario, found: Sequence[Rent]) -> dict[str, Tariff]:
    """Return what each arm costs; the baseline does without a draft's own devices.

    Parameters
    ----------
    scenario
        For the price of electricity.
    found
        Of `rents`.
    """
    usd_per_kwh = (scenario.cost and scenario.cost.usd_per_kwh) or 0.0
    return {
        "baseline": Tariff(found[0].usd_per_hour, usd_per_kwh),
        "speculation": Tariff(sum(rent.usd_per_hour for rent in found), usd_per_kwh),
    }


def described(scenario: Scenario, found: Sequence[Rent]) -> str | None:
    """Return all prices with their sources, or None where no price of a device is known."""
    words = [rent.source for rent in found if rent.source]
    return " and ".join([*words, *_electricity(scenario)]) if words else None


def _electricity(scenario: Scenario) -> Iterator[str]:
    if scenario.cost is not None and scenario.cost.usd_per_kwh is not None:
        yield f"{scenario.cost.usd_per_kwh:g} USD/kWh (scenario)"


def _rent(deployed: Deployed, given_usd_per_hour: float | None) -> Rent:
    if given_usd_per_hour is not None:
        return Rent(given_usd_per_hour, f"{given_usd_per_hour:g} USD/h (scenario)")
    profile = deployed.profile
    if profile.price is None:
        return Rent(math.nan, "")
    each = profile.price.usd_per_hour
    origin = profile.source_of("price.usd_per_hour")
    source = "no source given" if origin is None else origin.source
    return Rent(
        each * deployed.num_devices,
        f"{deployed.num_devices} {profile.name} at {each:g} USD/h ({source})",
        is_guess(origin),
    )
