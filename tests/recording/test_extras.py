"""Beside the scalars: unions for re-warping, tails after rejections, drafts of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specsim.errors import ConfigError
from specsim.speculation import BuildContext, ConfidenceSpec, PathRounds
from specsim.speculation.recorded import RecordedPaths
from specsim.speculation.rewarp import rewarp_draft
from specsim.speculation.trace import Trace
from specsim.speculation.trace_codec import ENTROPY_STEPS
from specsim.streams import RandomStreams
from tests.strategies import random_trace

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.recording import (  # noqa: E402
    LanguageModel,
    PromptLookup,
    PromptSet,
    RecordedDraft,
    RecordingSettings,
    early_exit,
    record,
)
from specsim.recording.drafts import module_draft  # noqa: E402
from specsim.recording.extras import NO_EXTRAS, Extras  # noqa: E402
from specsim.recording.named_drafts import named_draft  # noqa: E402
from specsim.recording.warp import Warp  # noqa: E402

PROMPTS = PromptSet(
    name="words", domain="chat", language="en", source="the test", prompts=("w1 w2 w3", "w5", "w7 w8 w9 w7")
)


def recorded(target: LanguageModel, draft: RecordedDraft, tmp_path: Path, temperature: float = 0.8) -> Trace:
    settings = RecordingSettings(temperature=temperature, max_tokens=20, seed=5)
    (trace,) = record(target, [draft], [PROMPTS], settings)
    trace.save(tmp_path / "trace.npz")
    return Trace.load(tmp_path / "trace.npz")


def test_a_union_and_the_mass_outside_give_the_overlap(target: LanguageModel, tmp_path: Path) -> None:
    draft = early_exit(target, 2, Warp(1.0), extras=Extras(union_size=4))
    trace = recorded(target, draft, tmp_path)
    assert trace.union_ids is not None
    assert trace.log_p is not None
    assert trace.log_q is not None
    assert trace.tail_overlap is not None
    assert trace.overlap is not None
    assert trace.union_ids.shape[1] == 8
    inside = np.where(trace.union_ids >= 0, np.minimum(np.exp(trace.log_p), np.exp(trace.log_q)), 0.0)
    np.testing.assert_allclose(inside.sum(1) + trace.tail_overlap, trace.overlap, atol=3e-3)


@pytest.mark.parametrize("temperature", [0.6, 1.4])
def test_a_rewarped_draft_is_the_draft_recorded_at_that_temperature(
    target: LanguageModel, tmp_path: Path, temperature: float
) -> None:
    with_union = early_exit(target, 2, Warp(1.0), extras=Extras(union_size=12))
    rewarped = rewarp_draft(recorded(target, with_union, tmp_path), temperature)
    direct = recorded(target, early_exit(target, 2, Warp(temperature)), tmp_path)
    assert rewarped.trace.overlap is not None
    assert direct.overlap is not None
    np.testing.assert_array_equal(rewarped.trace.token, direct.token)
    assert np.all(np.abs(rewarped.trace.overlap - direct.overlap) <= rewarped.overlap_error + 4e-3)
    assert rewarped.overlap_error.mean() < 0.02


def test_a_greedy_tail_is_what_the_draft_goes_on_to_say(target: LanguageModel, tmp_path: Path) -> None:
    draft = early_exit(target, 2, Warp(1.0), draft_sample_method="greedy", extras=Extras(num_tail_tokens=3))
    trace = recorded(target, draft, tmp_path)
    assert trace.tail_token is not None
    assert trace.tail_top_probability is not None
    assert trace.tail_entropy_nats is not None
    assert trace.draft_argmax is not None
    is_kept = trace.draft_argmax == trace.token
    np.testing.assert_array_equal((trace.tail_token >= 0).all(axis=1), ~is_kept)
    for prompt in range(trace.num_prompts):
        before = target.encode(PROMPTS.prompts[prompt], style="chat").tolist()
        first = int(trace.offsets[prompt])
        for at in range(first, int(trace.offsets[prompt + 1])):
            text = [*before, *trace.token[first:at].tolist(), int(trace.draft_argmax[at])]
            for ahead in range(0 if is_kept[at] else 3):
                with torch.no_grad():
                    law = torch.softmax(
                        draft.network(torch.tensor([text]), use_cache=False).logits[0, -1], -1
                    )
                assert int(law.argmax()) == trace.tail_token[at, ahead]
                assert float(law.max()) == pytest.approx(trace.tail_top_probability[at, ahead], rel=2e-3)
                assert float(torch.special.entr(law).sum()) == pytest.approx(
                    trace.tail_entropy_nats[at, ahead], abs=0.5 / ENTROPY_STEPS + 1e-4
                )
                text.append(int(law.argmax()))


def test_a_sampled_tail_is_where_something_can_be_rejected(target: LanguageModel, tmp_path: Path) -> None:
    draft = early_exit(target, 2, Warp(1.0), extras=Extras(num_tail_tokens=2, seed=1))
    trace = recorded(target, draft, tmp_path)
    assert trace.tail_token is not None
    assert (trace.tail_token >= 0).mean() > 0.9
    # A target that drafts for itself is never rejected.
    (own,) = record(
        target,
        [module_draft("own", _Whole(target), Warp(0.8), extras=Extras(num_tail_tokens=2))],
        [PROMPTS],
        RecordingSettings(temperature=0.8, max_tokens=8),
    )
    assert own.tail_token is not None
    assert np.all(own.tail_token == -1)


class _Whole(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
    """A module that gives logits at every token, as a tensor."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.network = model.network

    def forward(self, input_ids: object, use_cache: bool, logits_to_keep: int) -> object:
        return self.network(input_ids, use_cache=False).logits


def test_a_module_of_ones_own_drafts(target: LanguageModel, tmp_path: Path) -> None:
    trace = recorded(target, module_draft("own", _Whole(target), Warp(0.8)), tmp_path)
    assert trace.header.draft == "own"
    assert trace.overlap is not None
    np.testing.assert_allclose(trace.overlap, 1.0, atol=1e-3)


def test_a_module_is_named_by_package_and_function(
    target: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_draft.py").write_text(
        "import torch\n"
        "class Uniform(torch.nn.Module):\n"
        "    def __init__(self, size):\n"
        "        super().__init__()\n"
        "        self.logits = torch.nn.Parameter(torch.zeros(size))\n"
        "    def forward(self, input_ids, **_):\n"
        "        return self.logits.expand(*input_ids.shape, -1)\n"
        "def build(network):\n"
        "    return Uniform(network.config.vocab_size)\n"
        "def broken(network):\n"
        "    return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    given = {"method": "probabilistic", "lookup": PromptLookup(), "extras": NO_EXTRAS}
    draft = named_draft("module:my_draft:build", target, Warp(1.0), **given)  # type: ignore[arg-type]
    trace = recorded(target, draft, tmp_path)
    assert trace.q_token is not None
    np.testing.assert_allclose(trace.q_token, 1 / 24, rtol=1e-3)
    for word, message in (
        ("module:my_draft:broken", "gave a int, not a torch module"),
        ("module:my_draft:absent", "no attribute 'absent'"),
        ("module:no_such_package:build", "No module named"),
    ):
        with pytest.raises(ConfigError, match=message):
            named_draft(word, target, Warp(1.0), **given)  # type: ignore[arg-type]


def test_signals_past_a_rejection_are_those_of_the_tail() -> None:
    trace = random_trace(3, [6])
    trace.tail_token = np.full((6, 2), 7, dtype=np.int32)
    trace.tail_token[3] = -1
    trace.tail_top_probability = np.arange(12, dtype=np.float32).reshape(6, 2) / 20
    trace.tail_entropy_nats = trace.tail_top_probability + 1
    trace.check()
    paths = RecordedPaths(trace, num_speculative_tokens=3)
    assert paths.records_tails
    zero = np.zeros(3, dtype=np.int64)
    seen = paths.drafted_signals(zero, np.array([1, 2, 1]), 3, np.array([0, 1, 3]))
    top = trace.draft_top_probability
    assert top is not None
    np.testing.assert_allclose(seen.top_probability[0], [top[1], 2 / 20, 3 / 20], rtol=1e-6)
    np.testing.assert_allclose(seen.top_probability[1], [top[2], top[3], np.nan], rtol=1e-6)
    np.testing.assert_allclose(seen.top_probability[2], top[1:4], rtol=1e-6)
    np.testing.assert_allclose(seen.entropy_nats[0, 1:], [1 + 2 / 20, 1 + 3 / 20], rtol=1e-6)


def test_a_confidence_rule_is_exact_with_tails_and_approximate_without() -> None:
    trace = random_trace(3, [40])
    context = BuildContext(num_speculative_tokens=3, draft_sample_method="probabilistic")
    policy = ConfidenceSpec(threshold=0.6).build(context)

    def rounds(depth: int) -> PathRounds:
        return PathRounds(
            RecordedPaths(trace, num_speculative_tokens=depth),
            policy,
            streams=RandomStreams(0),
            num_output_tokens=np.array([40]),
            num_speculative_tokens=depth,
        )

    assert rounds(3).is_approximate
    trace.tail_token = np.full((40, 2), 7, dtype=np.int32)
    trace.tail_top_probability = np.full((40, 2), 0.5, dtype=np.float32)
    trace.tail_entropy_nats = np.full((40, 2), 1.0, dtype=np.float32)
    assert not rounds(3).is_approximate
    # Two tokens of tail follow rounds of at most three drafts.
    assert rounds(4).is_approximate
