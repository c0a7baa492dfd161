"""What is refused before a run begins: runs without end, and figures that cannot be computed with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specsim.arrays import MAX_PER_PASS, Floats, Ints, to_nanojoules, to_picoseconds
from specsim.engine.population import populate
from specsim.engine.prepare import prepare, refuse_endless
from specsim.engine.simulate import simulate
from specsim.errors import ConfigError, DomainError
from specsim.scenario import load_scenario
from specsim.streams import RandomStreams


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["workload.output_tokens=1e8"], "workload.output_tokens: 6.4e+09 output tokens in all; ask for"),
        (
            ["workload.prompt_tokens=1e8", "scheduler.max_num_batched_tokens=1"],
            "scheduler.max_num_batched_tokens: 6.4e+09 prefill passes; ask for",
        ),
        (
            ["workload.max_concurrency=null", "workload.request_rate=1e-9"],
            "workload.request_rate: 6.33e+10 s until the last request arrives; raise the rate",
        ),
    ],
)
def test_a_run_without_end_is_refused_before_it_begins(settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(load_scenario("two_token_example", overrides=settings))
    (fault,) = caught.value.faults
    assert str(fault).startswith(message)


def test_a_recorded_prompt_beyond_any_model_is_refused() -> None:
    scenario = load_scenario("two_token_example")
    population = populate(scenario, RandomStreams(0))
    population.num_prompt_tokens[3] = 2**60
    with pytest.raises(
        ConfigError, match=r"^workload\.prompt_tokens: 1\.15e\+18 tokens in the longest prompt"
    ):
        refuse_endless(scenario, population)


@pytest.mark.parametrize("bandwidth_bytes_per_s", ["1e-300", "1"])
def test_a_figure_off_by_orders_of_magnitude_is_refused(bandwidth_bytes_per_s: str) -> None:
    scenario = load_scenario(
        "chat_8b", overrides=[f"hardware.target.memory.bandwidth_bytes_per_s={bandwidth_bytes_per_s}"]
    )
    with pytest.raises(DomainError, match="off by orders of magnitude"):
        simulate(scenario)


@pytest.mark.parametrize("convert", [to_picoseconds, to_nanojoules])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_what_64_bits_cannot_count_is_refused(convert: Callable[[Floats], Ints], value: float) -> None:
    with pytest.raises(DomainError, match=r"one pass (takes|costs)"):
        convert(np.array([0.0, value]))


def test_the_largest_pass_is_counted_exactly() -> None:
    assert to_picoseconds(np.array([MAX_PER_PASS / 1e12])).tolist() == [MAX_PER_PASS]


@pytest.mark.parametrize("given", [{"seed": -1}, {"seed": 2**63}, {"horizon": 0}, {"horizon": -3}])
def test_a_seed_or_horizon_out_of_range_is_refused(given: dict[str, int]) -> None:
    (name,) = given
    with pytest.raises(DomainError, match=f"^{name}: .* is not allowed; expected"):
        simulate("two_token_example", seed=given.get("seed"), horizon=given.get("horizon", 1))
