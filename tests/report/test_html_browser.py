"""The report in a browser: its numbers are those of Python, nothing overlaps, nothing leaves the page."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specsim.engine.simulate import simulate
from specsim.hardware import StepShape, load_profile
from specsim.report.opening import opening_gain
from specsim.report.run_files import Run, run_of
from specsim.report.run_report import run_report, what_if_of
from specsim.scenario import Scenario, load_scenario
from specsim.speculation import sampling, theory
from tests.report.chromium import CHROMIUM, Seen, look

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

_CLOSED = [
    (rate, lookahead, ratio)
    for rate in (0.0, 0.15, 0.5, 0.71, 0.9, 0.999, 1.0)
    for lookahead in (0, 1, 3, 4, 7, 16)
    for ratio in (0.0, 0.02, 0.183, 1.0)
]
_PAIRS = [
    ([0.7, 0.3], [0.3, 0.7]),
    ([0.5, 0.5], [0.5, 0.5]),
    ([1.0, 0.0], [0.0, 1.0]),
    ([0.5, 0.25, 0.25, 0.0], [0.1, 0.2, 0.3, 0.4]),
    ([0.125] * 8, [0.5, 0.5, 0, 0, 0, 0, 0, 0]),
]
_ROUNDS = [
    (device, batch, lookahead, rate)
    for device in ("m4-max", "rtx-4090", "h100-sxm", "rtx-3090")
    for batch in (1, 8, 64)
    for lookahead in (1, 4, 8)
    for rate in (0.3, 0.71)
]

_SCRIPTS = {
    "closed": f"""return {json.dumps(_CLOSED)}.map(([a, k, c]) => [window.specsim.expectedTokens(a, k),
      window.specsim.wallTimeImprovement(a, k, c), window.specsim.operationsFactor(a, k, c)]);""",
    "sampler": f"""return {json.dumps(_PAIRS)}.map(([p, q]) => [window.specsim.acceptanceRate(p, q),
      window.specsim.correctionDistribution(p, q), window.specsim.emittedDistribution(p, q)]);""",
    "rounds": f"""const tables = JSON.parse(document.getElementById("what-if-tables").textContent);
      const find = (name) => tables.devices.find((device) => device.name === name);
      return {{context: tables.context_tokens, rounds: {json.dumps(_ROUNDS)}.map(([name, batch, k, a]) =>
        window.specsim.priceRound(find(name), tables.batches.indexOf(batch), batch, k, a, null))}};""",
    "cache": """const tables = JSON.parse(document.getElementById("what-if-tables").textContent);
      return [1024, 2048].map((context) =>
        window.specsim.bytesPerToken(tables.cache, 1, 2, tables.contexts.indexOf(context), 4, 0.5));""",
    "loaded": "return window.performance.getEntriesByType('resource').length;",
    "opening": """return ["gain", "batch-value", "lookahead-value", "acceptance-value"].map(
      (id) => document.getElementById(id).textContent);""",
    "hints": "return [...document.querySelectorAll('.more')].map((one) => one.checkVisibility());",
    "layout": "return layout(window, document);",
    "contrast": "return contrast(window, document);",
    "controls": "return controls(window, document);",
    "sliders": "return sliders(window, document);",
}
"""What is asked of the page; the sliders last, since they move it."""


@pytest.fixture(scope="module")
def wide(small_report: str, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return look(small_report, _SCRIPTS, tmp_path_factory.mktemp("wide"))


@pytest.fixture(scope="module")
def narrow(small_report: str, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    scripts = {
        "layout": "return layout(window, document);",
        "tables": "return sideways(window, document);",
        "eight": """const count = document.getElementById("num-tokens");
          count.value = "8";
          count.dispatchEvent(new window.Event("input"));
          return {...layout(window, document), rows: document.querySelectorAll("#laws-rows tr").length};""",
    }
    return look(small_report, scripts, tmp_path_factory.mktemp("narrow"), width=400)


def test_closed_forms_on_the_page_equal_python(wide: Seen) -> None:
    expected = [
        (
            theory.expected_tokens(rate, lookahead),
            theory.wall_time_improvement(rate, lookahead, ratio),
            theory.operations_factor(rate, lookahead, ratio),
        )
        for rate, lookahead, ratio in _CLOSED
    ]
    np.testing.assert_allclose(wide.value["closed"], expected, rtol=1e-12)


def test_sampler_on_the_page_equals_python_and_emits_the_target(wide: Seen) -> None:
    for (p, q), (rate, correction, emitted) in zip(_PAIRS, wide.value["sampler"], strict=True):
        assert rate == pytest.approx(sampling.acceptance_rate(p, q), abs=1e-15)
        np.testing.assert_allclose(correction, sampling.correction_distribution(p, q), atol=1e-15)
        np.testing.assert_allclose(emitted, p, atol=2e-16)


_profile = functools.cache(load_profile)


def _pass_cost(
    scenario: Scenario, device: str, *, role: str, batch: int, width: int, context: int
) -> tuple[float, float, float]:
    """Time, joules and FLOPs of one decode pass, straight from the cost model."""
    profile = scenario.hardware.target if device == scenario.hardware.target.name else _profile(device)
    assert scenario.speculative_config is not None
    is_draft = role == "draft"
    model = scenario.speculative_config.model if is_draft else scenario.target.model
    cost = profile.cost_model(
        model, role="draft" if is_draft else "target", weight_dtype=scenario.target.dtype
    )
    attended = batch * sum(context + place + 1 for place in range(width))
    one = [
        np.array([number]) for number in (batch, batch * width, 0, batch * width, batch * context, attended)
    ]
    steps = cost.steps(StepShape(*one))
    return float(steps.duration_ps[0]) / 1e12, float(steps.energy_nj[0]) / 1e9, float(steps.flops[0])


def test_rounds_on_the_page_equal_the_cost_models(wide: Seen, small_scenario: Scenario) -> None:
    found: dict[str, Any] = wide.value["rounds"]
    context, priced = found["context"], 0
    for (device, batch, lookahead, rate), seen in zip(_ROUNDS, found["rounds"], strict=True):
        if seen is None:
            continue
        priced += 1
        base = _pass_cost(small_scenario, device, role="target", batch=batch, width=1, context=context)
        verify = _pass_cost(
            small_scenario, device, role="target", batch=batch, width=lookahead + 1, context=context
        )
        drafts = [
            _pass_cost(small_scenario, device, role="draft", batch=batch, width=1, context=context + depth)
            for depth in range(lookahead)
        ]
        time_s, energy_j, flops = (verify[i] + sum(draft[i] for draft in drafts) for i in range(3))
        tokens = theory.expected_tokens(rate, lookahead)
        assert seen["tokens"] == pytest.approx(tokens, rel=1e-12)
        assert seen["draftCostRatio"] == pytest.approx(drafts[0][0] / base[0], rel=1e-12)
        assert seen["gain"] == pytest.approx(tokens * base[0] / time_s, rel=1e-12)
        assert seen["tokenS"] == pytest.approx(time_s / tokens, rel=1e-12)
        assert seen["tokensPerS"] == pytest.approx(batch * tokens / time_s, rel=1e-12)
        assert seen["operationsFactor"] == pytest.approx(flops / (tokens * base[2]), rel=1e-12)
        if seen["tokenJ"] is not None:
            assert seen["tokenJ"] == pytest.approx(energy_j / (batch * tokens), rel=1e-9)
            assert seen["baselineTokenJ"] == pytest.approx(base[1] / batch, rel=1e-9)
    assert priced > len(_ROUNDS) // 2


def test_bytes_of_the_cache_pane_grow_by_the_cache_of_a_token(wide: Seen, small_scenario: Scenario) -> None:
    model = small_scenario.target.model
    assert model is not None
    near, far = wide.value["cache"]
    grown = 2 * 1024 * model.kv_elements_per_token * 2.0
    assert far["step"] - near["step"] == grown
    assert far["stepCache"] - near["stepCache"] == grown
    assert far["round"] > far["step"]
    assert far["speculation"] == pytest.approx(far["round"] / (2 * theory.expected_tokens(0.5, 4)))


def test_panel_opens_at_the_run(wide: Seen, small_run: Run) -> None:
    panel = what_if_of(small_run, small_run.scenario)
    start = panel["start"]
    gain = opening_gain(panel)
    assert gain is not None
    rate = f"{start['acceptance_rate']:.3f}"
    assert wide.value["opening"] == [f"{gain:.2f}×", str(start["batch"]), str(start["lookahead"]), rate]


def test_a_table_wider_than_the_page_says_so_until_its_end_is_seen(narrow: Seen) -> None:
    before, after = narrow.value["tables"]
    assert before == {"hinted": True, "shadowed": True, "first": True}
    assert after == {"hinted": True, "shadowed": False, "first": True}


def test_a_table_that_fits_has_no_hint(wide: Seen) -> None:
    assert wide.value["hints"] == [False, False, False]


def test_sliders_redraw_numbers_and_charts(wide: Seen) -> None:
    seen = wide.value["sliders"]
    assert seen["own"] == [f"{theory.expected_tokens(0.8, 5):.2f}", "2", True]
    assert seen["given"] == ["0.100", f"{theory.wall_time_improvement(0.8, 5, 0.1):.2f}×", False]
    assert seen["laws"] == ["0.600", f"{sampling.acceptance_rate([0.4, 0.6], [0.3, 0.7]):.3f}"]


def test_page_opens_without_a_word_on_the_console_and_loads_nothing(wide: Seen) -> None:
    assert wide.value["loaded"] == 0
    assert wide.console == ()


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_nothing_overlaps_or_sticks_out(width: str, request: pytest.FixtureRequest) -> None:
    seen = request.getfixturevalue(width).value["layout"]
    assert seen["number"] > 200
    assert seen["overlaps"] == []
    assert seen["outside"] == []
    assert seen["wide"] <= 0


def test_eight_tokens_fit_a_narrow_page(narrow: Seen) -> None:
    seen = narrow.value["eight"]
    assert seen["rows"] == 8
    assert seen["overlaps"] == []
    assert seen["wide"] <= 0


def test_report_of_costs_in_target_steps_opens_without_the_cache_pane(tmp_path: Path) -> None:
    settings = ("workload.num_prompts=3", "workload.output_tokens=400")
    text = run_report(run_of(simulate(load_scenario("leviathan_t5_small_ende_t0", overrides=settings))))
    scripts = {
        "layout": "return layout(window, document);",
        "gain": "return document.getElementById('gain').textContent;",
        "closed": "return document.getElementById('closed-gain').textContent;",
        "pane": "return document.getElementById('cache-pane') === null;",
    }
    seen = look(text, scripts, tmp_path, width=400)
    assert seen.console == ()
    assert seen.value["pane"] is True
    # A pass costs one target step whatever its width, which is what the closed form supposes.
    assert seen.value["gain"] == seen.value["closed"]
    assert seen.value["layout"]["overlaps"] == []
    assert seen.value["layout"]["outside"] == []


def test_faults_would_be_seen(small_report: str, tmp_path: Path) -> None:
    """Negative control: a foreign script, two texts on one place, one out of the page, grey on white."""
    faults = """<script>foreign()</script><p style="position:absolute;top:9px">first text</p>
      <p style="position:absolute;top:9px">second text</p><p style="position:absolute;left:900px">out</p>
      <p style="color:#bbb">pale</p></body>"""
    scripts = {"layout": "return layout(window, document);", "contrast": "return contrast(window, document);"}
    seen = look(small_report.replace("</body>", faults), scripts, tmp_path, width=400)
    assert seen.console
    assert any("first text" in one and "second text" in one for one in seen.value["layout"]["overlaps"])
    assert "P out" in seen.value["layout"]["outside"]
    assert seen.value["contrast"] == ["P pale"]


def test_text_has_contrast_enough_to_read(wide: Seen) -> None:
    assert wide.value["contrast"] == []


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(wide: Seen) -> None:
    seen = wide.value["controls"]
    assert seen["number"] > 15
    assert seen["nameless"] == []
    assert seen["skipped"] == []
    assert seen["silent"] == 0
    assert seen["twice"] == []
