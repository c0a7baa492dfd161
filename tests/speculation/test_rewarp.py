"""Another draft temperature from unions: within the stated error of the full distributions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from specsim.errors import ConfigError, DomainError
from specsim.speculation import BuildContext, Fixed, TraceSpec
from specsim.speculation.rewarp import rewarp_draft
from specsim.speculation.trace import Trace
from tests.strategies import headers, random_trace

Laws = NDArray[np.float64]


def softmax(logits: Laws) -> Laws:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def laws(num_tokens: int, *, size: int = 400, seed: int = 0) -> tuple[Laws, Laws]:
    """Logits of a target and of a draft that agrees with it in part."""
    rng = np.random.default_rng(seed)
    target = rng.normal(0, 3, (num_tokens, size))
    return target, 0.7 * target + rng.normal(0, 1.5, (num_tokens, size))


def union_trace(
    top: int, *, num_tokens: int = 60, draft_temperature: float = 0.7
) -> tuple[Trace, Laws, Laws]:
    target, draft = laws(num_tokens)
    p, q, one = softmax(target / 0.7), softmax(draft / draft_temperature), softmax(draft)
    rng = np.random.default_rng(5)
    token = np.array([rng.choice(p.shape[1], p=row) for row in p])
    at = np.arange(num_tokens)
    trace = random_trace(0, [num_tokens])
    trace.header = headers(vocabulary_size=p.shape[1], draft_temperature=draft_temperature)
    trace.token = token.astype(np.int32)
    trace.p_token, trace.q_token = p[at, token].astype(np.float32), q[at, token].astype(np.float32)
    trace.overlap = np.minimum(p, q).sum(axis=1).astype(np.float32)
    trace.draft_argmax = q.argmax(axis=1).astype(np.int32)
    trace.p_at_draft_argmax = p[at, q.argmax(axis=1)].astype(np.float32)
    trace.draft_top_probability = q.max(axis=1).astype(np.float32)
    trace.draft_entropy_nats = (-(q * np.log(q)).sum(axis=1)).astype(np.float32)
    ids = np.full((num_tokens, 2 * top), -1, dtype=np.int32)
    for row in range(num_tokens):
        both = np.union1d(np.argsort(-p[row])[:top], np.argsort(-one[row])[:top])
        ids[row, : both.size] = both
    is_there = ids >= 0
    inside = [np.where(is_there, law[at[:, None], ids], 0.0) for law in (p, q, one)]
    with np.errstate(divide="ignore"):
        trace.log_p, trace.log_q = (np.log(inside[n]).astype(np.float32) for n in (0, 2))
    trace.union_ids = ids
    trace.tail_p, trace.tail_q = ((1 - inside[n].sum(axis=1)).clip(0).astype(np.float32) for n in (0, 2))
    trace.tail_overlap = (
        (trace.overlap - np.minimum(inside[0], inside[1]).sum(axis=1)).clip(0).astype(np.float32)
    )
    trace.check()
    return trace, p, draft


@pytest.mark.parametrize("temperature", [0.3, 0.5, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("top", [8, 64])
def test_the_overlap_is_within_the_stated_error_of_the_full_distributions(
    temperature: float, top: int, tmp_path: Path
) -> None:
    trace, p, draft = union_trace(top)
    trace.save(tmp_path / "a.npz")
    rewarped = rewarp_draft(Trace.load(tmp_path / "a.npz"), temperature)
    exact = np.minimum(p, softmax(draft / temperature)).sum(axis=1)
    assert rewarped.trace.overlap is not None
    # Storage adds a relative 1e-3 to each of p and q.
    assert np.all(np.abs(rewarped.trace.overlap - exact) <= rewarped.overlap_error + 4e-3)
    assert rewarped.trace.header.draft_temperature == temperature


def test_unions_of_64_state_a_small_error_and_of_8_a_larger_one() -> None:
    errors = [rewarp_draft(union_trace(top)[0], 1.0).overlap_error.mean() for top in (8, 64)]
    assert errors[1] < 0.02 < errors[0]


@pytest.mark.parametrize("temperature", [0.4, 0.7, 1.0])
def test_the_path_token_gets_the_probability_of_the_new_law(temperature: float) -> None:
    trace, p, draft = union_trace(64)
    rewarped = rewarp_draft(trace, temperature).trace
    q = softmax(draft / temperature)
    at, token = np.arange(len(p)), trace.token
    is_inside = (trace.union_ids == token[:, None]).any(axis=1)  # type: ignore[union-attr]
    assert is_inside.mean() > 0.9
    assert rewarped.q_token is not None
    np.testing.assert_allclose(rewarped.q_token[is_inside], q[at, token][is_inside], rtol=0.05)
    assert rewarped.draft_argmax is not None
    np.testing.assert_array_equal(rewarped.draft_argmax, q.argmax(axis=1))
    rewarped.check()


def test_a_changed_draft_temperature_is_replayed_and_marked(tmp_path: Path) -> None:
    trace, _, _ = union_trace(64)
    trace.save(tmp_path / "a.npz")
    context = BuildContext(num_speculative_tokens=2, draft_sample_method="probabilistic", folder=tmp_path)
    plain = TraceSpec(path="a.npz", draft_temperature=0.7, temperature=0.7).build(context)
    changed = TraceSpec(path="a.npz", draft_temperature=0.5).build(context)
    assert plain.is_exact_for(Fixed(), num_speculative_tokens=2)
    assert not changed.is_exact_for(Fixed(), num_speculative_tokens=2)
    first = [paths.acceptance(np.array([0] * 59), np.arange(1, 60), 1) for paths in (plain, changed)]
    assert np.abs(first[0] - first[1]).max() > 0.01


def test_a_changed_target_temperature_is_refused(tmp_path: Path) -> None:
    random_trace(0, [5]).save(tmp_path / "a.npz")
    spec = TraceSpec(path="a.npz", temperature=1.0)
    with pytest.raises(ConfigError, match=r"recorded at 0\.7, not 1; the target's temperature is part"):
        spec.build(BuildContext(num_speculative_tokens=2, folder=tmp_path))


def test_too_much_outside_the_union_is_refused(tmp_path: Path) -> None:
    union_trace(4)[0].save(tmp_path / "a.npz")
    with pytest.raises(ConfigError, match="would be uncertain by"):
        TraceSpec(path="a.npz", draft_temperature=1.5).build(
            BuildContext(num_speculative_tokens=2, folder=tmp_path)
        )


def test_a_trace_without_unions_cannot_be_changed() -> None:
    with pytest.raises(ConfigError, match="recorded with unions"):
        rewarp_draft(random_trace(0, [5]), 0.5)
    with pytest.raises(DomainError, match="above 0"):
        rewarp_draft(union_trace(8)[0], 0.0)
