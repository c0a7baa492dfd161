"""Sensitivity: indices against closed forms, and which key turns the verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specsim.errors import ConfigError, DomainError
from specsim.scenario import load_scenario
from specsim.streams import RandomStreams
from specsim.sweep import in_process
from specsim.sweep.sweep import SweepJob
from specsim.sweep.tornado import tornado_bars, tornado_points
from specsim.sweep.vary import parse_axis
from tests.sweep.small import SMALL

STREAMS = RandomStreams(0)


def test_sobol_indices_of_ishigamis_function() -> None:
    # Ishigami and Homma 1990, a = 7, b = 0.1: variances of the parts in closed form.
    pytest.importorskip("SALib")
    from specsim.sweep.sensitivity import sobol_effects, sobol_fractions

    x = math.pi * (2.0 * sobol_fractions(2048, 3, STREAMS) - 1.0)
    values = np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
    found = {effect.key: effect for effect in sobol_effects(values.tolist(), ["a", "b", "c"], STREAMS)}
    first = 0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2
    second = 7.0**2 / 8
    interaction = 0.1**2 * math.pi**8 * (1 / 18 - 1 / 50)
    whole = first + second + interaction
    for key, main, total in (
        ("a", first, first + interaction),
        ("b", second, second),
        ("c", 0.0, interaction),
    ):
        assert abs(found[key].main - main / whole) < max(found[key].main_half_width, 0.01)
        assert abs(found[key].other - total / whole) < 0.03
    assert list(found) == ["a", "b", "c"]


def test_morris_effects_of_a_linear_function_are_its_slopes() -> None:
    pytest.importorskip("SALib")
    from specsim.sweep.sensitivity import morris_effects, morris_fractions

    fractions = morris_fractions(6, 3, STREAMS)
    values = fractions @ np.array([1.0, -5.0, 0.0])
    found = morris_effects(fractions, values.tolist(), ["a", "b", "c"], STREAMS)
    assert [(effect.key, round(effect.main, 9)) for effect in found] == [("b", 5.0), ("a", 1.0), ("c", 0.0)]
    assert all(abs(effect.other) < 1e-9 for effect in found)


def test_a_figure_that_never_moves_has_no_sensitivity() -> None:
    pytest.importorskip("SALib")
    from specsim.sweep.sensitivity import sobol_effects

    assert all(effect.other == 0.0 for effect in sobol_effects([2.0] * 16, ["a", "b"], STREAMS))


def test_indices_need_every_point() -> None:
    pytest.importorskip("SALib")
    from specsim.sweep.sensitivity import sobol_effects

    with pytest.raises(DomainError, match="1 of 16 points have no figure"):
        sobol_effects([None, *[1.0] * 15], ["a", "b"], STREAMS)


def test_sobol_needs_a_power_of_two() -> None:
    pytest.importorskip("SALib")
    with pytest.raises(ConfigError, match="power of two"):
        SweepJob.of(SMALL, ["distributions.acceptance_rate=0.1..0.9"], design="sobol", num_samples=12)


@pytest.mark.parametrize(("design", "num_samples"), [("sobol", 8), ("morris", 4)])
def test_acceptance_moves_a_speedup_and_the_number_of_prompts_hardly(design: str, num_samples: int) -> None:
    pytest.importorskip("SALib")
    job = SweepJob.of(
        SMALL,
        ["workload.num_prompts=10..12", "distributions.acceptance_rate=0.2..0.9"],
        design=design,  # type: ignore[arg-type]
        num_samples=num_samples,
    )
    found = job.run(workers=in_process()).about["analysis"][design]  # type: ignore[call-overload, index]
    assert found[0]["key"] == "distributions.acceptance_rate"
    assert found[0]["main"] > 5 * abs(found[1]["main"])


def test_a_tornado_is_the_scenario_and_both_ends_of_each_axis() -> None:
    axes = [parse_axis("K=1,3,8"), parse_axis("hardware.target.draft_cost_ratio=0.05..0.5")]
    points = tornado_points(axes, load_scenario(SMALL))
    assert [point.labels for point in points] == [(2, 0.1), (1, 0.1), (8, 0.1), (2, 0.05), (2, 0.5)]
    bars = tornado_bars(points, [1.5, 1.3, 0.9, 1.6, 1.1], ["K", "cost"])
    assert [bar.key for bar in bars] == ["cost", "K"]
    assert [bar.crosses_one for bar in bars] == [False, True]
    assert [round(bar.swing, 9) for bar in bars] == [0.5, 0.4]


def test_a_tornado_of_a_sweep_leaves_all_other_keys_as_they_are() -> None:
    job = SweepJob.of(SMALL, ["K=1,8", "hardware.target.draft_cost_ratio=0.05..0.9"], design="tornado")
    table = job.run(workers=in_process())
    plain = SweepJob.of(SMALL, ["K=2"]).run(workers=in_process())
    assert table.columns["key"][0] == plain.columns["key"][0]
    analysis = table.about["analysis"]
    assert isinstance(analysis, dict)
    assert analysis["at_scenario"] == plain.column("speedup.tpot")[0]
    assert analysis["tornado"][0]["crosses_one"] is True  # type: ignore[index, call-overload]


def test_a_tornado_calls_the_middle_by_its_name_or_left_out() -> None:
    axes = [
        parse_axis("cost.usd_per_hour=.5,2"),
        parse_axis("hardware.target=l4,h100-sxm"),
        parse_axis("K=1,8"),
    ]
    points = tornado_points(axes, load_scenario("laptop"))
    assert points[0].labels == ("left out", "m4-max", 4)
    assert points[1].labels == (0.5, "m4-max", 4)


def test_a_tornado_without_a_middle_is_refused() -> None:
    points = tornado_points([parse_axis("K=1,3")], load_scenario(SMALL))
    with pytest.raises(DomainError, match="nothing to compare with"):
        tornado_bars(points, [None, 1.0, 1.0], ["K"])
