"""What is recorded is what the models say: checked on a tiny random model against direct computation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from specsim.errors import ConfigError, DomainError
from specsim.speculation.trace import Trace
from specsim.speculation.trace_codec import ENTROPY_STEPS
from specsim.speculation.warpers import warp as numpy_warp

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.recording import (  # noqa: E402
    LanguageModel,
    PromptLookup,
    PromptSet,
    RecordedDraft,
    RecordingSettings,
    early_exit,
    load_language_model,
    model_draft,
    record,
)
from specsim.recording.warp import Warp  # noqa: E402

PROMPTS = PromptSet(
    name="words",
    domain="chat",
    language="en",
    source="the test",
    prompts=("w1 w2 w3 w4 w1 w2", "w5", "w7 w8 w9 w7 w8 w9 w7 w8", "w3 w3 w3", "w11 w0 w2"),
)
LAWS = [
    {"temperature": 1.0},
    {"temperature": 0.7},
    {"temperature": 0.0},
    {"temperature": 0.9, "top_k": 5},
    {"temperature": 1.3, "top_p": 0.8},
    {"temperature": 1.1, "top_k": 12, "top_p": 0.9},
]


def record_one(
    target: LanguageModel, draft: RecordedDraft, *, parts: Path | None = None, **settings: float
) -> Trace:
    chosen = RecordingSettings.model_validate({"max_tokens": 24, "batch_size": 2, "seed": 5, **settings})
    (trace,) = record(target, [draft], [PROMPTS], chosen, parts=parts)
    return trace


def warped_laws(
    model: LanguageModel, trace: Trace, prompt: int, law: dict[str, float]
) -> NDArray[np.float64]:
    """Distributions along a prompt's path by one plain pass and the simulator's own warpers, [N, V]."""
    token = trace.token[trace.offsets[prompt] : trace.offsets[prompt + 1]]
    ids = [*model.encode(PROMPTS.prompts[prompt], style="chat"), *token]
    with torch.no_grad():
        logits = model.network(torch.tensor([ids])).logits[0, -len(token) - 1 : -1].double().numpy()
    # Ids that only pad a vocabulary can never be drafted.
    logits = logits[:, : trace.header.vocabulary_size]
    return np.array(
        [
            numpy_warp(
                row,
                temperature_value=law["temperature"],
                top_k_value=law.get("top_k"),
                top_p_value=law.get("top_p", 1.0),
            )
            for row in logits
        ]
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_recorded_overlap_equals_the_sum_of_minima(
    target: LanguageModel, other: LanguageModel, law: dict[str, float], tmp_path: Path
) -> None:
    draft_law = {"temperature": law["temperature"]}
    trace = record_one(target, model_draft(target, other, Warp(law["temperature"])), **law)
    trace.save(tmp_path / "trace.npz")
    stored = Trace.load(tmp_path / "trace.npz")
    for prompt in range(stored.num_prompts):
        rows = slice(stored.offsets[prompt], stored.offsets[prompt + 1])
        token = stored.token[rows]
        p = warped_laws(target, stored, prompt, law)
        q = warped_laws(other, stored, prompt, draft_law)
        at = np.arange(len(token))
        assert stored.overlap is not None
        assert stored.q_token is not None
        assert stored.p_at_draft_argmax is not None
        assert stored.draft_entropy_nats is not None
        np.testing.assert_allclose(stored.overlap[rows], np.minimum(p, q).sum(1), atol=1e-4)
        np.testing.assert_allclose(stored.p_token[rows], p[at, token], rtol=1e-3)
        np.testing.assert_allclose(stored.q_token[rows], q[at, token], rtol=1e-3, atol=1e-7)
        np.testing.assert_allclose(stored.p_at_draft_argmax[rows], p[at, q.argmax(1)], rtol=1e-3, atol=1e-7)
        entropy = -np.sum(q * np.log(np.where(q > 0, q, 1.0)), axis=1)
        np.testing.assert_allclose(stored.draft_entropy_nats[rows], entropy, atol=0.5 / ENTROPY_STEPS + 1e-4)


@pytest.mark.parametrize("law", [LAWS[0], LAWS[2], LAWS[5]], ids=str)
def test_lookup_records_the_target_probability_of_each_proposal(
    target: LanguageModel, law: dict[str, float]
) -> None:
    trace = record_one(target, PromptLookup(num_proposed=4), **law)
    assert trace.proposal_token is not None
    assert trace.p_at_proposal is not None
    assert np.any(trace.proposal_token >= 0)
    for prompt in range(trace.num_prompts):
        p = warped_laws(target, trace, prompt, law)
        first = int(trace.offsets[prompt])
        for start in range(len(p)):
            is_on_path = True
            for depth, proposal in enumerate(trace.proposal_token[first + start]):
                # Below a proposal that left the path the target was never asked.
                inside = is_on_path and proposal >= 0 and start + depth < len(p)
                expected = p[start + depth, proposal] if inside else 0.0
                is_on_path = inside and proposal == trace.token[first + start + depth]
                assert trace.p_at_proposal[first + start, depth] == pytest.approx(
                    expected, rel=1e-3, abs=1e-7
                )


def test_a_target_that_drafts_for_itself_is_always_accepted(target: LanguageModel) -> None:
    trace = record_one(target, model_draft(target, target, Warp(0.8)), temperature=0.8)
    assert trace.overlap is not None
    assert trace.q_token is not None
    np.testing.assert_allclose(trace.overlap, 1.0, atol=1e-3)
    np.testing.assert_allclose(trace.q_token, trace.p_token, rtol=1e-3)


@pytest.mark.parametrize("num_seeds", [10, pytest.param(50, marks=pytest.mark.verification)])
def test_mean_acceptance_along_the_path_is_the_mean_overlap(target: LanguageModel, num_seeds: int) -> None:
    draft = early_exit(target, 2, Warp(1.0))
    traces = [record_one(target, draft, temperature=1.0, batch_size=5, seed=n) for n in range(num_seeds)]
    difference = np.concatenate(
        [
            np.minimum(1.0, trace.q_token / trace.p_token) - trace.overlap
            for trace in traces
            if trace.q_token is not None and trace.overlap is not None
        ]
    )
    # Given what came before, each term has mean 0: a martingale, so the plain standard error holds.
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))
    assert difference.std() > 0.1


def test_early_exit_is_the_model_cut_after_its_first_layers(target: LanguageModel) -> None:
    before = {name: tensor.clone() for name, tensor in target.network.state_dict().items()}
    trace = record_one(target, early_exit(target, 2, Warp(1.0)), temperature=1.0)
    config = type(target.network.config).from_dict(target.network.config.to_dict() | {"num_hidden_layers": 2})
    cut = type(target.network)(config).eval()
    kept = {name: tensor for name, tensor in before.items() if not name.startswith("model.layers.2.")}
    cut.load_state_dict(kept)
    token = trace.token[: trace.offsets[1]]
    ids = [*target.encode(PROMPTS.prompts[0], style="chat"), *token]
    with torch.no_grad():
        q = torch.softmax(cut(torch.tensor([ids])).logits[0, -len(token) - 1 : -1], -1).numpy()
    assert trace.q_token is not None
    np.testing.assert_allclose(trace.q_token[: len(token)], q[np.arange(len(token)), token], rtol=1e-4)
    assert target.network.config.num_hidden_layers == 3
    assert len(target.network.model.layers) == 3
    assert all(torch.equal(before[name], tensor) for name, tensor in target.network.state_dict().items())


def test_every_draft_sees_the_same_continuations(target: LanguageModel) -> None:
    settings = RecordingSettings(temperature=0.9, max_tokens=16, seed=2)
    drafts: list[RecordedDraft] = [PromptLookup(), early_exit(target, 1, Warp(0.9))]
    together = record(target, drafts, [PROMPTS], settings)
    (alone,) = record(target, [PromptLookup()], [PROMPTS], settings)
    np.testing.assert_array_equal(together[0].token, together[1].token)
    np.testing.assert_array_equal(together[0].token, alone.token)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_a_continuation_does_not_depend_on_its_batch(target: LanguageModel, batch_size: int) -> None:
    one = record_one(target, PromptLookup(), temperature=1.0, batch_size=batch_size)
    all_at_once = record_one(target, PromptLookup(), temperature=1.0, batch_size=5)
    np.testing.assert_array_equal(one.token, all_at_once.token)
    np.testing.assert_allclose(one.p_token, all_at_once.p_token, rtol=1e-3)


def test_prompts_keep_the_order_of_their_sets(target: LanguageModel) -> None:
    trace = record_one(target, PromptLookup(), temperature=1.0)
    lengths = [len(target.encode(prompt, style="chat")) for prompt in PROMPTS.prompts]
    assert trace.num_prompt_tokens.tolist() == lengths


def test_greedy_recording_is_the_library_s_own_greedy_search(target: LanguageModel) -> None:
    trace = record_one(target, PromptLookup(), temperature=0.0)
    for prompt, text in enumerate(PROMPTS.prompts):
        ids = torch.from_numpy(target.encode(text, style="chat"))[None]
        mask = torch.ones_like(ids)
        found = target.network.generate(
            ids, attention_mask=mask, do_sample=False, max_new_tokens=24, pad_token_id=0
        )
        path = trace.token[trace.offsets[prompt] : trace.offsets[prompt + 1]]
        assert path.tolist() == found[0, ids.shape[1] :].tolist()
    np.testing.assert_array_equal(trace.p_token, 1.0)


def test_an_ending_is_the_end_token_or_the_recording_s_own_limit(target: LanguageModel) -> None:
    trace = record_one(target, PromptLookup(), temperature=1.0, max_tokens=12)
    last = trace.token[trace.offsets[1:] - 1]
    lengths = np.diff(trace.offsets)
    assert set(trace.ended_by.tolist()) == {"eos", "recorder"}
    for ending, token, length in zip(trace.ended_by, last, lengths, strict=True):
        assert (token == 2) == (ending == "eos")
        assert ending == "eos" or length == 12
    inner = np.delete(trace.token, trace.offsets[1:] - 1)
    assert not np.any(inner == 2)


def test_one_seed_gives_the_same_bytes_and_another_seed_another_path(
    target: LanguageModel, tmp_path: Path
) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trace = record_one(target, early_exit(target, 2, Warp(1.0)), temperature=1.0, seed=seed)
        trace.save(tmp_path / name)
    first, again, another = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again
    assert not np.array_equal(Trace.load(tmp_path / "a").token, Trace.load(tmp_path / "c").token)
    assert first != another


class KilledError(Exception):
    """Stands for a signal."""


def test_a_killed_recording_goes_on_and_ends_with_the_same_bytes(
    target: LanguageModel, tmp_path: Path
) -> None:
    settings = RecordingSettings(temperature=1.0, max_tokens=12, batch_size=2, seed=3)
    drafts: list[RecordedDraft] = [PromptLookup(), early_exit(target, 2, Warp(1.0))]
    whole = record(target, drafts, [PROMPTS], settings)
    num_sampled = 0

    def kill_in_the_second_batch(num_tokens: int) -> None:
        nonlocal num_sampled
        num_sampled += num_tokens
        if (tmp_path / "parts").exists():
            raise KilledError

    with pytest.raises(KilledError):
        record(
            target, drafts, [PROMPTS], settings, parts=tmp_path / "parts", on_tokens=kill_in_the_second_batch
        )
    finished = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert finished == ["0000-exit2.npz", "0000-lookup.npz"]
    steps: list[int] = []
    resumed = record(target, drafts, [PROMPTS], settings, parts=tmp_path / "parts", on_tokens=steps.append)
    # The finished batch is read in one piece, not sampled step by step.
    assert steps[0] == Trace.load(tmp_path / "parts" / "0000-lookup.npz").num_tokens
    for number, (one, other) in enumerate(zip(whole, resumed, strict=True)):
        one.save(tmp_path / f"whole{number}")
        other.save(tmp_path / f"resumed{number}")
        assert (tmp_path / f"whole{number}").read_bytes() == (tmp_path / f"resumed{number}").read_bytes()


def test_parts_of_another_recording_are_refused(target: LanguageModel, tmp_path: Path) -> None:
    record_one(target, PromptLookup(), temperature=1.0, seed=1, parts=tmp_path)
    with pytest.raises(ConfigError, match="part of another recording"):
        record_one(target, PromptLookup(), temperature=1.0, seed=2, parts=tmp_path)


def test_the_header_says_what_was_recorded(target: LanguageModel, other: LanguageModel) -> None:
    header = record_one(target, model_draft(target, other, Warp(0.5)), temperature=1.0, top_k=7).header
    assert (header.target, header.draft, header.vocabulary_size) == ("tiny", "padded", 24)
    assert (header.temperature, header.top_k, header.draft_temperature, header.seed) == (1.0, 7, 0.5, 5)
    assert header.sha256 == {"target": target.sha256, "draft": other.sha256}
    assert target.sha256 != other.sha256
    assert header.versions["torch"] == torch.__version__


def test_a_draft_of_another_tokenizer_is_refused_with_the_first_differing_id(
    target: LanguageModel, stranger_folder: Path
) -> None:
    stranger = load_language_model(stranger_folder, device="cpu")
    with pytest.raises(DomainError, match="differ at id 9: 'w5' in target 'tiny', 'w6' in draft 'stranger'"):
        model_draft(target, stranger, Warp(1.0))


@pytest.mark.parametrize("num_layers", [0, 3, 30])
def test_early_exit_needs_fewer_layers_than_the_target(target: LanguageModel, num_layers: int) -> None:
    with pytest.raises(DomainError, match="'tiny' has 3, so at most 2"):
        early_exit(target, num_layers, Warp(1.0))


def test_a_prompt_that_exceeds_the_context_is_refused(target: LanguageModel) -> None:
    with pytest.raises(DomainError, match="'tiny' takes 128"):
        record_one(target, PromptLookup(), temperature=1.0, max_tokens=125)


def test_nothing_to_record_is_refused(target: LanguageModel) -> None:
    settings = RecordingSettings(temperature=1.0)
    with pytest.raises(ConfigError, match="at least one draft"):
        record(target, [], [PROMPTS], settings)
    with pytest.raises(ConfigError, match="at least one prompt set"):
        record(target, [PromptLookup()], [], settings)


def test_a_chat_prompt_needs_a_chat_template(model_folder: Path) -> None:
    model = load_language_model(model_folder, device="cpu")
    model.tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="no chat template"):
        model.encode("w1", style="chat")
    assert model.encode("w1 w2", style="plain").tolist() == [5, 6]


def test_what_is_not_a_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"nothing")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    for name, message in (
        ("absent", "no such model"),
        ("empty", "needs config.json"),
        ("broken", "cannot be loaded"),
        ("broken.gguf", "cannot be loaded"),
    ):
        with pytest.raises(ConfigError, match=message) as caught:
            load_language_model(tmp_path / name, device="cpu")
        assert "\n" not in str(caught.value)
