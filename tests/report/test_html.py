"""The report as text: complete, safe against names, small, and the same each time."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path

import pytest

from specsim.cli.app import main
from specsim.engine.simulate import simulate
from specsim.report.figures import run_plots
from specsim.report.run_files import Run, run_of
from specsim.report.run_report import run_report
from specsim.report.what_if import LOOKAHEADS, Start, what_if
from specsim.scenario import Scenario, load_scenario

_SMALL = ("workload.num_prompts=3", "workload.output_tokens=16")


def test_report_says_verdict_numbers_configuration_and_limits(small_report: str, small_run: Run) -> None:
    text = html.unescape(small_report)
    assert small_run.summary["verdict"]["text"] in text
    assert small_run.summary["key"] in text
    assert all(sentence in text for sentence in small_run.summary["known_limitations"])
    assert "max_concurrency: 2" in text
    assert "TPOT mean, ms" in text


def test_readings_stand_below_their_figures_and_say_what_was_wasted(
    small_report: str, small_run: Run
) -> None:
    readings = {plot.name: plot.reading for plot in run_plots(small_run)}
    for reading in readings.values():
        assert html.escape(reading, quote=False) in small_report
    spent = small_run.summary["speculation"]["energy_joules"]  # type: ignore[index]
    assert isinstance(spent, dict)
    share = 100 * spent["wasted"] / sum(spent.values())  # type: ignore[operator, arg-type]
    assert re.match(r"Energy per output token, J: baseline \S+, speculation", readings["energy_joules"])
    assert readings["energy_joules"].endswith(f", {share:.0f} % of it on rejected tokens.")


def test_report_holds_no_address_that_a_browser_would_load(small_report: str) -> None:
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:,)[^"']*""", small_report)
    assert "@import" not in small_report
    assert not re.findall(r"url\((?!#)", small_report)


def test_policy_allows_our_script_only(small_report: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", small_report, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html.unescape(small_report)
    assert "default-src 'none'" in html.unescape(small_report)


def test_report_is_small_and_the_same_each_time(small_report: str, small_run: Run) -> None:
    assert len(small_report.encode()) < 5e6
    assert run_report(small_run) == small_report


def test_names_cannot_become_code() -> None:
    evil = '</script><img src=x onerror="alert(1)">&{{ 7*7 }}'
    scenario = load_scenario("two_token_example", overrides=(f"name={json.dumps(evil)}", *_SMALL))
    assert scenario.name == evil
    text = run_report(run_of(simulate(scenario)))
    assert "<img" not in text
    assert "{{ 7*7 }}" in html.unescape(text)


@pytest.mark.parametrize(
    "setting", ["speculative_config=null", "speculative_config.num_speculative_tokens=0"]
)
def test_report_without_speculation_is_whole(setting: str) -> None:
    text = run_report(run_of(simulate(load_scenario("two_token_example", overrides=(*_SMALL, setting)))))
    assert "In numbers" in text


_START: Start = {"acceptance_rate": 0.7, "lookahead": 4, "batch": 5, "gain": None}


def _tables(scenario: Scenario, *devices: str, context_tokens: int = 640) -> dict[str, object]:
    return dict(what_if(scenario, context_tokens=context_tokens, start=_START, devices=devices))


def test_round_of_the_panel_costs_what_the_simulation_says(small_run: Run, small_scenario: Scenario) -> None:
    steps = small_run.steps
    decodes = steps[
        (steps["arm"] == "speculation") & (steps["phase"] == "decode") & (steps["num_sequences"] == 1)
    ]
    row = decodes.iloc[0]
    tables = what_if(small_scenario, context_tokens=int(row["context_tokens"]), start=_START)
    device, lookahead = tables["devices"][0], int(row["num_drafted"])
    for name in ("draft_s", "target_s", "draft_flops", "target_flops"):
        grid = device[name]  # type: ignore[literal-required]
        assert grid[0][lookahead] == row[name]
    assert device["target_j"] is not None
    assert device["target_j"][0] is not None
    assert device["target_j"][0][lookahead] == row["target_energy_j"]


def test_lookahead_zero_is_the_baseline_without_the_draft(small_scenario: Scenario) -> None:
    alone = small_scenario.model_copy(update={"speculative_config": None})
    with_draft, without = _tables(small_scenario)["devices"], _tables(alone)["devices"]
    assert isinstance(with_draft, list)
    assert isinstance(without, list)
    for batch in range(len(with_draft[0]["target_s"])):
        assert with_draft[0]["target_s"][batch][0] == without[0]["target_s"][batch][0]
        assert with_draft[0]["draft_s"][batch][0] == 0.0
    assert len(with_draft[0]["target_s"][0]) == len(LOOKAHEADS)


def test_device_that_lacks_memory_is_named_with_the_reason(small_scenario: Scenario) -> None:
    large = load_scenario("llama70b_h100")
    absent = _tables(large, "rtx-4090", "m4-max")["absent"]
    assert isinstance(absent, list)
    assert len(absent) == 2
    assert "lacks" in absent[0]
    assert "all-reduce" in absent[1]
    assert _tables(small_scenario, "rtx-4090")["absent"] == []


def test_batches_that_do_not_fit_are_null_and_noted(small_scenario: Scenario) -> None:
    tables = _tables(small_scenario, "rtx-4090", context_tokens=8192)
    assert isinstance(tables["devices"], list)
    device = tables["devices"][1]
    assert device["target_s"][0] is not None
    assert device["target_s"][-1] is None
    assert any("lacks" in note for note in device["notes"])


def test_joules_are_withheld_at_the_batches_that_rest_mostly_on_guessed_watts() -> None:
    devices = _tables(load_scenario("chat_8b"))["devices"]
    assert isinstance(devices, list)
    device = devices[0]
    is_known = [row is not None for row in device["target_j"]]
    assert is_known == sorted(is_known, reverse=True)
    assert is_known[0]
    assert not is_known[-1]
    kept, withheld = (note for note in device["notes"] if "guessed watts" in note)
    assert re.search(r"joules: up to [1-4]\d % of them from guessed watts", kept)
    assert re.search(r"joules withheld at batch \d+: up to [5-9]\d % of them", withheld)


def test_batches_whose_joules_are_withheld_are_named_wherever_they_lie() -> None:
    power = "hardware.target.power.active_w=230", "hardware.target.power.cap_w=2000"
    guess = "{source: prior, tag: estimated}"
    sources = f"{{power: {{source: run, tag: measured}}, power.active_w: {guess}, power.clock_w: {guess}}}"
    scenario = load_scenario("chat_8b", overrides=(*power, f"hardware.target.provenance={sources}"))
    panel = what_if(scenario, context_tokens=640, start=_START)
    joules = zip(panel["batches"], panel["devices"][0]["target_j"] or (), strict=True)
    withheld = [batch for batch, row in joules if row is None]
    assert {1, 256} < set(withheld) < set(panel["batches"])
    assert f"joules withheld at batch {', '.join(map(str, withheld))}: " in panel["devices"][0]["notes"][-1]


def test_joules_from_guessed_watts_are_withheld_unless_asked_for(small_scenario: Scenario) -> None:
    quiet = small_scenario.model_copy(update={"show_estimated_energy": False})
    withheld, shown = (_tables(one)["devices"] for one in (quiet, small_scenario))
    assert isinstance(withheld, list)
    assert isinstance(shown, list)
    assert withheld[0]["target_j"] is None
    assert "withheld" in withheld[0]["notes"][0]
    assert shown[0]["target_j"] is not None
    assert "guessed watts" in shown[0]["notes"][0]


def test_command_writes_the_report_into_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    for arguments in (
        ["run", "two_token_example", "--set", "workload.num_prompts=3", "-o", str(folder)],
        ["report", str(folder)],
        # A run may be written again over one with a report.
        ["run", "two_token_example", "--set", "workload.num_prompts=3", "-o", str(folder)],
        ["report", str(folder), "-o", str(tmp_path / "other.html"), "--trace-events"],
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
    written = [tmp_path / "other.html", folder / "trace.json"]
    assert capsys.readouterr().out.splitlines()[-2:] == [str(path) for path in written]
    assert json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert (tmp_path / "other.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_command_refuses_a_folder_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["report", str(tmp_path)])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds neither a run (summary.json) nor a sweep (sweep.json)" in line
