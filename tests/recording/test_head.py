"""A trained head: reads only what it may, learns, and is recorded as rounds would run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specsim.cli.app import main
from specsim.errors import ConfigError, DomainError
from specsim.recording.templates import PromptTemplates, load_templates
from specsim.speculation.recorded import RecordedPaths

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.recording import LanguageModel, PromptSet, RecordingSettings, load_language_model, record  # noqa: E402
from specsim.recording.eagle import EagleHead, head_for, target_features  # noqa: E402
from specsim.recording.generate import generate  # noqa: E402
from specsim.recording.head_draft import HeadDraft, load_head  # noqa: E402
from specsim.recording.train import TrainingSettings, TrainingText, train_head  # noqa: E402
from specsim.recording.warp import Warp  # noqa: E402

PROMPTS = PromptSet(
    name="words", domain="chat", language="en", source="the test", prompts=("w1 w2 w3", "w5", "w7 w8 w9 w7")
)
DEPTH = 3


@pytest.fixture(scope="module")
def texts(target: LanguageModel) -> list[TrainingText]:
    prompt = target.encode("w1 w2 w3", style="chat")
    luck = np.random.default_rng(0).random((48, 20))
    said = generate(
        target, [prompt] * 48, luck, warp=Warp(1.0), on_tokens=lambda _: None, keeps_probabilities=False
    )
    return [TrainingText(np.concatenate([one.prompt, one.token]), len(one.prompt)) for one in said]


def settings(**changes: float) -> TrainingSettings:
    given = {"num_words": 24, "num_epochs": 30, "depth": 2, "learning_rate": 1e-2, "temperature": 1.0}
    return TrainingSettings.model_validate(given | changes)


@pytest.fixture(scope="module")
def trained(target: LanguageModel, texts: list[TrainingText]) -> tuple[EagleHead, list[float]]:
    """Return a head, and the overlap of its first draft with the target at each step of the training."""
    seen: list[float] = []
    return train_head(target, texts, settings(), on_step=lambda *told: seen.append(told[3])), seen


@pytest.fixture
def head(trained: tuple[EagleHead, list[float]]) -> EagleHead:
    return trained[0]


def test_training_raises_the_acceptance_of_the_first_draft(trained: tuple[EagleHead, list[float]]) -> None:
    _, seen = trained
    # A draft that knows nothing of the text: the overlap of its first steps.
    assert np.mean(seen[-6:]) > np.mean(seen[:6]) + 0.1


def test_all_tokens_are_trained_on_but_the_preamble_that_texts_share(target: LanguageModel) -> None:
    def first_step(*prompts: list[int]) -> float:
        losses: list[float] = []
        texts = [TrainingText(np.array([*prompt, 6, 7, 8, 9]), len(prompt)) for prompt in prompts]
        torch.manual_seed(0)
        train_head(
            target, texts, settings(num_epochs=1), on_step=lambda _, __, loss, ___: losses.append(loss)
        )
        return losses[0]

    # Two texts with one prompt: its tokens give no loss. Prompts that part after two tokens: the rest does.
    alone = first_step([1, 3, 4, 5])
    assert first_step([1, 3, 4, 5], [1, 3, 4, 5]) == pytest.approx(alone, rel=1e-5)
    assert first_step([1, 3, 4, 5], [1, 3, 5, 4]) != pytest.approx(alone, rel=1e-3)


def test_training_is_reproducible(target: LanguageModel, texts: list[TrainingText]) -> None:
    torch.manual_seed(0)
    one = train_head(target, texts[:8], settings(num_epochs=1))
    torch.manual_seed(0)
    two = train_head(target, texts[:8], settings(num_epochs=1))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@torch.no_grad()
def test_a_round_reads_no_hidden_state_after_its_start(head: EagleHead, target: LanguageModel) -> None:
    ids = torch.tensor([[3, 5, 6, 7, 8, 9, 10, 11, 12, 13]])
    embedded = target.network.get_input_embeddings()(ids)
    features = target_features(target, ids)
    whole = [stream[0, 3] for stream in head.unroll(features[:, :7], embedded[:, 1:], DEPTH)]
    changed = features[:, :7].clone()
    changed[:, 4:] = 0.0
    again = [stream[0, 3] for stream in head.unroll(changed, embedded[:, 1:], DEPTH)]
    cut = [stream[0, 3] for stream in head.unroll(features[:, :4], embedded[:, 1:7], DEPTH)]
    for one, two, three in zip(whole, again, cut, strict=True):
        torch.testing.assert_close(one, two)
        # Products of another shape round otherwise in single precision.
        torch.testing.assert_close(one, three, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_what_is_recorded_is_what_a_round_would_draft_from(
    head: EagleHead, target: LanguageModel, tmp_path: Path
) -> None:
    head.save(tmp_path / "head")
    draft = load_head(tmp_path / "head", target, Warp(0.9), num_drafts=DEPTH)
    (trace,) = record(target, [draft], [PROMPTS], RecordingSettings(temperature=0.9, max_tokens=16, seed=3))
    assert trace.q_from_start is not None
    assert trace.q_token is not None
    assert trace.entropy_from_start_nats is not None
    np.testing.assert_allclose(trace.q_from_start[:, 0], trace.q_token, rtol=1e-5)
    spoken = target.network.get_output_embeddings().weight[head.words]
    first = int(trace.offsets[2])
    token = trace.token[first:].tolist()
    prompt = target.encode(PROMPTS.prompts[2], style="chat").tolist()
    ids = torch.tensor([[*prompt, *token]])
    for start in range(1, len(token)):
        read = len(prompt) + start - 1
        features = target_features(target, ids[:, :read])
        padded = torch.nn.functional.pad(ids[:, 1:], (0, DEPTH))[:, : read - 1 + DEPTH]
        embedded = target.network.get_input_embeddings()(padded)
        for ahead, stream in enumerate(head.unroll(features, embedded, DEPTH)):
            if start + ahead < len(token):
                q = Warp(0.9)(head.spoken(stream[0, -1:]) @ spoken.T)[0]
                place = int((head.words == token[start + ahead]).nonzero()[0, 0])
                assert trace.q_from_start[first + start, ahead] == pytest.approx(
                    float(q[place]), rel=1e-3, abs=1e-6
                )
            else:
                assert trace.q_from_start[first + start, ahead] == 0
    paths = RecordedPaths(trace, num_speculative_tokens=DEPTH)
    kept = paths.acceptance(np.array([2]), np.array([1]), DEPTH)[0]
    expected = np.minimum(trace.q_from_start[first + 1] / trace.p_token[first + 1 : first + 1 + DEPTH], 1)
    np.testing.assert_allclose(kept, expected, rtol=1e-6)


def test_words_that_the_head_cannot_say_are_never_drafted(
    target: LanguageModel, texts: list[TrainingText]
) -> None:
    few = train_head(target, texts, settings(num_words=6, num_epochs=1))
    draft = HeadDraft(few, target, Warp(1.0), 2, "0")
    (trace,) = record(target, [draft], [PROMPTS], RecordingSettings(temperature=1.0, max_tokens=16))
    assert trace.q_token is not None
    is_word = np.isin(trace.token, few.words.numpy())
    assert not is_word.all()
    assert np.all(trace.q_token[~is_word] == 0)
    assert np.all(trace.q_token[1:][is_word[1:]] > 0)


def test_a_head_is_for_its_own_target(head: EagleHead, other_folder: Path, tmp_path: Path) -> None:
    head.save(tmp_path / "head")
    other = load_language_model(other_folder, device="cpu")
    with pytest.raises(ConfigError, match="trained on another target"):
        load_head(tmp_path / "head", other, Warp(1.0), num_drafts=2)
    with pytest.raises(ConfigError, match="no draft head"):
        EagleHead.load(tmp_path)
    (tmp_path / "head" / "head.safetensors").write_bytes(b"broken")
    with pytest.raises(ConfigError, match="cannot be loaded as a draft head"):
        EagleHead.load(tmp_path / "head")


def test_faults_of_training_are_one_line(target: LanguageModel, head: EagleHead, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to train on"):
        train_head(target, [TrainingText(np.array([1, 2, 3]), 2)], settings())
    head.save(tmp_path / "head")
    with pytest.raises(DomainError, match="at least 1 token"):
        load_head(tmp_path / "head", target, Warp(1.0), num_drafts=0)


def test_a_model_of_another_layout_is_refused(target: LanguageModel) -> None:
    class Bare:
        name = "bare"
        sha256 = "0"

        class network:  # noqa: N801
            config = target.network.config

    with pytest.raises(DomainError, match="Llama's layers"):
        head_for(Bare(), torch.arange(3))  # type: ignore[arg-type]


def test_train_draft_writes_a_head_that_record_takes(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "templates.yaml").write_text(
        "source: the test\ntemplates: ['w1 {word}', '{word} w3']\nfills: {word: [w4, w5, w6, w7, w8, w9]}\n"
        "openings: [w2, w3 w4]\n"
    )
    (tmp_path / "words.yaml").write_text(
        "name: w\ndomain: chat\nlanguage: en\nsource: the test\nprompts: [w1 w2 w3, w5 w6]\n"
    )
    flags = [
        "--templates",
        tmp_path / "templates.yaml",
        "--num-prompts",
        8,
        "--num-completed",
        6,
        "--max-tokens",
        12,
        "--threads",
        1,
    ]
    assert run("record", "train-draft", model_folder, "-o", tmp_path / "head", "--num-words", 24, *flags) == 0
    assert "trained on 14 texts" in capsys.readouterr().out
    assert not (tmp_path / "head.texts").exists()
    more = ["--prompts", tmp_path / "words.yaml", "--max-tokens", 8, "--num-speculative-tokens", 2]
    assert run("record", model_folder, "--draft", tmp_path / "head", "-o", tmp_path / "a.npz", *more) == 0
    assert run("trace", "info", tmp_path / "a.npz", "-k", 2, "--by", "entropy") == 0
    assert "acceptance rate" in capsys.readouterr().out


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


def test_shipped_templates_give_many_prompts_none_of_them_recorded() -> None:
    from specsim.recording.prompt_sets import load_prompt_set, shipped_prompt_sets

    prompts = load_templates().expand(1024, seed=0)
    recorded = {text for name in shipped_prompt_sets() for text in load_prompt_set(name).prompts}
    assert len(set(prompts)) == 1024
    assert not recorded & set(prompts)
    assert load_templates().expand(50, seed=0) == prompts[:50]


def test_templates_with_a_gap_that_nothing_fills_are_refused() -> None:
    with pytest.raises(ValueError, match=r"nothing for '\{thing\}'"):
        PromptTemplates(source="s", templates=("Eat {thing}.",), fills={})
    with pytest.raises(DomainError, match="gave 1 different prompts, not 2"):
        PromptTemplates(source="s", templates=("Eat.",), fills={}).expand(2, seed=0)
