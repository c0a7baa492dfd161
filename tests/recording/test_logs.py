"""Logs of accepted lengths: exact at the logged lengths, imputed and marked at others."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from specsim.arrays import Ints
from specsim.cli.app import app
from specsim.errors import ConfigError
from specsim.recording import LogSettings, acceptance_by_domain, read_log
from specsim.speculation import (
    BuildContext,
    Fixed,
    HeuristicSpec,
    LookaheadPolicy,
    PathRounds,
    Sequences,
    TraceSpec,
)
from specsim.speculation.logged import Imputation, Momentum
from specsim.speculation.recorded import RecordedPaths
from specsim.speculation.trace import Trace
from specsim.streams import RandomStreams

SPEC_BENCH = Path(__file__).parents[3] / "shared" / "data" / "specbench_vicuna7b" / "turns.csv"
needs_spec_bench = pytest.mark.skipif(not SPEC_BENCH.is_file(), reason="the shared measurements are not here")
NAMES = {"target": "t", "draft": "d", "temperature": 0.0}


def settings(**changes: object) -> LogSettings:
    return LogSettings(**(NAMES | {"num_prompt_tokens": 7} | changes))  # type: ignore[arg-type]


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def question(steps: list[int], lengths: list[int], category: str = "writing") -> dict[str, object]:
    choice = {"index": 0, "turns": ["a", "b"], "decoding_steps": steps, "accept_lengths": lengths}
    return {"question_id": 81, "category": category, "choices": [choice]}


def num_rounds(trace: Trace, policy: LookaheadPolicy, depth: int, imputation: Imputation = "none") -> Ints:
    paths = RecordedPaths(trace, imputation=imputation)
    count = trace.num_prompts
    rounds = PathRounds(
        paths,
        policy,
        streams=RandomStreams(3),
        num_output_tokens=np.full(count, 10**6),
        num_speculative_tokens=depth,
    )
    lengths = np.diff(trace.offsets)
    return np.array(
        [
            rounds.peek(
                Sequences(np.array([i]), np.array([1]), np.array([lengths[i] - 1])), horizon=10**6
            ).num_rounds
            for i in range(count)
        ]
    )


@pytest.fixture(scope="module")
def spec_bench() -> Trace:
    given = settings(method="sps_68m", target="vicuna-7b-v1.3", draft="vicuna-68m")
    return read_log(SPEC_BENCH, log_format="csv", settings=given)


@needs_spec_bench
def test_spec_bench_replayed_at_its_own_lengths_gives_its_own_rounds_turn_by_turn(spec_bench: Trace) -> None:
    with SPEC_BENCH.open() as file:
        steps = [int(row["decoding_steps"]) for row in csv.DictReader(file) if row["method"] == "sps_68m"]
    policy = HeuristicSpec(initial_tokens=5).build(BuildContext(num_speculative_tokens=64))
    assert num_rounds(spec_bench, policy, 64).tolist() == steps
    assert RecordedPaths(spec_bench).is_exact_for(policy, num_speculative_tokens=64)


@needs_spec_bench
def test_the_heuristic_reconstructs_the_logged_lengths(spec_bench: Trace, tmp_path: Path) -> None:
    with SPEC_BENCH.open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "sps_68m"]
    cut = tmp_path / "cut.csv"
    with cut.open("w") as file:
        writer = csv.DictWriter(file, ["accept_lengths", "category"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    again = read_log(cut, log_format="csv", settings=settings(heuristic_start=5))
    np.testing.assert_array_equal(again.logged_drafts, spec_bench.logged_drafts)


@needs_spec_bench
def test_the_imputation_predicts_the_other_half_past_the_depth_it_has_seen(spec_bench: Trace) -> None:
    with SPEC_BENCH.open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "sps_68m"]
    question_id = np.array([int(row["question_id"]) for row in rows])
    rounds, is_fitted = spec_bench.logged_rounds(), question_id % 2 == 0
    momentum = Momentum.fit(rounds.of_prompts(is_fitted).masked(4))
    others = rounds.of_prompts(~is_fitted)
    expected = momentum.expected_accepted(others.masked(4), others.drafted)
    # Both turns of a question, and both runs of it, go together.
    names, cluster = np.unique(question_id[others.prompt], return_inverse=True)
    miss = np.bincount(cluster, expected - others.accepted)
    size = np.bincount(cluster)
    mean = miss.sum() / size.sum()
    standard_error = np.sqrt(np.sum((miss - mean * size) ** 2)) / size.sum()
    assert len(names) > 100
    assert standard_error < 0.05
    assert abs(mean) < 1.96 * standard_error


@needs_spec_bench
def test_a_constant_acceptance_does_not_predict_the_other_half(spec_bench: Trace) -> None:
    rounds = spec_bench.logged_rounds()
    seen = rounds.masked(4)
    rate = seen.accepted.sum() / np.minimum(seen.accepted + 1, seen.drafted).sum()
    naive = rate * (1 - rate**rounds.drafted) / (1 - rate)
    assert naive.mean() < 0.9 * rounds.accepted.mean()


def test_spec_bench_lines_become_one_text_a_turn(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", question([2, 1], [3, 1, 2]), question([1], [4], category="maths"))
    trace = read_log(file, log_format="spec-bench", settings=settings(num_speculative_tokens=3))
    assert trace.domain.tolist() == ["writing", "writing", "maths"]
    assert np.diff(trace.offsets).tolist() == [5, 3, 5]
    assert trace.logged_rounds().accepted.tolist() == [2, 0, 1, 3]
    assert num_rounds(trace, Fixed(), 3).tolist() == [2, 1, 1]


def test_vllm_keeps_the_order_where_it_is_logged(tmp_path: Path) -> None:
    logged = {"per_step_accepted": [3, 0, 2], "per_step_drafted": [3, 3, 3]}
    response = {
        "usage": {"prompt_tokens": 50},
        "choices": [{"finish_reason": "length"}],
        "metrics": {"speculative_decoding": logged},
    }
    trace = read_log(write(tmp_path / "a.jsonl", response), log_format="vllm", settings=settings())
    assert trace.header.log == "in_order"
    assert trace.num_prompt_tokens.tolist() == [50]
    assert trace.ended_by.tolist() == ["cap"]
    assert trace.logged_rounds().accepted.tolist() == [3, 0, 2]


def test_counts_give_the_number_of_rounds_but_not_their_order(tmp_path: Path) -> None:
    logged = {"acceptance_histogram": [39, 1, 0, 3], "num_draft_tokens": 129, "num_spec_tokens": 3}
    response = {
        "usage": {"prompt_tokens": 50},
        "choices": [{"finish_reason": "stop"}],
        "metrics": {"speculative_decoding": logged},
    }
    trace = read_log(write(tmp_path / "a.jsonl", response), log_format="vllm", settings=settings())
    assert trace.header.log == "shuffled"
    assert num_rounds(trace, Fixed(), 3).tolist() == [43]
    assert not RecordedPaths(trace).is_exact_for(Fixed(), num_speculative_tokens=3)
    np.testing.assert_array_equal(np.bincount(trace.logged_rounds().accepted), [39, 1, 0, 3])


@pytest.mark.parametrize("name", ["spec_accept_histogram", "spec_correct_drafts_histogram"])
def test_sglang_counts_are_read_under_both_names(name: str, tmp_path: Path) -> None:
    meta = {"prompt_tokens": 9, "finish_reason": {"type": "stop"}, name: [2, 0, 1]}
    file = write(tmp_path / "a.jsonl", {"meta_info": meta})
    trace = read_log(file, log_format="sglang", settings=settings(num_speculative_tokens=2))
    assert trace.num_tokens == 1 + 2 + 3


def test_other_lengths_need_an_imputation_and_are_marked(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", question([6], [3, 1, 2, 3, 3, 1]))
    trace = read_log(file, log_format="spec-bench", settings=settings(num_speculative_tokens=2))
    with pytest.raises(ConfigError, match="other draft lengths than the lookahead drafts"):
        num_rounds(trace, Fixed(), 3)
    paths = RecordedPaths(trace, imputation="momentum")
    assert paths.is_exact_for(Fixed(), num_speculative_tokens=2)
    assert not paths.is_exact_for(Fixed(), num_speculative_tokens=3)
    assert 1 <= num_rounds(trace, Fixed(), 3, "momentum")[0] <= 12


def test_only_undrafted_positions_are_imputed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", question([3], [3, 1, 2]))
    trace = read_log(file, log_format="spec-bench", settings=settings(num_speculative_tokens=2))
    paths = RecordedPaths(trace, imputation="momentum")
    kept = paths.acceptance(np.zeros(7, dtype=np.int64), np.arange(7), 1)[:, 0]
    # Prefill's token; two kept and one never drafted; refused; one kept, then refused.
    assert kept[[1, 2, 4, 5, 6]].tolist() == [1, 1, 0, 1, 0]
    assert 0 < kept[3] < 1


def test_a_log_without_refusals_teaches_nothing(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", question([2], [3, 3]))
    trace = read_log(file, log_format="spec-bench", settings=settings(num_speculative_tokens=2))
    with pytest.raises(ValueError, match="no refused draft"):
        RecordedPaths(trace, imputation="momentum")


def test_only_a_log_can_be_imputed(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "scenarios" / "traces" / "smollm2_lookup_t0.7.npz"
    with pytest.raises(ConfigError, match="only a log"):
        TraceSpec(path=str(shipped), imputation="momentum").build(BuildContext(num_speculative_tokens=2))


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("{", {}, "a.jsonl:1: not JSON"),
        ("[1]", {}, "a.jsonl:1: not a JSON object"),
        ("\n", {}, "no text with rounds"),
        ('{"choices": []}', {}, "a.jsonl:1: not a record of a spec-bench log"),
        (json.dumps(question([2], [3])), {}, "1 accept_lengths for 2 decoding_steps"),
        (json.dumps(question([1], [9])), {}, "round 0 keeps 8 of 3 drafts"),
        (json.dumps(question([1], [0])), {}, "round 0 keeps -1 of 3 drafts"),
        (json.dumps(question([1], [3])), {"num_speculative_tokens": None}, "draft lengths are not logged"),
        (json.dumps(question([1], [3])), {"num_prompt_tokens": None}, "prompt lengths are not logged"),
        (json.dumps(question([1], [3])), {"num_speculative_tokens": 0}, "num_speculative_tokens: at least 1"),
    ],
)
def test_a_faulty_log_is_one_line(text: str, given: dict[str, object], message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_log(
            tmp_path / "a.jsonl",
            log_format="spec-bench",
            settings=settings(**({"num_speculative_tokens": 3} | given)),
        )
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_log_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00\x80")
    for name in ("a", "b"):
        with pytest.raises(ConfigError, match=f"{name}: "):
            read_log(tmp_path / name, log_format="csv", settings=settings())


def test_a_log_is_imported_saved_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.jsonl", question([2, 1], [3, 1, 2]))
    arguments = ["--format", "spec-bench", "--target", "t", "--draft", "d", "-k", "3", "--prompt-tokens", "9"]
    with pytest.raises(SystemExit) as ended:
        app(["trace", "import", str(file), "-o", str(tmp_path / "a.npz"), *arguments])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.npz'}: 2 texts, 3 rounds, 8 tokens\n"
    row = acceptance_by_domain(Trace.load(tmp_path / "a.npz"))[-1]
    assert row.acceptance_rate.value == pytest.approx(3 / 9)
    assert row.tokens_per_round.value == pytest.approx(6 / 3)
