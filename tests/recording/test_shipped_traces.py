"""The shipped traces: whole, small, real, of several domains."""

from __future__ import annotations

import itertools
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from specsim.recording import acceptance_by_domain, load_prompt_set
from specsim.recording.prompt_sets import shipped_prompt_sets
from specsim.recording.summary import PromptRatio
from specsim.speculation.trace import Trace
from specsim.speculation.trace_prompts import of_domain

FOLDER = Path(__file__).parents[2] / "scenarios" / "traces"
FILES = sorted(FOLDER.glob("*.npz"))


DRAFTS = ("lookup", "exit24", "head")
TEMPERATURES = ("0.0", "0.3", "0.7", "1.0")


def shipped(draft: str, temperature: str) -> Trace:
    return Trace.load(FOLDER / f"smollm2_{draft}_t{temperature}.npz")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_trace_is_whole_and_has_many_domains(file: Path) -> None:
    trace = Trace.load(file)
    assert trace.num_tokens >= 1999
    domains, counts = np.unique(trace.domain, return_counts=True)
    assert len(domains) >= 4
    assert counts.min() >= 6
    assert set(trace.ended_by.tolist()) <= {"eos", "recorder"}
    assert file.stat().st_size < (1_500_000 if trace.union_ids is not None else 300_000)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("draft", DRAFTS)
def test_every_draft_was_recorded_at_every_temperature_on_all_shipped_prompts(
    draft: str, temperature: str
) -> None:
    trace = shipped(draft, temperature)
    pairs = list(zip(trace.domain.tolist(), trace.language.tolist(), strict=True))
    sets = [load_prompt_set(name) for name in shipped_prompt_sets()]
    assert {(one.domain, one.language): len(one.prompts) for one in sets} == {
        pair: pairs.count(pair) for pair in pairs
    }
    assert trace.header.temperature == float(temperature)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_trace_says_how_to_record_it_again(file: Path) -> None:
    header = Trace.load(file).header
    assert header.target == "SmolLM2-135M-Instruct.Q4_1"
    assert header.sha256["target"].startswith("b179c9523d0e6a0f")
    assert "written for specsim" in header.prompts
    assert f"t{header.temperature}" in file.stem


def test_shipped_traces_are_under_5_mb_in_all() -> None:
    assert FILES
    assert sum(file.stat().st_size for file in FILES) < 5_000_000


def test_2000_positions_of_the_five_scalars_take_about_10_kb() -> None:
    names = ("token", "p_token", "q_token", "overlap", "draft_entropy_nats")
    sizes = []
    for draft, temperature in itertools.product(("exit24", "head"), TEMPERATURES):
        file = FOLDER / f"smollm2_{draft}_t{temperature}.npz"
        with zipfile.ZipFile(file) as archive:
            num_bytes = sum(archive.getinfo(f"{name}.npy").compress_size for name in names)
        sizes.append(num_bytes / Trace.load(file).num_tokens * 2000)
    assert max(sizes) < 15_000
    assert np.mean(sizes) < 10_500


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_all_drafts_follow_the_same_continuations(temperature: str) -> None:
    lookup, *others = (shipped(draft, temperature) for draft in DRAFTS)
    for other in others:
        np.testing.assert_array_equal(lookup.token, other.token)
        np.testing.assert_array_equal(lookup.p_token, other.p_token)


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_documented_acceptance_is_that_of_the_files(draft: str) -> None:
    page = (FOLDER.parents[1] / "docs" / "traces.md").read_text()
    tables = [acceptance_by_domain(shipped(draft, temperature)) for temperature in TEMPERATURES]
    for rows in zip(*tables, strict=True):
        at_07 = rows[TEMPERATURES.index("0.7")]
        rates = [shown(row.acceptance_rate) for row in rows]
        assert f"| {' | '.join([at_07.domain, *rates, shown(at_07.tokens_per_round)])} |" in page


def shown(estimate: PromptRatio) -> str:
    assert estimate.interval is not None
    return f"{estimate.value:.2f} ({estimate.interval[0]:.2f}–{estimate.interval[1]:.2f})"


def test_lookup_helps_where_the_prompt_is_quoted() -> None:
    rows = acceptance_by_domain(shipped("lookup", "0.7"))
    by_domain = {row.domain: row.acceptance_rate for row in rows}
    quoting, chatting = by_domain["documentation"].interval, by_domain["chat"].interval
    assert quoting is not None
    assert chatting is not None
    assert quoting[0] > chatting[1]


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("draft", ["exit24", "head"])
def test_acceptance_along_the_path_agrees_with_the_overlap(draft: str, temperature: str) -> None:
    trace = shipped(draft, temperature)
    assert trace.q_token is not None
    assert trace.overlap is not None
    # A head drafts nothing for the first token: it waits for the target's hidden states.
    difference = np.minimum(1.0, trace.q_token / trace.p_token) - trace.overlap
    assert abs(difference.mean()) <= 4 * difference.std() / np.sqrt(trace.num_tokens) + 1e-4


def test_a_trained_head_accepts_more_than_an_exit_after_24_layers_in_chat_and_code() -> None:
    for domain in ("chat", "code"):
        head, exit_24 = (
            acceptance_by_domain(of_domain(shipped(draft, "0.7"), domains=[domain], languages=["en"]))[0]
            for draft in ("head", "exit24")
        )
        assert head.acceptance_rate.value is not None
        assert exit_24.acceptance_rate.value is not None
        assert head.acceptance_rate.value > exit_24.acceptance_rate.value


def test_traces_load_and_are_summed_up_without_torch() -> None:
    script = (
        "import sys; from specsim.recording import acceptance_by_domain;"
        "from specsim.speculation.trace import Trace;"
        f"[acceptance_by_domain(Trace.load(file)) for file in {[str(file) for file in FILES]}];"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=FOLDER.parents[1])


def test_the_documented_counts_are_those_of_the_files() -> None:
    page = (FOLDER.parents[1] / "docs" / "traces.md").read_text()
    traces = [shipped("lookup", temperature) for temperature in TEMPERATURES]
    cut = sum(int(np.sum(trace.ended_by == "recorder")) for trace in traces)
    assert f"{sum(trace.num_tokens for trace in traces):,} tokens" in page
    assert f"{cut} of the {sum(trace.num_prompts for trace in traces)} continuations" in page
