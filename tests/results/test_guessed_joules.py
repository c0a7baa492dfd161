"""Joules that rest in part on guessed watts: shown with what half and twice the guess make of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from specsim.engine.simulate import simulate
from specsim.results.metrics import Metrics
from specsim.results.summary import Summary, number
from specsim.scenario import load_scenario
from tests.constant_cost import ClosedLoop

GUESSED = ClosedLoop(output_tokens=(20,) * 24, prompts=tuple(range(24))).with_provenance(
    power_is_estimated=True, guessed_watts=("compute_w",)
)


def _summary(share: float, **changes: object) -> Summary:
    return replace(GUESSED, guessed_energy_fraction=share).result(**changes).summary()


def test_joules_that_rest_on_guesses_for_less_than_half_are_shown_with_their_range() -> None:
    summary = _summary(0.2)
    assert number(summary["baseline"], "energy_per_token_joules") is not None
    assert summary["baseline"]["guessed_energy_fraction"] == pytest.approx(0.2)
    limits = " ".join(summary["known_limitations"])
    assert "At most 20 % of the joules come from guessed watts (compute_w)" in limits
    assert "joules change by -10 % to +20 %" in limits
    assert "withheld" not in summary["verdict"]["text"]


@pytest.mark.parametrize(("share", "is_shown"), [(0.49, True), (0.51, False)])
def test_joules_are_withheld_where_guesses_contribute_more_than_half(share: float, is_shown: bool) -> None:
    summary = _summary(share)
    assert (number(summary["baseline"], "total_energy_joules") is not None) is is_shown
    assert (f"Joules withheld: {share:.0%}".replace("%", " %") in summary["verdict"]["text"]) is not is_shown
    assert summary["baseline"]["guessed_energy_fraction"] == pytest.approx(share)


def test_the_change_has_one_range_of_both_arms() -> None:
    """A guess that both arms share to the same part cancels in their ratio."""
    text = _summary(0.3)["verdict"]["text"]
    (change, guessed) = re.findall(r"Energy ([−+]\d+) %/token .*?twice: ([−+]\d+) %\)", text)[0]
    assert change == guessed


def test_joules_of_guesses_that_were_asked_for_are_no_range() -> None:
    summary = _summary(0.9, show_estimated_energy=True)
    assert " %, estimated watts)." in summary["verdict"]["text"]
    assert "read them as orders of magnitude" in " ".join(summary["known_limitations"])


SMALL = [
    "workload.num_prompts=4",
    "workload.prompt_tokens=8",
    "workload.prompt_tokens_stdev=0",
    "workload.output_tokens=16",
    "workload.output_tokens_stdev=0",
]


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_run_with_other_watts_has_the_joules_at_the_end_of_the_range(factor: float) -> None:
    scenario = load_scenario("chat_8b", overrides=SMALL)
    power = scenario.hardware.target.power
    assert power is not None
    setting = f"hardware.target.power.compute_w={factor * power.compute_w}"
    given = simulate(load_scenario("chat_8b", overrides=[*SMALL, setting])).summary()
    guessed = simulate(scenario).summary()
    assert given["provenance"]["guessed_watts"] == ["idle_w"]
    for arm, other in zip(_arms(guessed), _arms(given), strict=True):
        share = arm["guessed_energy_fraction"]
        assert isinstance(share, float)
        assert 0 < share < 0.5
        assert other["total_energy_joules"] == pytest.approx(
            number(arm, "total_energy_joules") * (1 + (factor - 1) * share), rel=1e-6
        )


def _arms(summary: Summary) -> tuple[Metrics, Metrics]:
    assert summary["speculation"] is not None
    return summary["baseline"], summary["speculation"]
