"""The proof on a CPU, its predicting half, on times made from a known cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrate.cpu_proof import page, table
from calibrate.proof_prediction import compare, table_profile
from calibrate.proof_runs import ProofData, Run
from specsim.hardware import ModelSpec, load_model

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
    for one in compare(data, traces):
        assert one.costed_speedup == pytest.approx(one.measured_speedup, rel=0.02)


def test_baseline_is_its_own_baseline(data: ProofData, traces: Path) -> None:
    for one in compare(data, traces):
        if one.num_speculative_tokens == 0:
            assert one.measured_speedup == 1.0
            assert one.simulated_speedup == pytest.approx(1.0)
            assert one.interval == (1.0, 1.0)


def test_early_exit_costs_more_than_lookup_at_the_same_length(data: ProofData, traces: Path) -> None:
    drafted = {one.draft: one for one in compare(data, traces) if one.num_speculative_tokens == 3}
    assert drafted["exit"].simulated_s > drafted["lookup"].simulated_s


def test_page_states_every_speed_up_and_survives_its_file(
    data: ProofData, traces: Path, tmp_path: Path
) -> None:
    path = tmp_path / "measured.json"
    data.save(path)
    comparisons = compare(ProofData.load(path), traces)
    assert comparisons == compare(data, traces)
    text = page(data, comparisons, figure="f.svg")
    assert table(comparisons) in text
    assert text.count("\n| Early exit |") == 3
    assert np.isfinite([one.simulated_error for one in comparisons]).all()
