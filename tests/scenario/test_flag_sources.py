"""Figures that a flag gives: their source is the flag, and what rests on them is no guess of ours."""

from __future__ import annotations

import pytest

from specsim.config import parse
from specsim.engine.prepare import prepare
from specsim.engine.tariffs import rents
from specsim.hardware import Accelerator
from specsim.hardware.provenance import is_guess
from specsim.scenario import Scenario, load_scenario, scenario_of
from specsim.sweep import SweepJob
from specsim.sweep.plan import Case

PRICE = "price.usd_per_hour"


def _device(*settings: str) -> Accelerator:
    return load_scenario("chat_8b", overrides=settings).hardware.target


def _source(profile: Accelerator, path: str) -> str:
    found = profile.source_of(path)
    assert found is not None
    return found.source


def _rent(scenario: Scenario) -> str:
    prepared = prepare(scenario)
    return rents(scenario, prepared.target, prepared.draft)[0].source


def test_a_price_that_a_flag_gives_is_not_the_files() -> None:
    plain = load_scenario("chat_8b")
    dear = load_scenario("chat_8b", overrides=[f"hardware.target.{PRICE}=9"])
    assert "mercatus" in _rent(plain)
    assert _rent(dear) == "1 h100-sxm at 9 USD/h (a flag)"


def test_the_figures_beside_it_keep_their_sources() -> None:
    plain, dear = _device(), _device(f"hardware.target.{PRICE}=9")
    others = set(plain.provenance) - {PRICE}
    assert len(others) > 20
    assert all(dear.source_of(path) == plain.source_of(path) for path in others)


@pytest.mark.parametrize(
    "setting",
    ["power.compute_w=500", "power={idle_w: 50, active_w: 99, memory_w: 300, compute_w: 500, cap_w: 700}"],
)
def test_a_guess_that_a_flag_replaces_is_one_no_more(setting: str) -> None:
    assert is_guess(_device().source_of("power.compute_w"))
    assert not is_guess(_device(f"hardware.target.{setting}").source_of("power.compute_w"))


def test_a_profile_named_by_a_flag_keeps_what_its_file_says() -> None:
    assert "a flag" not in {one.source for one in _device("hardware.target=l4").provenance.values()}
    both = _device("hardware.target=l4", f"hardware.target.{PRICE}=1")
    assert [path for path, one in both.provenance.items() if one.source == "a flag"] == [PRICE]


def test_a_source_that_a_flag_gives_stays() -> None:
    source = "hardware.target.provenance={price.usd_per_hour: {source: my bill, tag: read}}"
    assert _source(_device(f"hardware.target.{PRICE}=9", source), PRICE) == "my bill"


def test_peaks_that_follow_a_flag_are_given_by_it() -> None:
    device = _device("hardware.target.parallel_positions=500")
    assert _source(device, "peak_flops_per_s.bfloat16") == "a flag"
    assert "a flag" not in _source(device, "memory.bandwidth_bytes_per_s")


def test_what_is_varied_is_given_by_a_flag() -> None:
    job = SweepJob.of("chat_8b", [f"hardware.target.{PRICE}=1,2"])
    profile = job.plan.scenario(Case(1, 0)).hardware.target
    assert profile.price is not None
    assert profile.price.usd_per_hour == 2
    assert _source(profile, PRICE) == "a flag"


def test_what_a_file_writes_inline_is_not_given_by_a_flag() -> None:
    text = """
hardware: {target: {kind: unit, name: unit, target_step_s: 1.0, draft_cost_ratio: 0.1}}
workload: {max_concurrency: 1, prompt_tokens: 8, output_tokens: 8}
"""
    assert scenario_of(parse(text, file="my.yaml")).hardware.target.provenance == {}
