"""The proof on a CPU, its predicting half, on times made from a known cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrate.cpu_proof import main, page, table
from calibrate.predict import Predictor
from calibrate.proof_prediction import Comparison, MachineFit, compare, fit_machine, table_profile
from calibrate.proof_runs import ProofData, ProofSettings, Run
from calibrate.rows import trace_of
from specsim.hardware import ModelSpec, RooflineProfile, load_model

TRACES = Path(__file__).parents[2] / "scenarios" / "traces"
TARGET = load_model("smollm2-135m")
EXIT = TARGET.model_copy(update={"name": "smollm2-135m-exit24", "num_hidden_layers": 24})


def _step_s(spec: ModelSpec, positions: int, context: int) -> float:
    return spec.num_layers * (1e-3 + 1e-4 * positions + 1e-6 * context)


def _cells(spec: ModelSpec, text: str) -> list[dict[str, str | int | float]]:
    return [
        {"model": text, "positions": each, "ctx": context, "t_gpu_us": 1e6 * _step_s(spec, each, context)}
        for each in (1, 2, 4, 8, 9, 512)
        for context in (0, 64, 256, 1024)
    ]


def _run(draft: str, count: int, prompt: int) -> Run:
    emitted, context = [1, 2, 1, 2], [50, 51, 53, 54]
    if count == 0:
        emitted, context = [1] * 6, list(range(50, 56))
    drafted = [count] * len(emitted)
    seconds = sum(_step_s(TARGET, count + 1, each) for each in context)
    if draft == "exit":
        seconds += sum(_step_s(EXIT, 1, each + depth) for each in context for depth in range(count))
    return Run(draft, count, prompt, 7, seconds, drafted, emitted, context)


@pytest.fixture(scope="module")
def data() -> ProofData:
    runs = [
        _run(draft, count, prompt)
        for draft in ("lookup", "exit")
        for count in (0, 1, 3)
        for prompt in range(4)
    ]
    texts = {"target": TARGET.model_dump_json(), "exit": EXIT.model_dump_json()}
    cells = _cells(TARGET, TARGET.name) + _cells(EXIT, texts["exit"])
    facts = {
        "max_tokens": "40",
        "date": "2026-11-30",
        "device": "a processor",
        "system": "Linux",
        "engine": "torch",
        "temperature": "0.7",
        "exit_layers": "24",
    }
    return ProofData(facts, texts, cells, runs)


@pytest.fixture(scope="module")
def machine(data: ProofData) -> MachineFit:
    return fit_machine(data)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    for name, file in (("lookup", "smollm2_lookup_t0.7.npz"), ("exit", "smollm2_exit24_t0.7.npz")):
        (folder / f"{name}.npz").write_bytes((TRACES / file).read_bytes())
    return folder


def test_profile_holds_the_medians_of_the_cells(data: ProofData) -> None:
    profile = table_profile(data)
    assert {grid.model for grid in profile.grids} == {TARGET.name, EXIT.name}
    assert profile.grids[0].step_s[0] == pytest.approx(_step_s(TARGET, 1, 0))


def test_rounds_that_ran_cost_what_they_were_made_from(data: ProofData, traces: Path) -> None:
    # The grid is interpolated in logarithms, the made-up cost is not: a percent between the points.
    for one in compare(data, table_profile(data), traces):
        assert one.costed_speedup == pytest.approx(one.measured_speedup, rel=0.02)


def test_baseline_is_its_own_baseline(data: ProofData, traces: Path) -> None:
    for one in compare(data, table_profile(data), traces):
        if one.num_speculative_tokens == 0:
            assert one.measured_speedup == 1.0
            assert one.simulated_speedup == pytest.approx(1.0)
            assert one.interval == (1.0, 1.0)


def test_early_exit_costs_more_than_lookup_at_the_same_length(data: ProofData, traces: Path) -> None:
    drafted = {
        one.draft: one
        for one in compare(data, table_profile(data), traces)
        if one.num_speculative_tokens == 3
    }
    assert drafted["exit"].simulated_s > drafted["lookup"].simulated_s


def test_page_states_every_speed_up_and_survives_its_file(
    data: ProofData, machine: MachineFit, traces: Path, tmp_path: Path
) -> None:
    path = tmp_path / "measured.json"
    data.save(path)
    comparisons = compare(ProofData.load(path), machine.profile, traces)
    assert comparisons == compare(data, machine.profile, traces)
    text = page(data, machine, comparisons, figure="f.svg")
    assert table(comparisons) in text
    assert text.count("\n| Early exit |") == 3
    assert np.isfinite([one.simulated_error for one in comparisons]).all()


def _timed(data: ProofData, *, jump: float) -> ProofData:
    """Return a machine of the law, but for passes over two positions and more: longer by a factor."""
    device = RooflineProfile.model_validate(
        {
            "name": "made-up",
            "memory": {"bandwidth_bytes_per_s": 8e9, "capacity_bytes": 16e9},
            "peak_flops_per_s": {"float32": 5e10},
            "overhead": {"smooth_exponent": 2.0},
        }
    )
    steps = trace_of(pd.DataFrame(data.cells), file="cells", header={"device": "made-up"}).steps
    assert steps is not None
    time_s = Predictor(steps)(device).time_s * np.where(steps.num_positions > 1, jump, 1.0)
    pairs = zip(data.cells, time_s.tolist(), strict=True)
    return replace(data, cells=[{**cell, "t_gpu_us": 1e6 * each} for cell, each in pairs])


def test_kind_that_predicts_left_out_cells_better_is_used(data: ProofData) -> None:
    kinds = {jump: fit_machine(_timed(data, jump=jump)).profile.kind for jump in (1.0, 3.0)}
    assert kinds == {1.0: "roofline", 3.0: "table"}


def test_page_names_what_a_missed_speed_up_lacks(data: ProofData, machine: MachineFit) -> None:
    plain = _comparison(0, simulated=1.0, costed=1.0)
    lucky, wrong = _comparison(1, simulated=0.5, costed=0.98), _comparison(3, simulated=0.5, costed=0.5)
    text = " ".join(page(data, machine, [plain, lucky, wrong], figure="f.svg").split())
    assert "0 are simulated within 10 % (worst -50.0%" in text
    assert "What early exit, K = 1 lacks is acceptance: 1.50 tokens a round measured, 1.40" in text
    assert "What early exit, K = 3 lacks is step times: costing the rounds that ran leaves -50.0%" in text


def _comparison(count: int, *, simulated: float, costed: float) -> Comparison:
    return Comparison(
        draft="exit",
        num_speculative_tokens=count,
        measured_s=0.1,
        measured_speedup=1.0,
        interval=(0.9, 1.1),
        measured_length=1.5,
        simulated_s=0.1,
        simulated_speedup=simulated,
        simulated_length=1.4,
        costed_speedup=costed,
    )


@pytest.mark.parametrize(("slowdown", "code"), [(1.0, 0), (1.5, 1)])
def test_exit_code_is_1_where_step_times_do_not_explain_the_runs(
    data: ProofData, traces: Path, tmp_path: Path, slowdown: float, code: int
) -> None:
    folder = tmp_path / "measured"
    folder.mkdir()
    for name in ("lookup", "exit"):
        (folder / f"{name}.npz").write_bytes((traces / f"{name}.npz").read_bytes())
    settings = {key: str(value) for key, value in ProofSettings()}
    slow = [
        replace(run, decode_s=run.decode_s * (slowdown if run.num_speculative_tokens else 1.0))
        for run in data.runs
    ]
    measured = replace(data, facts={**data.facts, **settings}, runs=slow)
    for block in range(len(ProofSettings().domains)):
        measured.save(folder / f"block-{block}.json")
    written = tmp_path / "page.md"
    assert main(["unread.gguf", "--data", str(folder), "-o", str(written)]) == code
    assert written.read_text(encoding="utf-8").startswith("# Validation on a CPU")


def test_measurement_with_other_settings_is_not_taken_for_this_one(
    data: ProofData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in range(len(ProofSettings().domains)):
        data.save(tmp_path / f"block-{block}.json")
    assert main(["unread.gguf", "--data", str(tmp_path)]) == 2
    assert "was measured with other settings" in capsys.readouterr().err
