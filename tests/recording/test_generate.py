"""Continuations follow the warped target: the inversion exactly, the whole by chi-square."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specsim.errors import ConfigError
from specsim.speculation.warpers import warp as numpy_warp

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from specsim.recording import LanguageModel, load_language_model  # noqa: E402
from specsim.recording.generate import generate  # noqa: E402
from specsim.recording.warp import Warp, sample  # noqa: E402

NUM_SAMPLES = 5000
PROMPT = np.array([3, 7, 8, 9, 7])


def sampled(target: LanguageModel, warp: Warp, *, num_tokens: int) -> list[list[int]]:
    uniforms = np.random.Generator(np.random.PCG64(11)).random((NUM_SAMPLES, num_tokens))
    found = generate(target, [PROMPT] * NUM_SAMPLES, uniforms, warp=warp, on_tokens=lambda _: None)
    return [item.token.tolist() for item in found]


def p_value(target: LanguageModel, prefix: list[int], next_tokens: list[int], law: Warp) -> float:
    """Chi-square p-value of tokens that followed one prefix against the warped target."""
    with torch.no_grad():
        logits = target.network(torch.tensor([prefix])).logits[0, -1].double().numpy()
    p = numpy_warp(logits, temperature_value=law.temperature, top_k_value=law.top_k, top_p_value=law.top_p)
    counts = np.bincount(next_tokens, minlength=len(p))
    assert not np.any(counts[p == 0])
    expected = p * len(next_tokens)
    is_common = expected >= 5
    observed = np.append(counts[is_common], counts[~is_common].sum())
    expected = np.append(expected[is_common], expected[~is_common].sum())
    positive = expected > 0
    return float(stats.chisquare(observed[positive], expected[positive]).pvalue)


@pytest.mark.parametrize("law", [Warp(1.0), Warp(0.7), Warp(1.2, top_k=6), Warp(1.2, top_p=0.85)], ids=str)
def test_first_and_second_tokens_follow_the_warped_target(target: LanguageModel, law: Warp) -> None:
    paths = sampled(target, law, num_tokens=2)
    firsts = [path[0] for path in paths]
    assert p_value(target, PROMPT.tolist(), firsts, law) > 1e-3
    commonest = max((token for token in set(firsts) if token != 2), key=firsts.count)
    seconds = [path[1] for path in paths if path[0] == commonest]
    assert p_value(target, [*PROMPT.tolist(), commonest], seconds, law) > 1e-3


def test_another_temperature_fails_the_same_test(target: LanguageModel) -> None:
    firsts = [path[0] for path in sampled(target, Warp(0.7), num_tokens=1)]
    assert p_value(target, PROMPT.tolist(), firsts, Warp(0.85)) < 1e-6


def test_the_recorded_p_is_the_one_that_was_drawn_from(target: LanguageModel) -> None:
    uniforms = np.random.Generator(np.random.PCG64(5)).random((3, 20))
    prompts = [PROMPT, PROMPT[:2], PROMPT[:4]]
    found = generate(target, prompts, uniforms, warp=Warp(1.0), on_tokens=lambda _: None)
    for item, luck in zip(found, uniforms, strict=True):
        again = sample(item.probabilities, torch.from_numpy(luck[: len(item.token)]))
        assert again.tolist() == item.token.tolist()


@given(
    weights=st.lists(st.sampled_from([0.0, 1e-30, 1e-8, 0.1, 1.0, 3.0]), min_size=1, max_size=12).filter(any),
    uniform=st.one_of(st.floats(0, 1, exclude_max=True), st.just(np.nextafter(1.0, 0.0))),
)
def test_a_token_without_probability_is_never_drawn(weights: list[float], uniform: float) -> None:
    p = torch.tensor([weights], dtype=torch.float32)
    token = int(sample(p, torch.tensor([uniform], dtype=torch.float64)))
    assert p[0, token] > 0


@given(
    logits=st.lists(st.sampled_from([-9.0, -1.1, 0.0, 0.53, 2.0, 7.0]), min_size=1, max_size=10),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_k=st.one_of(st.none(), st.integers(1, 12)),
    top_p=st.sampled_from([0.1137, 0.5171, 0.9312, 1.0]),
)
def test_warp_is_the_simulator_s_warp(
    logits: list[float], temperature: float, top_k: int | None, top_p: float
) -> None:
    ours = Warp(temperature, top_k, top_p)(torch.tensor([logits]))[0].numpy()
    reference = numpy_warp(logits, temperature_value=temperature, top_k_value=top_k, top_p_value=top_p)
    np.testing.assert_allclose(ours, reference, atol=1e-6)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_device_is_refused(model_folder: Path) -> None:
    with pytest.raises(ConfigError, match="torch finds none"):
        load_language_model(model_folder, device="cuda")
