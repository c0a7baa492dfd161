"""The table of rules by what is known of p and q is what check accepts, cell for cell."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from specsim.engine.prepare import Prepared, prepare
from specsim.engine.round_source import check_rounds
from specsim.errors import ConfigError
from specsim.scenario import Scenario, load_scenario
from specsim.speculation import DRAFT_SOURCES, VERIFIERS, Trace
from specsim.speculation.ngram import counts_of_files, save_counts
from tests.oracles.text_law import every_text, pair_of_64ths
from tests.strategies import random_trace
from tests.verification.served import SOURCES, served

COLUMNS = ("rates", "trace", "union", "explicit", "ngram")
SCENARIO = """\
hardware: {target: {name: unit, kind: unit, target_step_s: 1 s, draft_cost_ratio: 0.1}}
speculative_config: {num_speculative_tokens: 2, draft_sample_method: probabilistic}
workload: {num_prompts: 2, max_concurrency: 2, prompt_tokens: 4, output_tokens: 8}
"""


def _certain(trace: Trace) -> Trace:
    """Return a trace as of a target at temperature 0."""
    trace.p_token = np.ones_like(trace.p_token)
    assert trace.draft_argmax is not None
    assert trace.overlap is not None
    trace.overlap = np.ones_like(trace.overlap)
    trace.p_at_draft_argmax = (trace.draft_argmax == trace.token).astype(np.float32)
    return trace


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "text.txt").write_text("one two three one two four one two three one four two one " * 3)
    counts, vocabulary = counts_of_files([folder / "text.txt"], order=2, most_words=9)
    save_counts(counts, folder / "counts.npz", vocabulary=vocabulary.words, source="text")
    random_trace(3, [9, 9]).save(folder / "trace.npz")
    _certain(random_trace(3, [9, 9])).save(folder / "trace0.npz")
    every_text(pair_of_64ths(1, size=3), 4)[0].save(folder / "union.npz")
    _certain(every_text(pair_of_64ths(1, size=3), 4)[0]).save(folder / "union0.npz")
    return folder


def _prepared(folder: Path, column: str, *, is_certain: bool) -> Prepared:
    cold, heat = ("0", 0) if is_certain else ("", 1)
    target = [1, 0, 0] if is_certain else [0.5, 0.3, 0.2]
    given = {
        "rates": "{kind: rates, acceptance_rate: .7}",
        "trace": f"{{kind: trace, path: {folder}/trace{cold}.npz}}",
        "union": f"{{kind: trace, path: {folder}/union{cold}.npz}}",
        "explicit": f"{{kind: explicit, target: {target}, draft: [.2, .3, .5]}}",
        "ngram": f"{{kind: ngram, path: {folder}/counts.npz, draft_order: 1, temperature: {heat}}}",
    }
    return prepare(load_scenario(SCENARIO, overrides=[f"distributions={given[column]}"]))


@cache
def _named(rule: str, source: str) -> Scenario:
    settings = ", lenience: .5" if rule == "lenience" else ""
    overrides = [f"verifier={{kind: {rule}{settings}}}", f"draft_source={source}"]
    return load_scenario(
        f"{SCENARIO}distributions: {{kind: rates, acceptance_rate: .7}}\n", overrides=overrides
    )


def _is_served(prepared: Prepared, rule: str, source: str) -> bool:
    named = _named(rule, source)
    update = {"verifier": named.verifier, "draft_source": named.draft_source}
    try:
        check_rounds(replace(prepared, scenario=prepared.scenario.model_copy(update=update)))
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("column", COLUMNS)
def test_the_table_of_rules_by_distributions_is_what_check_accepts(column: str, files: Path) -> None:
    table = served()
    assert sorted(table) == list(VERIFIERS.kinds())
    assert sorted(SOURCES) == list(DRAFT_SOURCES.kinds())
    for rule, cells in table.items():
        prepared = _prepared(files, column, is_certain=rule == "greedy")
        accepted = {
            kind for kind, ways in SOURCES.items() if any(_is_served(prepared, rule, way) for way in ways)
        }
        assert accepted == cells[min(COLUMNS.index(column), 3)], (rule, column)


@pytest.mark.parametrize("column", ["trace", "union", "explicit", "ngram"])
def test_greedy_verification_is_refused_where_the_target_is_not_certain(column: str, files: Path) -> None:
    prepared = _prepared(files, column, is_certain=False)
    assert not _is_served(prepared, "greedy", "{kind: chain}")
    assert _is_served(prepared, "token", "{kind: chain}")
