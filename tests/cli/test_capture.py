"""``specsim calibrate capture`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from calibrate import read_trace
from specsim.cli.app import main
from specsim.cli.capture import capture

app = typer.Typer()
app.command("capture")(capture)


def _capture(tmp_path: Path, **changed: object) -> int:
    config = {
        "name": "small",
        "model_type": "llama",
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "vocab_size": 20,
    }
    (tmp_path / "small.json").write_text(json.dumps(config | changed))
    words = ["calibrate", "capture", str(tmp_path / "small.json"), "-o", str(tmp_path / "trace.csv")]
    with pytest.raises(SystemExit) as raised:
        main(
            [
                *words,
                "--device",
                "cpu",
                "--repeats",
                "1",
                "--max-positions",
                "4",
                "--max-cached-tokens",
                "200",
            ]
        )
    assert isinstance(raised.value.code, int)
    return raised.value.code


def test_output_that_is_there_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "trace.csv").write_text("precious")
    assert _capture(tmp_path) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'trace.csv'}: is there already\n"
    assert (tmp_path / "trace.csv").read_text() == "precious"


@pytest.mark.parametrize("changed", [{"hidden_size": -4}, {"vocab_size": "many"}, {"model_type": "mamba"}])
def test_wrong_config_is_refused_in_one_line(
    tmp_path: Path, changed: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    assert _capture(tmp_path, **changed) == 2
    said = capsys.readouterr().err
    assert next(iter(changed)) in said
    assert len(said.splitlines()) == 1


def test_weights_beyond_the_memory_are_refused_before_they_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    assert _capture(tmp_path, hidden_size=1 << 16, intermediate_size=1 << 22, num_hidden_layers=100) == 3
    assert "exceed the" in capsys.readouterr().err


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
