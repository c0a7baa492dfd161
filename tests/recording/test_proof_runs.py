"""The proof on a CPU from end to end, on a model small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from calibrate.proof_prediction import compare, fit_machine
from calibrate.proof_runs import ProofSettings, measure
from specsim.speculation.trace import Trace

SETTINGS = ProofSettings(
    domains=("chat", "code"),
    prompts_per_domain=1,
    num_continuations=2,
    max_tokens=6,
    lengths=(0, 2),
    exit_layers=2,
)


def test_measuring_goes_on_where_it_was_killed_and_gives_every_comparison(
    model_folder: Path, tmp_path: Path
) -> None:
    def die(text: str) -> None:
        if text == "block 2 of 2: cells":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(model_folder, SETTINGS, tmp_path, on_progress=die)
    told: list[str] = []
    data = measure(model_folder, SETTINGS, tmp_path, on_progress=told.append)
    assert not [text for text in told if text.startswith("block 1") or text == "recording traces"]
    assert {(run.draft, run.num_speculative_tokens, run.prompt) for run in data.runs} == {
        (draft, count, prompt) for draft in ("lookup", "exit") for count in (0, 2) for prompt in (0, 1)
    }
    assert len(compare(data, fit_machine(data).profile, tmp_path)) == 4
    assert Trace.load(tmp_path / "exit.npz").num_prompts == 2 * 2
    num_passes = {int(cell["rep"]) for cell in data.cells if int(cell["positions"]) < 64}
    assert len(num_passes) == 2 * 2
