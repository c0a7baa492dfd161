"""The shipped traces: whole, small, real, of several domains."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from specsim.recording import acceptance_by_domain, load_prompt_set
from specsim.speculation.trace import Trace

FOLDER = Path(__file__).parents[2] / "scenarios" / "traces"
FILES = sorted(FOLDER.glob("*.npz"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_trace_is_whole_and_has_three_domains(file: Path) -> None:
    trace = Trace.load(file)
    assert trace.num_tokens >= 1999
    domains, counts = np.unique(trace.domain, return_counts=True)
    assert len(domains) >= 3
    assert counts.min() >= 6
    assert set(trace.ended_by.tolist()) <= {"eos", "recorder"}
    assert file.stat().st_size < (1_500_000 if trace.union_ids is not None else 150_000)


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


def test_2000_positions_of_the_five_scalars_take_13_kb() -> None:
    names = ("token", "p_token", "q_token", "overlap", "draft_entropy_nats")
    file = FOLDER / "smollm2_exit24_t0.7.npz"
    with zipfile.ZipFile(file) as archive:
        num_bytes = sum(archive.getinfo(f"{name}.npy").compress_size for name in names)
    assert num_bytes / Trace.load(file).num_tokens * 2000 < 13_500


PAIRS = [
    ("smollm2_lookup_t0.7", "smollm2_exit24_t0.7"),
    ("smollm2_lookup_more_t0.7", "smollm2_exit24_union64_t0.7"),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_both_drafts_follow_the_same_continuations(pair: tuple[str, str]) -> None:
    lookup, exit_24 = (Trace.load(FOLDER / f"{name}.npz") for name in pair)
    np.testing.assert_array_equal(lookup.token, exit_24.token)
    np.testing.assert_array_equal(lookup.p_token, exit_24.p_token)


def test_the_trace_holds_the_shipped_prompts() -> None:
    trace = Trace.load(FOLDER / "smollm2_lookup_t0.7.npz")
    domains = list(dict.fromkeys(trace.domain.tolist()))
    counts = [int(np.sum(trace.domain == domain)) for domain in domains]
    assert counts == [len(load_prompt_set(domain).prompts) for domain in domains]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_documented_acceptance_is_that_of_the_files(pair: tuple[str, str]) -> None:
    page = (FOLDER.parents[1] / "docs" / "traces.md").read_text()
    lookup, exit_24 = (acceptance_by_domain(Trace.load(FOLDER / f"{name}.npz")) for name in pair)
    for one, other in zip(lookup, exit_24, strict=True):
        estimates = (one.acceptance_rate, one.tokens_per_round, other.acceptance_rate, other.tokens_per_round)
        cells = [one.domain, str(one.num_prompts), f"{one.num_tokens:,}", f"{one.proposal_rate:.2f}"]
        cells += [
            f"{estimate.value:.2f} ({estimate.interval[0]:.2f}–{estimate.interval[1]:.2f})"
            for estimate in estimates
            if estimate.interval is not None
        ]
        assert f"| {' | '.join(cells)} |" in page


def test_lookup_helps_where_the_prompt_is_quoted() -> None:
    rows = acceptance_by_domain(Trace.load(FOLDER / "smollm2_lookup_t0.7.npz"))
    by_domain = {row.domain: row.acceptance_rate for row in rows}
    quoting, chatting = by_domain["documentation"].interval, by_domain["chat"].interval
    assert quoting is not None
    assert chatting is not None
    assert quoting[0] > chatting[1]


def test_acceptance_along_the_path_agrees_with_the_overlap() -> None:
    trace = Trace.load(FOLDER / "smollm2_exit24_t0.7.npz")
    assert trace.q_token is not None
    assert trace.overlap is not None
    difference = np.minimum(1.0, trace.q_token / trace.p_token) - trace.overlap
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(trace.num_tokens)


def test_traces_load_and_are_summed_up_without_torch() -> None:
    script = (
        "import sys; from specsim.recording import acceptance_by_domain;"
        "from specsim.speculation.trace import Trace;"
        f"[acceptance_by_domain(Trace.load(file)) for file in {[str(file) for file in FILES]}];"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=FOLDER.parents[1])
