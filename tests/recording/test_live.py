"""Live pairs: caches that change nothing, text distributed as plain sampling, rounds as in a replay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specsim.arrays import Ints
from specsim.errors import ConfigError, DomainError
from specsim.speculation import (
    BuildContext,
    ChainDraft,
    Fixed,
    LiveSpec,
    PathRounds,
    Prefixes,
    Sequences,
    TokenVerifier,
    build_rounds,
)
from specsim.speculation.recorded import RecordedPaths
from specsim.streams import RandomStreams

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.recording import LanguageModel, PromptSet, RecordingSettings, record  # noqa: E402
from specsim.recording.drafts import model_draft  # noqa: E402
from specsim.recording.live import LivePair  # noqa: E402
from specsim.recording.warp import Warp  # noqa: E402

PROMPTS = ("w1 w2 w3 w4 w1 w2", "w5", "w7 w8 w9 w7 w8 w9 w7 w8", "w3 w3 w3", "w11 w0 w2")


def pair(
    target: LanguageModel,
    other: LanguageModel,
    temperature: float,
    *,
    prompts: tuple[str, ...] = PROMPTS,
    max_tokens: int = 24,
    depth: int = 0,
) -> LivePair:
    return LivePair(
        target,
        model_draft(target, other, Warp(temperature)),
        [target.encode(prompt, style="chat") for prompt in prompts],
        warp=Warp(temperature),
        max_tokens=max_tokens,
        num_speculative_tokens=depth,
    )


def run(
    live: LivePair, count: int, *, depth: int, max_tokens: int, seed: int, batch: int = 512
) -> tuple[Ints, list[list[int]]]:
    """Tokens of all requests, [count, max_tokens]; drafts accepted in each round of each request."""
    rounds = build_rounds(
        live,
        Fixed(),
        TokenVerifier(),
        streams=RandomStreams(seed),
        num_output_tokens=np.full(count, max_tokens),
        num_speculative_tokens=depth,
        draft_source=ChainDraft(live, num_tokens=depth),
    )
    assert not isinstance(rounds, PathRounds)
    accepted: list[list[int]] = [[] for _ in range(count)]
    position = np.ones(count, dtype=np.int64)
    end = rounds.num_output_tokens.copy()
    for first in range(0, count, batch):
        request = np.arange(first, min(first + batch, count))
        request = request[position[request] < end[request]]
        while request.size:
            peeked = rounds.peek(
                Sequences(request, position[request], end[request] - position[request]), horizon=1
            )
            rounds.commit(1)
            for number, kept in zip(request.tolist(), peeked.num_accepted[0].tolist(), strict=True):
                accepted[number].append(kept)
            position[request] += peeked.num_emitted[0]
            request = request[~peeked.is_last[0]]
    return rounds.all_tokens(), accepted


def chi_square(one: list[int], other: list[int]) -> tuple[float, int]:
    """Two-sample statistic over classes of at least ten, and its degrees of freedom."""
    size = max(*one, *other) + 1
    table = np.array([np.bincount(one, minlength=size), np.bincount(other, minlength=size)], dtype=float)
    rare = table.sum(0) < 20
    table = np.concatenate([table[:, ~rare], table[:, rare].sum(1, keepdims=True)], axis=1)
    table = table[:, table.sum(0) > 0]
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    return float(((table - expected) ** 2 / expected).sum()), table.shape[1] - 1


def assert_same_law(one: list[int], other: list[int]) -> None:
    statistic, freedom = chi_square(one, other)
    assert freedom >= 1
    assert statistic < freedom + 4 * np.sqrt(2 * freedom) + 4


def plain_law(model: LanguageModel, prompt: str, tokens: list[int], temperature: float) -> np.ndarray:
    with torch.no_grad():
        ids = torch.tensor([[*model.encode(prompt, style="chat").tolist(), *tokens]])
        logits = model.network(ids).logits[0, -1]
    return Warp(temperature)(logits[None])[0].double().numpy()  # type: ignore[no-any-return]


def test_a_cache_that_is_taken_back_changes_no_distribution(
    target: LanguageModel, other: LanguageModel
) -> None:
    live = pair(target, other, 0.8, max_tokens=12)
    rng = np.random.default_rng(0)
    texts = [rng.integers(4, 24, 12).tolist() for _ in range(5)]
    for _ in range(12):
        request = rng.permutation(5)[: rng.integers(1, 6)]
        cut = rng.integers(0, 12, request.size)
        for number, length in zip(request.tolist(), cut.tolist(), strict=True):
            texts[number][length:] = rng.integers(4, 24, 12 - length).tolist()
        # Each text is asked for at several lengths, some of them read before.
        rows = [
            (int(r), int(n)) for r, c in zip(request, cut, strict=True) for n in {c, max(c - 2, 0), c + 1}
        ]
        tokens = np.full((len(rows), 12), -1)
        for row, (number, length) in enumerate(rows):
            tokens[row, 12 - length :] = texts[number][:length]
        prefix = Prefixes(np.array([r for r, _ in rows]), np.array([n for _, n in rows]), tokens)
        laws = live.target(prefix)
        for law, (number, length) in zip(laws, rows, strict=True):
            expected = plain_law(target, PROMPTS[number], texts[number][:length], 0.8)
            np.testing.assert_allclose(law, expected, atol=5e-5)


def test_branches_of_one_text_keep_apart(target: LanguageModel, other: LanguageModel) -> None:
    live = pair(target, other, 0.8, max_tokens=4)
    tokens = np.array([[-1, -1, 5, 6], [-1, -1, 5, 7], [-1, 5, 6, 8], [-1, -1, 9, 6], [-1, -1, 5, 6]])
    prefix = Prefixes(np.zeros(5, dtype=np.int64), np.array([2, 2, 3, 2, 2]), tokens)
    for _ in range(2):
        for law, row in zip(live.draft(prefix), tokens, strict=True):
            expected = plain_law(other, PROMPTS[0], row[row >= 0].tolist(), 0.8)[:24]
            np.testing.assert_allclose(law, expected / expected.sum(), atol=5e-5)


@pytest.mark.verification
def test_live_text_is_distributed_as_plain_sampling(target: LanguageModel, other: LanguageModel) -> None:
    count, length = 5000, 4
    live = pair(target, other, 1.0, prompts=PROMPTS[:1], max_tokens=length, depth=2)
    drafted, _ = run(live, count, depth=2, max_tokens=length, seed=1)
    plain, _ = run(live, count, depth=0, max_tokens=length, seed=2)
    for position in range(length):
        assert_same_law((drafted[:, position] + 1).tolist(), (plain[:, position] + 1).tolist())
    # The same at the most common prefix of two tokens, where only one distribution is left.
    prefixes, counts = np.unique(drafted[:, :2], axis=0, return_counts=True)
    common = prefixes[counts.argmax()]
    at = [texts[(texts[:, :2] == common).all(axis=1), 2] for texts in (drafted, plain)]
    assert_same_law(*((tokens + 1).tolist() for tokens in at))


@pytest.mark.parametrize("depth", [0, 2])
def test_the_first_drafted_token_of_a_live_text_follows_the_targets_law(
    target: LanguageModel, other: LanguageModel, depth: int
) -> None:
    live = pair(target, other, 1.0, prompts=PROMPTS[:1], max_tokens=2, depth=depth)
    count = 600
    texts, _ = run(live, count, depth=depth, max_tokens=2, seed=7)
    first = plain_law(target, PROMPTS[0], [], 1.0)
    # Over what prefill may have said, the second token has this law.
    second = sum(
        first[token] * plain_law(target, PROMPTS[0], [token], 1.0) for token in range(24) if token != 2
    )
    observed = np.bincount(texts[texts[:, 1] >= 0, 1], minlength=24)
    expected = second / np.sum(second) * observed.sum()
    common = expected > 5
    statistic = float(((observed - expected)[common] ** 2 / expected[common]).sum())
    freedom = int(common.sum())
    assert freedom >= 3
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_live_text_at_temperature_0_is_the_targets_own(target: LanguageModel, other: LanguageModel) -> None:
    live = pair(target, other, 0.0, max_tokens=20, depth=3)
    drafted, _ = run(live, 5, depth=3, max_tokens=20, seed=1)
    plain, _ = run(live, 5, depth=0, max_tokens=20, seed=2)
    np.testing.assert_array_equal(drafted, plain)


@pytest.mark.parametrize(
    ("depth", "count"), [(3, 100), *(pytest.param(k, 600, marks=pytest.mark.verification) for k in (1, 3, 6))]
)
def test_live_rounds_and_the_replay_of_a_recording_have_one_law(
    target: LanguageModel, other: LanguageModel, depth: int, count: int
) -> None:
    length, temperature = 12, 1.0
    live = pair(target, other, temperature, max_tokens=length, depth=depth)
    _, accepted = run(live, count, depth=depth, max_tokens=length, seed=4)
    prompts = PromptSet(name="w", domain="chat", language="en", source="the test", prompts=PROMPTS)
    draft = model_draft(target, other, Warp(temperature))
    replayed: list[list[int]] = []
    for seed in range(count // len(PROMPTS)):
        settings = RecordingSettings(temperature=temperature, max_tokens=length, seed=seed)
        (trace,) = record(target, [draft], [prompts], settings)
        paths = RecordedPaths(trace, num_speculative_tokens=depth)
        rounds = PathRounds(
            paths,
            Fixed(),
            streams=RandomStreams(seed),
            num_output_tokens=np.full(len(PROMPTS), length),
            num_speculative_tokens=depth,
        )
        for number in range(len(PROMPTS)):
            left = int(np.diff(trace.offsets)[number]) - 1
            if left:
                start = Sequences(np.array([number]), np.array([1]), np.array([left]))
                replayed.append(rounds.peek(start, horizon=length).num_accepted[:, 0].tolist())
    live_rounds = [rounds for rounds in accepted if rounds]
    assert_same_law([len(rounds) for rounds in live_rounds], [len(rounds) for rounds in replayed])
    assert_same_law([kept for one in live_rounds for kept in one], [kept for one in replayed for kept in one])


@pytest.mark.parametrize("depth", [1, 3, pytest.param(5, marks=pytest.mark.verification)])
def test_transformers_assisted_generation_accepts_the_same_drafts(
    target: LanguageModel, other: LanguageModel, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.generation import candidate_generator

    matches: list[int] = []
    kind = candidate_generator.AssistedCandidateGenerator
    original = kind.update_candidate_strategy

    def noted(self: object, input_ids: object, scores: object, num_matches: int) -> None:
        matches.append(int(num_matches))
        original(self, input_ids, scores, num_matches)

    monkeypatch.setattr(kind, "update_candidate_strategy", noted)
    # Assisted generation wants one vocabulary: the padding of the draft's is cut.
    assistant = _without_padding(other)
    constant = {"num_assistant_tokens": depth, "num_assistant_tokens_schedule": "constant"}
    assistant.generation_config.update(assistant_confidence_threshold=0.0, **constant)  # type: ignore[attr-defined]
    live = pair(target, other, 0.0, max_tokens=24, depth=depth)
    drafted, accepted = run(live, len(PROMPTS), depth=depth, max_tokens=24, seed=0)
    for number, prompt in enumerate(PROMPTS):
        matches.clear()
        # Their first round drafts before the prompt's own token; ours begins after it.
        ids = torch.tensor([[*target.encode(prompt, style="chat").tolist(), int(drafted[number, 0])]])
        text = target.network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            assistant_model=assistant,
            max_new_tokens=23,
            do_sample=False,
            # A padding token that occurs in the text would be masked out of the draft's view.
            pad_token_id=2,
        )[0, ids.shape[1] :].tolist()
        ours = drafted[number][drafted[number] >= 0].tolist()[1:]
        assert text == ours
        # The last round is cut by the cap on their side before it drafts, on ours after it.
        assert matches[: len(accepted[number]) - 1] == accepted[number][:-1]


def _without_padding(model: LanguageModel) -> object:
    config = type(model.network.config).from_dict(model.network.config.to_dict() | {"vocab_size": 24})
    twin = type(model.network)(config).eval()
    state = model.network.state_dict()
    padded = ("model.embed_tokens.weight", "lm_head.weight")
    twin.load_state_dict({name: tensor[:24] if name in padded else tensor for name, tensor in state.items()})
    return twin


def test_a_scenario_runs_live_models(model_folder: Path, other_folder: Path, tmp_path: Path) -> None:
    from specsim.engine.simulate import simulate

    (tmp_path / "words.yaml").write_text(
        "name: w\ndomain: chat\nlanguage: en\nsource: the test\nprompts: [w1 w2 w3, w5 w6]\n"
    )
    scenario = f"""
name: live
target: {{model: smollm2-135m, dtype: bfloat16}}
speculative_config: {{method: draft_model, model: smollm2-135m, num_speculative_tokens: 3}}
distributions:
  {{kind: live, target: {model_folder}, draft: {other_folder}, prompts: [{tmp_path}/words.yaml],
    max_tokens: 40}}
hardware: {{target: rtx-3090}}
workload: {{num_prompts: 4, max_concurrency: 2, prompt_tokens: 8, output_tokens: 12}}
"""
    (tmp_path / "live.yaml").write_text(scenario)
    one, two = (simulate(tmp_path / "live.yaml", seed=5).summary() for _ in range(2))
    assert one["speculation"] == two["speculation"]
    assert 1 < one["speculation"]["spec_decode_acceptance_length"] <= 4


def build(**changes: object) -> object:
    given = {"target": "nosuch", "draft": "exit:1", "prompts": ["chat"]} | changes
    return LiveSpec.model_validate(given).build(BuildContext(num_speculative_tokens=2))


def test_models_that_do_not_fit_each_other_are_one_line(model_folder: Path, stranger_folder: Path) -> None:
    target = str(model_folder)
    with pytest.raises(ConfigError, match="nosuch: no such model"):
        build()
    with pytest.raises(ConfigError, match="exit:LAYERS needs a whole number"):
        build(target=target, draft="exit:x")
    with pytest.raises(DomainError, match="tokenizers differ at id 9"):
        build(target=target, draft=str(stranger_folder))
    with pytest.raises(DomainError, match="takes 128"):
        build(target=target, max_tokens=200)
    with pytest.raises(ConfigError, match="no prompt set 'chit'"):
        build(target=target, prompts=["chit"])
