"""Money: what a million tokens cost, in which time, on which devices, and when that is not known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.results.summary import Summary
from specsim.results.tariff import Tariff
from tests.constant_cost import ClosedLoop

LOOP = ClosedLoop(output_tokens=(40,) * 24, prompts=tuple(range(24)), acceptance=(0.7, 0.8))


def priced(baseline: Tariff, speculation: Tariff | None = None, **origin: Any) -> Summary:
    loop = LOOP.with_provenance(**{"price": "1 constant at 2 USD/h (a test)"} | origin)
    return loop.result(tariffs={"baseline": baseline, "speculation": speculation or baseline}).summary()


def test_a_million_tokens_cost_the_rent_of_the_whole_run_over_its_tokens() -> None:
    summary = priced(Tariff(2.0))
    for arm in ("baseline", "speculation"):
        metrics: Any = summary[arm]
        rent = 2.0 / 3600.0 * metrics["duration"]
        assert metrics["usd_per_mtok"] == pytest.approx(1e6 * rent / metrics["total_output_tokens"])


def test_electricity_paid_apart_adds_its_price_of_all_joules() -> None:
    summary = priced(Tariff(0.0, usd_per_kwh=0.36))
    for arm in ("baseline", "speculation"):
        metrics: Any = summary[arm]
        assert metrics["usd_per_mtok"] == pytest.approx(1e6 * metrics["energy_per_token_joules"] * 1e-7)


def test_on_the_same_devices_cost_falls_as_throughput_rises() -> None:
    speedup: Any = priced(Tariff(2.0))["speedup"]
    for end in ("mean", "ci_low", "ci_high"):
        assert speedup["cost"][end] == pytest.approx(speedup["throughput"][end])


def test_devices_of_a_draft_raise_the_cost_of_speculation_alone() -> None:
    shared, apart = priced(Tariff(2.0)), priced(Tariff(2.0), Tariff(3.0))
    assert apart["baseline"] == shared["baseline"]
    costs: list[Any] = [found["speculation"] for found in (shared, apart)]
    assert costs[1]["usd_per_mtok"] == pytest.approx(1.5 * costs[0]["usd_per_mtok"])


def test_cost_is_told_with_its_interval_price_and_source() -> None:
    summary = priced(Tariff(2.0))
    speculation, speedup = summary["speculation"], summary["speedup"]
    assert speculation is not None
    assert speedup is not None
    change, least, most = (100 - 100 / speedup["cost"][name] for name in ("mean", "ci_low", "ci_high"))  # type: ignore[literal-required]
    assert (
        f"Cost \u2212{change:.0f} %/token (\u2212{most:.0f} to \u2212{least:.0f} %), "
        f"{speculation['usd_per_mtok']:.3g} USD/Mtok." in summary["verdict"]["text"]
    )
    assert summary["how_to_read"].endswith("1 constant at 2 USD/h (a test).")


def test_a_guessed_price_is_marked() -> None:
    summary = priced(Tariff(2.0), price_is_estimated=True)
    assert " USD/Mtok (estimated price)." in summary["verdict"]["text"]
    assert "Dollars rest on an estimated price" in " ".join(summary["known_limitations"])
    assert "estimated price" not in str(priced(Tariff(2.0)))


def test_without_a_price_there_is_no_cost() -> None:
    summary = LOOP.result().summary()
    assert summary["baseline"]["usd_per_mtok"] is None
    assert summary["intervals"]["baseline"]["usd_per_mtok"] is None
    assert (summary["speedup"] or {})["cost"]["mean"] is None
    assert "Cost" not in summary["verdict"]["text"]
    assert "USD" not in summary["how_to_read"]


@pytest.mark.parametrize(
    ("speculation", "origin"),
    [(Tariff(), {}), (Tariff(2.0, usd_per_kwh=0.3), {"power_is_estimated": True})],
    ids=["device without a price", "withheld joules that must be paid"],
)
def test_a_price_that_is_not_known_leaves_no_cost_and_says_so(
    speculation: Tariff, origin: dict[str, Any]
) -> None:
    summary = priced(Tariff(2.0), speculation, **origin)
    assert (summary["speculation"] or {})["usd_per_mtok"] is None
    assert "Cost" not in summary["verdict"]["text"]
    assert "There is no cost of a token" in " ".join(summary["known_limitations"])


def test_speculation_that_costs_where_the_baseline_is_free_has_no_ratio() -> None:
    summary = priced(Tariff(0.0), Tariff(1.0))
    assert (summary["speedup"] or {})["cost"]["mean"] == 0.0
    cost = (summary["speculation"] or {})["usd_per_mtok"]
    assert f". Cost {cost:.3g} USD/Mtok." in summary["verdict"]["text"]


def test_a_baseline_alone_has_its_cost() -> None:
    result = LOOP.with_provenance(price="p").baseline_only()
    text = LOOP.result(
        tables=result.tables, num_speculative_tokens=0, tariffs={"baseline": Tariff(2.0)}
    ).summary()["verdict"]["text"]
    assert text.startswith("No speculation in this scenario: baseline only. Cost ")
    assert " USD/Mtok. " in text


@given(st.floats(0, 1e6), st.floats(0, 1e3), st.floats(0, 1e6), st.floats(0, 1e9), st.floats(1, 10))
def test_cost_is_linear_in_time_and_energy(
    usd_per_hour: float, usd_per_kwh: float, time_s: float, energy_j: float, factor: float
) -> None:
    tariff = Tariff(usd_per_hour, usd_per_kwh)
    once, more = (tariff.usd(np.array([time_s * by]), np.array([energy_j * by]))[0] for by in (1.0, factor))
    assert more == pytest.approx(once * factor)


def test_unknown_joules_matter_only_where_they_are_paid() -> None:
    time_s, unknown = np.array([3600.0]), np.array([math.nan])
    assert Tariff(2.0).usd(time_s, unknown).tolist() == [2.0]
    assert math.isnan(Tariff(2.0, usd_per_kwh=0.1).usd(time_s, unknown)[0])
