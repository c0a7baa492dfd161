"""Service objectives: met, missed, undefined and misspelt."""

from __future__ import annotations

import pytest

from specsim.errors import DomainError
from specsim.results.objectives import missed_objectives
from tests.constant_cost import ClosedLoop

SUMMARY = ClosedLoop().result().summary()


def test_an_objective_at_the_value_is_met_and_one_below_is_missed() -> None:
    value = (SUMMARY["speculation"] or {})["p99_tpot_ms"]
    assert isinstance(value, float)
    assert missed_objectives(SUMMARY, {"p99_tpot_ms": value}) == []
    (sentence,) = missed_objectives(SUMMARY, {"p99_tpot_ms": value * 0.99, "p99_ttft_ms": 1e6})
    assert sentence.startswith("speculation: p99_tpot_ms is ")


def test_without_speculation_the_baseline_is_judged() -> None:
    (sentence,) = missed_objectives(ClosedLoop().baseline_only().summary(), {"mean_e2el_ms": 0.1})
    assert sentence.startswith("baseline: mean_e2el_ms is ")


def test_an_undefined_metric_misses_nothing() -> None:
    summary = ClosedLoop(output_tokens=(1, 1), prompts=(0, 1)).result().summary()
    assert missed_objectives(summary, {"p99_tpot_ms": 1e-9}) == []


def test_an_objective_on_no_metric_is_refused() -> None:
    with pytest.raises(DomainError, match="no metric 'p99_tpott_ms'"):
        missed_objectives(SUMMARY, {"p99_tpott_ms": 1.0})
