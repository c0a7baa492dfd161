"""``specsim calibrate capture`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from calibrate import read_trace
from specsim.cli.capture import capture

app = typer.Typer()
app.command("capture")(capture)


def test_capture_of_two_random_models_is_a_trace(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    for name, layers in (("small", 1), ("large", 2)):
        config = {
            "name": name,
            "model_type": "llama",
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": layers,
            "num_attention_heads": 2,
            "vocab_size": 20,
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    output = tmp_path / "trace.csv"
    words = [str(tmp_path / "small.json"), str(tmp_path / "large.json"), "-o", str(output)]
    limits = ["--warmups", "0", "--repeats", "1", "--max-positions", "4", "--max-cached-tokens", "200"]
    done = CliRunner().invoke(app, [*words, *limits, "--device", "cpu"], catch_exceptions=False)
    assert done.exit_code == 0
    trace = read_trace(output)
    assert trace.steps is not None
    assert {model.num_layers for model in trace.steps.models} == {1, 2}
    assert trace.num_dropped == 0
    assert trace.header["device_timer"] == "CPU time of one thread"
