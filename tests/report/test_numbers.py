"""Numbers in print: digits, percents, intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.report.numbers import ABSENT, figure, signed_percent, with_interval


@pytest.mark.parametrize(
    ("value", "shown"),
    [(999.4, "999"), (1234.5, "1234"), (1e300, "1.00e+300"), (1e-300, "1.00e-300"), (0.0, "0.00")],
)
def test_no_figure_is_written_out_in_hundreds_of_digits(value: float, shown: str) -> None:
    assert figure(value) == shown


@given(st.floats(1e-12, 1e12), st.sampled_from([2, 3, 4]))
def test_a_figure_is_right_to_its_digits(value: float, digits: int) -> None:
    assert float(figure(value, digits=digits)) == pytest.approx(value, rel=0.5001 * 10 ** (1 - digits))
    assert float(figure(-value, digits=digits)) == -float(figure(value, digits=digits))


@given(st.floats(-0.0999, 10.0))
def test_a_percent_is_right_to_its_last_decimal(change: float) -> None:
    shown = signed_percent(change)
    assert shown[0] in "+-"
    assert shown != "-0.0"
    assert float(shown) == pytest.approx(100 * change, abs=0.051 if abs(100 * change) < 9.9 else 0.551)


def test_what_is_not_known_has_one_mark() -> None:
    assert {figure(None), figure(math.nan), signed_percent(None), with_interval(None, 1.0, 2.0)} == {ABSENT}


def test_an_interval_of_no_width_in_print_is_not_printed() -> None:
    assert with_interval(1.5, 1.4999, 1.5001) == "1.50"
    assert with_interval(1.5, 1.49, 1.51) == "1.50 [1.49, 1.51]"
