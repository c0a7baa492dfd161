"""``specsim import-config``: other engines' flags and files, and the traps in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specsim.cli.app import main
from specsim.config import parse
from specsim.config.nodes import Plain
from specsim.scenario import Scenario, load_scenario, scenario_of

_MODELS = ("--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--hardware", "h100-sxm")
_RATE = ("--acceptance-rate", "0.7")


def _import(
    capsys: pytest.CaptureFixture[str],
    engine: str,
    *words: str,
    options: tuple[str, ...] = (*_MODELS, *_RATE),
) -> tuple[Scenario, str]:
    with pytest.raises(SystemExit) as caught:
        main(["import-config", "--from", engine, *options, *words])
    captured = capsys.readouterr()
    assert caught.value.code == 0, captured.err
    return scenario_of(parse(captured.out)), captured.out


def _refused(
    capsys: pytest.CaptureFixture[str],
    engine: str,
    *words: str,
    options: tuple[str, ...] = (*_MODELS, *_RATE),
) -> str:
    with pytest.raises(SystemExit) as caught:
        main(["import-config", "--from", engine, *options, *words])
    captured = capsys.readouterr()
    assert caught.value.code == 2
    assert captured.out == ""
    return captured.err


_SGLANG = (
    "--model-path",
    "x",
    "--speculative-algorithm",
    "STANDALONE",
    "--speculative-draft-model-path",
    "y",
)


def test_sglang_num_draft_tokens_is_the_verify_width(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*_SGLANG, "--speculative-num-steps", "3", "--speculative-eagle-topk", "1")
    scenario, text = _import(capsys, "sglang", "--", *words, "--speculative-num-draft-tokens", "4")
    assert scenario.num_speculative_tokens == 3
    assert "# num_draft_tokens 4 is the verify width: K = 3" in text


def test_sglang_sets_the_width_to_steps_plus_one_whatever_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (*_SGLANG, "--speculative-num-steps=5", "--speculative-eagle-topk=1")
    scenario, text = _import(capsys, "sglang", "--", *words, "--speculative-num-draft-tokens=16")
    assert scenario.num_speculative_tokens == 5
    assert "SGLang sets it to num_steps + 1 = 6" in text


def test_sglang_ngram_drafts_one_less_than_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--model-path", "x", "--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "8")
    scenario, _ = _import(capsys, "sglang", "--", *words)
    assert scenario.speculative_config is not None
    assert scenario.speculative_config.method == "ngram"
    assert scenario.num_speculative_tokens == 7


def test_sglang_draft_runs_at_the_targets_parallelism(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*_SGLANG, "--speculative-num-steps", "2", "--tp", "2", "--max-running-requests", "32")
    scenario, _ = _import(capsys, "sglang", "--", "python3", "-m", "sglang.launch_server", *words)
    assert scenario.target.tensor_parallel_size == 2
    assert scenario.speculative_config is not None
    assert scenario.speculative_config.draft_tensor_parallel_size == 2
    assert scenario.scheduler.max_num_seqs == 32


def test_sglang_without_speculation_is_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    scenario, _ = _import(capsys, "sglang", "--", "--model-path", "meta-llama/Llama-3.1-8B", options=_MODELS)
    assert scenario.speculative_config is None


def test_faults_of_one_configuration_come_all_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        *_SGLANG,
        "--speculative-eagle-topk",
        "4",
        "--speculative-num-drafts",
        "8",
        "--speculative-accept-threshold-acc",
        "0.9",
        "--tp",
        "none",
    )
    lines = _refused(capsys, "sglang", "--", *words).splitlines()
    assert len(lines) == 5
    text = "\n".join(lines)
    assert "speculative_eagle_topk: 4 drafts a tree" in text
    assert "did you mean 'speculative_num_draft_tokens'?" in text
    assert "accepts tokens that the target would not" in text
    assert "'none' is not a whole number" in text
    assert "speculative_num_steps: missing" in text


_TENSORRT: dict[str, Plain] = {
    "model": "meta-llama/Llama-3.1-8B",
    "tensor_parallel_size": 1,
    "max_batch_size": 64,
    "kv_cache_config": {"dtype": "fp8", "tokens_per_block": 32},
    "speculative_config": {"decoding_type": "Draft_Target", "max_draft_len": 4, "speculative_model": "y"},
}


def _file(folder: Path, **changed: Plain) -> str:
    config = _TENSORRT["speculative_config"]
    assert isinstance(config, dict)
    path = folder / "llm.yaml"
    path.write_text(json.dumps({**_TENSORRT, "speculative_config": {**config, **changed}}), encoding="utf-8")
    return str(path)


def test_tensorrt_llm_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, _ = _import(capsys, "tensorrt-llm", _file(tmp_path))
    assert scenario.num_speculative_tokens == 4
    assert scenario.target.kv_cache_dtype == "fp8"
    assert scenario.scheduler.block_size == 32
    assert scenario.scheduler.max_num_seqs == 64


def test_tensorrt_llm_schedule_is_by_largest_batch() -> None:
    from specsim.importers import IMPORTERS, Options

    schedule: Plain = {"4": 5, "32": 3}
    options = Options(
        {
            "model": "x",
            "speculative_config.decoding_type": "NGram",
            "speculative_config.max_draft_len": 5,
            "speculative_config.draft_len_schedule": schedule,
        },
        origin="test",
    )
    config = IMPORTERS["tensorrt-llm"](options).scenario["speculative_config"]
    assert isinstance(config, dict)
    ranges = config["num_speculative_tokens_per_batch_size"]
    assert isinstance(ranges, list)
    assert ranges[:2] == [[1, 4, 5], [5, 32, 3]]
    assert ranges[2][0] == 33  # type: ignore[index]
    assert ranges[2][2] == 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"draft_len_schedule": {"1": 4, "4": 2, "8": 0}}, "early form by smallest batch"),
        ({"draft_len_schedule": 4}, "is not a mapping"),
        ({"decoding_type": "Lookahead"}, "'Lookahead' has no counterpart"),
        ({"max_draft_len": 0}, "0 is not a whole number of at least 1"),
        ({"max_draft_length": 3}, "did you mean"),
    ],
)
def test_tensorrt_llm_traps_are_refused(
    changed: dict[str, Plain], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in _refused(capsys, "tensorrt-llm", _file(tmp_path, **changed))


def _generation(folder: Path, **values: Plain) -> str:
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"assistant_model": "y", **values}), encoding="utf-8")
    return str(path)


def test_transformers_defaults_are_twenty_tokens_and_a_threshold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, text = _import(capsys, "transformers", _generation(tmp_path))
    assert scenario.num_speculative_tokens == 20
    assert scenario.lookahead.model_dump() == {"kind": "confidence", "threshold": 0.4}
    assert "num_assistant_tokens is not given" in text
    assert scenario.speculative_config is not None
    assert scenario.speculative_config.draft_sample_method == "greedy"


def test_transformers_threshold_of_zero_drafts_a_constant_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _generation(
        tmp_path, num_assistant_tokens=5, assistant_confidence_threshold=0, do_sample=True, max_new_tokens=99
    )
    scenario, _ = _import(capsys, "transformers", path)
    assert scenario.lookahead.kind == "fixed"
    assert scenario.workload.output_tokens == 99
    assert scenario.speculative_config is not None
    assert scenario.speculative_config.draft_sample_method == "probabilistic"


def test_transformers_heuristic_needs_the_threshold_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on = _generation(tmp_path, num_assistant_tokens_schedule="heuristic")
    assert "a scenario has one policy: set 0" in _refused(capsys, "transformers", on)
    off = _generation(tmp_path, num_assistant_tokens_schedule="heuristic", assistant_confidence_threshold=0)
    scenario, _ = _import(capsys, "transformers", off)
    assert scenario.lookahead.kind == "heuristic"


def test_transformers_prompt_lookup_is_ngram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, _ = _import(
        capsys, "transformers", _generation(tmp_path, assistant_model=None, prompt_lookup_num_tokens=10)
    )
    assert scenario.speculative_config is not None
    assert scenario.speculative_config.method == "ngram"
    assert scenario.speculative_config.prompt_lookup_max == 2


_LLAMA = ("llama-server", "-m", "Llama-3.1-8B-Instruct-Q4_K_M.gguf", "-md", "Llama-3.2-1B-Instruct-Q8_0.gguf")


def test_llama_cpp_file_names_give_models_and_formats(capsys: pytest.CaptureFixture[str]) -> None:
    scenario, text = _import(
        capsys,
        "llama.cpp",
        "--",
        *_LLAMA,
        *("--draft-max", "8", "--draft-p-min", "0", "-np", "2", "-ngl", "99"),
        options=("--hardware", "rtx-4090", *_RATE),
    )
    assert scenario.target.model is not None
    assert scenario.target.model.name == "llama-3.1-8b"
    assert scenario.target.dtype == "int4"
    assert scenario.speculative_config is not None
    assert scenario.speculative_config.model is not None
    assert scenario.speculative_config.model.name == "llama-3.2-1b"
    assert scenario.speculative_config.quantization == "int8"
    assert scenario.workload.max_concurrency == 2
    assert scenario.lookahead.kind == "fixed"
    assert "# not read, without effect on a simulation: ngl" in text


@pytest.mark.parametrize(
    "names", [("--draft-max", "--draft-p-min"), ("--spec-draft-n-max", "--spec-draft-p-min")]
)
def test_llama_cpp_p_min_is_a_confidence_threshold(
    names: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, _ = _import(capsys, "llama.cpp", "--", *_LLAMA, names[0], "6", names[1], "0.75")
    assert scenario.num_speculative_tokens == 6
    assert scenario.lookahead.model_dump() == {"kind": "confidence", "threshold": 0.75}


def test_llama_cpp_p_min_must_be_given_and_draft_min_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    text = _refused(capsys, "llama.cpp", "--", *_LLAMA, "--draft-min", "3")
    assert "draft_p_min: missing: its default differs between releases" in text
    assert "draft_min: above 0 throws short drafts away" in text


def test_shell_script_is_read_and_written_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(
        "# my server\nllama-server -m a.gguf \\\n  --model-draft b.gguf --draft-max 4 --draft-p-min=0\n",
        encoding="utf-8",
    )
    output = tmp_path / "scenario.yaml"
    with pytest.raises(SystemExit) as caught:
        main(["import-config", "--from", "llama.cpp", *_MODELS, *_RATE, str(script), "-o", str(output)])
    assert caught.value.code == 0
    assert load_scenario(output).num_speculative_tokens == 4
    assert capsys.readouterr().out == ""


def test_setting_changes_the_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*_LLAMA, "--draft-p-min", "0")
    options = (*_MODELS, *_RATE, "--set", "workload.num_prompts=3")
    scenario, _ = _import(capsys, "llama.cpp", "--", *words, options=options)
    assert scenario.workload.num_prompts == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (_MODELS, "say where acceptance comes from"),
        ((*_MODELS, *_RATE, "--trace", "x.npz"), "one of --acceptance-rate and --trace"),
        (("--hardware", "h100-sxm", *_RATE), "no shape is known of 'mystery.gguf': give --target"),
        ((*_MODELS, "--acceptance-rate", "7"), "acceptance_rate"),
    ],
)
def test_what_no_engine_says_must_be_given(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("-m", "mystery.gguf", "-md", "b.gguf", "--draft-p-min", "0")
    text = _refused(capsys, "llama.cpp", "--", *words, options=options)
    assert message in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.sh", None, "cannot be read"),
        ("bad.sh", b"llama-server -m 'open", "is no command line"),
        ("binary.sh", bytes(range(128, 256)), "is no command line"),
        ("bad.yaml", b"a: [", "bad.yaml:1"),
    ],
)
def test_bad_file_is_one_line(
    name: str, content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    text = _refused(capsys, "llama.cpp", str(path))
    assert message in text
    assert len(text.splitlines()) == 1
