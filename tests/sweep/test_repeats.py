"""Replications: means with Student's interval, and when to stop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specsim.errors import ConfigError, DomainError
from specsim.sweep import Repeats, in_process
from specsim.sweep.estimates import point_estimates
from specsim.sweep.outcome import Outcome
from specsim.sweep.plan import Case
from specsim.sweep.repeats import MIN_TO_STOP, mean_of
from specsim.sweep.sweep import SweepJob
from specsim.sweep.table import Rows
from tests.sweep.small import RATES, SMALL


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_half_width_is_students(values: list[float]) -> None:
    mean = mean_of(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    assert mean.value == pytest.approx(np.mean(values), abs=1e-6)
    assert mean.half_width == pytest.approx(stats.t.ppf(0.975, len(values) - 1) * error, rel=0.006, abs=1e-9)


def test_one_replication_has_no_interval() -> None:
    assert mean_of([2.0]).half_width is None
    assert mean_of([2.0]).relative_half_width == math.inf


def _rows(values: list[float | None]) -> Rows:
    rows = Rows()
    for replication, value in enumerate(values):
        outcome = (
            Outcome.failed("k", "no", is_lasting=True)
            if value is None
            else Outcome("k", "", True, 0.0, {"x": value}, ())
        )
        rows.add(Case(0, replication), outcome)
    return rows


def test_equal_replications_are_enough() -> None:
    assert Repeats.until("x=0.01").more_cases([0], _rows([2.0] * MIN_TO_STOP)) == []


def test_wide_ones_call_for_more_at_most_twice_as_many() -> None:
    more = Repeats.until("x=0.01").more_cases([0], _rows([1.0, 2.0, 3.0, 1.0, 2.0]))
    assert more == [Case(0, replication) for replication in range(5, 10)]


def test_no_more_than_the_most() -> None:
    assert Repeats.until("x=0.01", most=7).more_cases([0], _rows([1.0, 2.0, 3.0, 1.0, 2.0])) == [
        Case(0, 5),
        Case(0, 6),
    ]
    assert Repeats.until("x=0.01", most=5).more_cases([0], _rows([1.0, 2.0, 3.0, 1.0, 2.0])) == []


def test_a_point_with_a_failed_replication_is_left() -> None:
    assert Repeats.until("x=0.01").more_cases([0], _rows([1.0, 2.0, None, 1.0, 2.0])) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "not of the form"),
        ("=0.1", "not of the form"),
        ("x=y", "not of the form"),
        ("x=0", "between 0 and 1"),
    ],
)
def test_a_faulty_stop_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Repeats.until(text)


def test_a_most_below_the_first_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 5"):
        Repeats.until("x=0.1", most=3)


def test_every_point_is_replicated_until_its_half_width_is_met() -> None:
    repeats = Repeats.until("speedup.tpot=0.05", most=60)
    table = SweepJob.of(SMALL, [RATES], repeats=repeats).run(workers=in_process())
    estimates = point_estimates(table, "speedup.tpot")
    for estimate in estimates:
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.num_replications >= MIN_TO_STOP
        assert (estimate.mean - estimate.low) / estimate.mean <= 0.05
    # Negative control: the spread differs between points, so one number for all would not do.
    assert len({estimate.num_replications for estimate in estimates if estimate}) > 1


def test_replications_differ_and_share_their_luck_between_points() -> None:
    job = SweepJob.of(SMALL, ["hardware.target.draft_cost_ratio=0.1,0.2"], repeats=Repeats(first=3))
    table = job.run(workers=in_process())
    lengths = table.column("spec_decode_acceptance_length")
    assert len(set(lengths[:3])) == 3
    assert lengths[:3] == lengths[3:]


def test_a_stop_rule_on_an_unknown_metric_is_refused() -> None:
    job = SweepJob.of(SMALL, ["K=1"], repeats=Repeats.until("nosuch=0.1"))
    with pytest.raises(DomainError, match="no metric 'nosuch'"):
        job.run(workers=in_process())
