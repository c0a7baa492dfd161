"""Prompts that the target writes itself from their first words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specsim.cli.app import main
from specsim.errors import ConfigError
from specsim.recording.templates import load_templates

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.recording import LanguageModel
from specsim.recording.openings import complete_openings

OPENINGS = ("", "w1 w2", "w7")


def completed(
    target: LanguageModel,
    parts: Path,
    *,
    count: int = 10,
    openings: tuple[str, ...] = OPENINGS,
    seed: int = 0,
) -> list[str]:
    return complete_openings(target, openings, count, batch_size=4, seed=seed, parts=parts)


def test_a_prompt_goes_on_with_an_opening_and_not_with_its_end(target: LanguageModel, tmp_path: Path) -> None:
    prompts = completed(target, tmp_path, openings=("w1 w2",))
    assert len(prompts) > 5
    assert len(set(prompts)) == len(prompts)
    assert all(prompt.startswith("w1 w2") for prompt in prompts)
    assert not any("</s>" in prompt for prompt in prompts)


def test_an_opening_is_an_unfinished_turn_of_the_chat_template(target: LanguageModel) -> None:
    turn = target.encode("w1 w2", style="chat")
    opening = target.encode_opening("w1 w2")
    np.testing.assert_array_equal(turn[: len(opening)], opening)


def test_finished_batches_are_read_and_those_of_other_openings_refused(
    target: LanguageModel, tmp_path: Path
) -> None:
    first = completed(target, tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(stamps) == 3
    (tmp_path / "prompts-0001.json").unlink()
    assert completed(target, tmp_path) == first
    again = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert again.keys() == stamps.keys()
    assert sum(stamps[path] != stamp for path, stamp in again.items()) == 1
    for fault in ('["w0"]', "{", '["w1", "w2", "w3", 4]'):
        (tmp_path / "prompts-0000.json").write_text(fault)
        with pytest.raises(ConfigError, match=r"prompts-0000\.json: prompts of other openings"):
            completed(target, tmp_path)


def test_nothing_to_complete_is_nothing(target: LanguageModel, tmp_path: Path) -> None:
    assert completed(target, tmp_path, openings=(), count=0) == []


def test_templates_without_openings_are_refused_before_the_target_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    templates = tmp_path / "templates.yaml"
    templates.write_text("source: the test\ntemplates: [w1]\nfills: {}\n")
    flags = ["--templates", str(templates), "--num-prompts", "1", "-o", str(tmp_path / "head")]
    with pytest.raises(SystemExit) as ended:
        main(["record", "train-draft", str(tmp_path / "no-model"), *flags])
    assert ended.value.code == 2
    assert "templates.yaml: no 'openings' to complete" in capsys.readouterr().err


def test_no_shipped_opening_begins_a_recorded_prompt_as_a_whole() -> None:
    from specsim.recording.prompt_sets import load_prompt_set, shipped_prompt_sets

    recorded = {text for name in shipped_prompt_sets() for text in load_prompt_set(name).prompts}
    openings = load_templates().openings
    assert len(openings) > 50
    assert max(len(opening.split()) for opening in openings) <= 10
    assert not recorded & set(openings)
