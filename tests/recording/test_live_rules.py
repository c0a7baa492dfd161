"""Every rule and draft source on live models: each runs, and each lossless one emits the target's law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from specsim.arrays import Floats
from specsim.engine.simulate import simulate
from specsim.errors import ConfigError
from specsim.scenario import load_scenario
from specsim.scenario.kinds import verifier_named
from specsim.speculation import (
    VERIFIERS,
    BuildContext,
    ChainDraft,
    DraftSource,
    DynamicTreeDraft,
    IndependentChainsDraft,
    LookupDraft,
    Prefixes,
    TreeDraft,
    TreeShape,
)
from specsim.speculation.prove import Subject, round_law

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.recording import LanguageModel, load_language_model  # noqa: E402
from specsim.recording.drafts import model_draft  # noqa: E402
from specsim.recording.live import LivePair  # noqa: E402
from specsim.recording.warp import Warp  # noqa: E402
from tests.recording.conftest import save_gguf, save_model  # noqa: E402
from tests.verification.served import SOURCES, served  # noqa: E402

WORDS = ["w1", "w2", "w3"]
PROMPT = "w1 w2 w3 w1 w2"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[LanguageModel, LanguageModel]:
    """Target and draft over seven tokens."""
    folder = tmp_path_factory.mktemp("small")
    paths = [save_model(folder / str(seed), words=WORDS, seed=seed) for seed in (3, 4)]
    target, draft = (load_language_model(path, device="cpu") for path in paths)
    return target, draft


class _Remembered:
    """A live pair on one prompt that is asked once about each text, so that enumerations end."""

    offers: Literal["conditional"] = "conditional"

    def __init__(self, pair: LivePair) -> None:
        self._pair = pair
        self.num_context_tokens = pair.num_context_tokens
        self.vocabulary_size, self.eos_token_id = pair.vocabulary_size, pair.eos_token_id
        self._target: dict[bytes, Floats] = {}
        self._draft: dict[bytes, Floats] = {}

    def target(self, prefix: Prefixes) -> Floats:
        return _asked_once(self._target, self._pair.target, prefix)

    def draft(self, prefix: Prefixes) -> Floats:
        return _asked_once(self._draft, self._pair.draft, prefix)


def _asked_once(known: dict[bytes, Floats], ask: Callable[[Prefixes], Floats], prefix: Prefixes) -> Floats:
    texts, first, back = np.unique(prefix.tokens, axis=0, return_index=True, return_inverse=True)
    new = [row for row, text in zip(first.tolist(), texts, strict=True) if text.tobytes() not in known]
    if new:
        asked = Prefixes(np.zeros(len(new), dtype=np.int64), prefix.position[new], prefix.tokens[new])
        known.update(zip((text.tobytes() for text in asked.tokens), ask(asked), strict=True))
    return np.stack([known[text.tobytes()] for text in texts])[back.ravel()]


def _pair(
    models: tuple[LanguageModel, LanguageModel], *, temperature: float, top_k: int | None = None
) -> _Remembered:
    target, draft = models
    live = LivePair(
        target,
        model_draft(target, draft, Warp(temperature)),
        [target.encode(PROMPT, style="chat")],
        warp=Warp(temperature, top_k),
        max_tokens=4,
        num_speculative_tokens=4,
    )
    return _Remembered(live)


def _plain_law(model: LanguageModel, tokens: list[int], warp: Warp) -> np.ndarray:
    with torch.no_grad():
        ids = torch.tensor([[*model.encode(PROMPT, style="chat").tolist(), *tokens]])
        return warp(model.network(ids).logits[0, -1:])[0].double().numpy()  # type: ignore[no-any-return]


def _source(name: str, pair: _Remembered) -> DraftSource:
    made: dict[str, DraftSource] = {
        "chain": ChainDraft(pair, num_tokens=1),
        "chain of 2": ChainDraft(pair, num_tokens=2),
        "greedy chain": ChainDraft(pair, num_tokens=2, is_greedy=True),
        "distinct": TreeDraft(pair, TreeShape.of_branching([2]), siblings="distinct"),
        "certain": TreeDraft(pair, TreeShape.of_branching([2, 2]), siblings="certain"),
        "eagle2": DynamicTreeDraft(pair, num_nodes=4, depth=2, top_k=2),
        "chains": IndependentChainsDraft(pair, num_chains=2, length=1),
        "lookup": LookupDraft(
            num_tokens=2, longest=1, shortest=1, window_tokens=4, vocabulary_size=pair.vocabulary_size
        ),
    }
    return made[name]


THIN = [
    ("token", "chain"),
    ("block", "greedy chain"),
    ("candidates", "distinct"),
    ("recursive", "chains"),
    ("kseq", "chains"),
    ("optimal", "chain"),
]
FULL = [
    ("block", "chain of 2"),
    ("candidates", "certain"),
    ("token", "chain of 2"),
    ("token", "greedy chain"),
    ("token", "lookup"),
    ("sampler_match", "chain of 2"),
    ("recursive", "distinct"),
    ("recursive", "eagle2"),
    ("candidates", "eagle2"),
    ("optimal", "distinct"),
    ("greedy", "chain of 2"),
    ("greedy", "eagle2"),
]


@pytest.mark.parametrize(
    ("rule", "source"), [*THIN, *(pytest.param(*case, marks=pytest.mark.verification) for case in FULL)]
)
def test_a_lossless_rule_on_live_models_emits_the_targets_law(
    small: tuple[LanguageModel, LanguageModel], rule: str, source: str
) -> None:
    temperature = 0.0 if rule == "greedy" else 1.0
    pair = _pair(small, temperature=temperature, top_k=2)
    verifier = verifier_named(rule).build(BuildContext(num_speculative_tokens=2))
    law = round_law(Subject(pair, _source(source, pair), verifier))
    size = pair.vocabulary_size
    assert law.total_variation < 1e-5
    for first, emitted in zip(law.first.tolist(), law.emitted, strict=True):
        due = _plain_law(small[0], [first], Warp(temperature, 2))
        np.testing.assert_allclose(emitted.reshape(size, -1).sum(axis=1), due, atol=1e-5)


def _scenario(folders: Mapping[str, object], rule: str, source: str) -> str:
    settings = ", lenience: .5" if rule == "lenience" else ""
    return f"""\
hardware: {{target: {{name: unit, kind: unit, target_step_s: 1 s, draft_cost_ratio: 0.1}}}}
speculative_config: {{num_speculative_tokens: 2, draft_sample_method: probabilistic}}
distributions:
  {{kind: live, target: {folders["target"]}, draft: {folders["draft"]}, prompts: [{folders["prompts"]}],
    temperature: {0 if rule == "greedy" else 1}, max_tokens: 12}}
verifier: {{kind: {rule}{settings}}}
draft_source: {source}
workload: {{num_prompts: 2, max_concurrency: 2, prompt_tokens: 4, output_tokens: 6}}
"""


@pytest.fixture(scope="module")
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models and prompts on disk, by their keys in a scenario."""
    folder = tmp_path_factory.mktemp("saved")
    prompts = folder / "words.yaml"
    prompts.write_text(
        "name: w\ndomain: chat\nlanguage: en\nsource: the test\nstyle: plain\nprompts: [w1 w2 w3 w1, w2 w2]\n"
    )
    if request.param == "gguf":
        paths = {name: save_gguf(folder / f"{name}.gguf", seed=len(name)) for name in ("target", "draft")}
    else:
        paths = {name: save_model(folder / name, words=WORDS, seed=len(name)) for name in ("target", "draft")}
    return paths | {"prompts": prompts}


THIN_RUNS = [("folders", "optimal"), ("gguf", "block")]
FULL_RUNS = [case for case in product(("folders", "gguf"), VERIFIERS.kinds()) if case not in THIN_RUNS]


@pytest.mark.parametrize(
    ("saved", "rule"),
    [*THIN_RUNS, *(pytest.param(*case, marks=pytest.mark.verification) for case in FULL_RUNS)],
    indirect=["saved"],
)
def test_every_rule_runs_on_live_models_with_every_draft_that_it_is_stated_for(
    saved: dict[str, Path], rule: str
) -> None:
    accepted = {
        kind for kind, ways in SOURCES.items() if any(_runs(_scenario(saved, rule, way)) for way in ways)
    }
    assert accepted == served()[rule][-1]


def _runs(text: str) -> bool:
    try:
        result = simulate(load_scenario(text))
    except ConfigError as error:
        if "not stated for drafts whose siblings" not in str(error):
            raise
        return False
    return bool((result.rounds["num_emitted"] >= 1).all())
