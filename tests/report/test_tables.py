"""Printed tables: 80 columns in a pipe, nothing cut off, and the summary's own numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest

from specsim.report.tables import comparison_rows, print_summary, speedup_line, verdict_line
from specsim.results.summary import Summary
from specsim.results.tariff import Tariff
from tests.constant_cost import ClosedLoop

LOOP = ClosedLoop(output_tokens=(20, 30, 40, 1) * 8, prompts=tuple(range(32)), acceptance=(0.6, 0.8))


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def printed(summary: Summary, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    print_summary(summary, stream)
    return stream.getvalue()


RUNS: dict[str, Callable[[], Summary]] = {
    "both arms": lambda: LOOP.result(slo={"p99_ttft_ms": 200}).summary(),
    "baseline": lambda: LOOP.baseline_only().summary(),
    "one prompt": lambda: ClosedLoop(prompts=(0,) * 8).result().summary(),
    "one token": lambda: ClosedLoop(output_tokens=(1,), prompts=(0,)).result().summary(),
    "no drafts": lambda: ClosedLoop(lookahead=0).result().summary(),
    "every caveat": lambda: (
        LOOP.with_provenance(
            power_is_estimated=True, lossy=True, approximate=True, stand_in="another pair", notes=("A note.",)
        )
        .result()
        .summary()
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_a_pipe_gets_the_verdict_first_then_80_plain_columns(run: str) -> None:
    summary = RUNS[run]()
    first, *lines = printed(summary).splitlines()
    assert first == verdict_line(summary)
    assert max(len(line) for line in lines) <= 80
    assert "\x1b" not in printed(summary)
    assert not re.search(r"[\u2500-\u257f\u2026]", printed(summary)), "no box characters, nothing cut off"
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.parametrize("run", RUNS)
def test_nothing_undefined_is_printed_as_a_number(run: str) -> None:
    assert not re.search(r"\b(nan|inf|None)\b", printed(RUNS[run]()), re.IGNORECASE)


def test_a_narrow_terminal_wraps_instead_of_cutting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    summary = RUNS["both arms"]()
    text = printed(summary, Terminal())
    assert "\u2026" not in text
    assert max(len(line) for line in text.splitlines()[1:]) <= 60


def test_the_comparison_shows_values_intervals_and_change() -> None:
    summary = RUNS["both arms"]()
    (line,) = [line for line in printed(summary).splitlines() if line.startswith("TPOT mean")]
    baseline, speculation = summary["baseline"], summary["speculation"] or {}
    change = 100 * (speculation["mean_tpot_ms"] / baseline["mean_tpot_ms"] - 1)
    low, high = summary["intervals"]["baseline"]["mean_tpot_ms"] or (0.0, 0.0)
    assert f"{baseline['mean_tpot_ms']:.1f} [{low:.1f}, {high:.1f}]" in line
    assert f"{speculation['mean_tpot_ms']:.2f} [" in line
    assert f"{change:+.0f}% [" in line
    assert "95% intervals over 32 prompts" in printed(summary)


def test_parts_of_time_are_per_output_token() -> None:
    summary = RUNS["both arms"]()
    (line,) = [line for line in printed(summary).splitlines() if line.startswith("wasted on rejected")]
    speculation = summary["speculation"] or {}
    wasted = speculation["time_seconds"]["wasted"] / speculation["total_output_tokens"]
    assert line.split()[4] == f"{1e3 * wasted:.3g}"


def test_fraction_of_the_limit_operations_and_limitations_are_printed() -> None:
    text = printed(RUNS["every caveat"]())
    assert "Physical limit / simulated decode time: baseline 50 %, speculation 50 %." in text
    assert "Physical limit of a decoded token: baseline 5.19 ms, speculation 3.28 ms." in text
    assert "Operations factor" in text
    assert "Acceptance by position: 0." in text
    assert "How wide to read it\n  The intervals cover" in text
    assert "Known limitations\n  - The verification rule is lossy" in text
    assert "  - A note." in text
    assert "J base" not in text


def test_joules_from_guessed_watts_are_marked_where_they_stand() -> None:
    summary = LOOP.with_provenance(power_is_estimated=True).result(show_estimated_energy=True).summary()
    assert "est. J/token" in printed(summary)
    assert "est. energy" not in printed(RUNS["both arms"]())


def test_cost_is_a_row_and_a_ratio_and_a_guessed_price_is_marked() -> None:
    tariffs = dict.fromkeys(("baseline", "speculation"), Tariff(2.0))
    for is_guess, title in ((True, "est. USD/Mtok"), (False, "USD/Mtok")):
        origin = ClosedLoop().with_provenance(price="a price", price_is_estimated=is_guess)
        summary = origin.result(tariffs=tariffs).summary()
        assert title in [row[0] for row in comparison_rows(summary)]
        assert ", cost " in speedup_line(summary["speedup"])
    unpriced = ClosedLoop().result().summary()
    assert not any("cost" in row[0] for row in comparison_rows(unpriced))
    assert "cost" not in speedup_line(unpriced["speedup"])
