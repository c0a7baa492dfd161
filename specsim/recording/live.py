"""Two real models as p and q after any prefix: see :class:`specsim.speculation.live.LiveSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import nn

from specsim.arrays import Floats, Ints
from specsim.errors import ConfigError, DomainError
from specsim.recording.drafts import CausalDraft, early_exit, model_draft, widened
from specsim.recording.models import LanguageModel, load_language_model
from specsim.recording.prompt_sets import encode_prompts, load_prompt_set
from specsim.recording.sequence_cache import Question, SequenceCache
from specsim.recording.warp import Warp
from specsim.speculation.distributions import Prefixes
from specsim.speculation.kinds import BuildContext
from specsim.speculation.live import LiveSpec

_EXIT = "exit:"
_ROWS_PER_PASS = 64


class LivePair:
    """A target and a draft on real prompts.

    Parameters
    ----------
    target
        The model that verifies.
    draft
        The model that drafts, or the target's own first layers.
    prompts
        Token ids of each prompt; request r continues prompt r, repeating.
    warp
        Law of the target's tokens.
    max_tokens
        Longest text that a request may emit, tokens.
    num_speculative_tokens
        The most that a round drafts; the last round may draft past the text's end.
    """

    offers: Literal["conditional"] = "conditional"

    def __init__(
        self,
        target: LanguageModel,
        draft: CausalDraft,
        prompts: Sequence[Ints],
        *,
        warp: Warp,
        max_tokens: int,
        num_speculative_tokens: int = 0,
    ) -> None:
        longest = max(len(prompt) for prompt in prompts)
        if target.max_tokens is not None and longest + max_tokens > target.max_tokens:
            raise DomainError(
                f"a prompt of {longest} tokens and {max_tokens} more:"
                f" '{target.name}' takes {target.max_tokens}"
            )
        self.num_context_tokens = max_tokens + num_speculative_tokens
        self._max_tokens = max_tokens
        self.vocabulary_size = target.vocabulary_size
        self.eos_token_id = min(target.end_tokens, default=None)
        self._other_ends = sorted(target.end_tokens - {self.eos_token_id})
        self._prompts = prompts
        self._target = _Reader(target.network, warp, self)
        self._draft = _Reader(draft.network, draft.warp, self)

    def target(self, prefix: Prefixes) -> Floats:
        """Target distribution after each prefix, [rows, V]."""
        return self._target.distributions(prefix)

    def draft(self, prefix: Prefixes) -> Floats:
        """Draft distribution after each prefix, [rows, V]."""
        return self._draft.distributions(prefix)

    def text(self, request: int, tokens: Ints, position: int) -> Ints:
        """Prompt and continuation of a request, token ids, [L]."""
        if position > self.num_context_tokens:
            raise ConfigError.at(
                "distributions.max_tokens", f"a request went on past {self._max_tokens} tokens"
            )
        prompt = self._prompts[request % len(self._prompts)]
        return np.concatenate([prompt, tokens[tokens.size - position :]])

    def with_one_end(self, probabilities: Floats) -> Floats:
        """Put the mass of all end tokens on one, since each of them ends a text."""
        if self._other_ends and self.eos_token_id is not None:
            probabilities[:, self.eos_token_id] += probabilities[:, self._other_ends].sum(axis=1)
            probabilities[:, self._other_ends] = 0.0
        return probabilities


class _Reader:
    """One of the two models, and what it has read."""

    def __init__(self, network: nn.Module, warp: Warp, pair: LivePair) -> None:
        self._cache = SequenceCache(network)
        self._warp = warp
        self._pair = pair

    def distributions(self, prefix: Prefixes) -> Floats:
        """Distribution after each prefix, [rows, V]."""
        columns = (prefix.request.tolist(), prefix.tokens, prefix.position.tolist())
        texts = [self._pair.text(*row) for row in zip(*columns, strict=True)]
        laws: Floats = np.empty((len(texts), self._pair.vocabulary_size))
        rows = _passes(columns[0], texts)
        while rows:
            together, rows = _next_pass(rows, columns[0])
            questions = [
                Question(columns[0][chain[-1]], texts[chain[-1]], tuple(len(texts[row]) for row in chain))
                for chain in together
            ]
            for chain, logits in zip(together, self._cache.logits(questions), strict=True):
                laws[chain] = self._law(logits)
        return laws

    def _law(self, logits: torch.Tensor) -> Floats:
        p = self._warp(widened(logits, self._pair.vocabulary_size)).double().cpu().numpy()
        return self._pair.with_one_end(p / p.sum(axis=1, keepdims=True))


def _passes(request: Sequence[int], texts: Sequence[Ints]) -> list[list[int]]:
    """Rows in chains: the texts of a chain belong to one request, and each begins with the one before."""
    chains: list[list[int]] = []
    open_chains: dict[int, list[list[int]]] = {}
    for row in sorted(range(len(texts)), key=lambda row: len(texts[row])):
        own = open_chains.setdefault(request[row], [])
        for chain in own:
            last = texts[chain[-1]]
            if len(last) < len(texts[row]) and np.array_equal(last, texts[row][: len(last)]):
                chain.append(row)
                break
        else:
            own.append([row])
            chains.append(own[-1])
    return chains


def _next_pass(chains: list[list[int]], request: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
    """Chains of different requests that go into one pass, and the rest."""
    now: list[list[int]] = []
    later: list[list[int]] = []
    seen: set[int] = set()
    for chain in chains:
        is_next = len(now) < _ROWS_PER_PASS and request[chain[0]] not in seen
        (now if is_next else later).append(chain)
        seen.add(request[chain[0]])
    return now, later


def build_live(spec: LiveSpec, context: BuildContext) -> LivePair:
    """Load the models and prompts that a spec names.

    Raises
    ------
    ConfigError
        A model or prompt set that is not there or broken.
    DomainError
        A draft of another tokenizer, or an exit after all layers.
    """
    folder = context.folder
    target = load_language_model(_found(spec.target, folder), device=spec.device, dtype=spec.dtype)
    warp = Warp(spec.temperature, spec.top_k, spec.top_p)
    draft_warp = Warp(spec.temperature if spec.draft_temperature is None else spec.draft_temperature)
    draft = _draft(spec, target, draft_warp, folder)
    prompt_sets = [load_prompt_set(name) for name in spec.prompts]
    prompts = [prompt.tokens for prompt in encode_prompts(prompt_sets, target)]
    if not prompts:
        raise ConfigError.at("distributions.prompts", "name at least one prompt set")
    return LivePair(
        target,
        draft,
        prompts,
        warp=warp,
        max_tokens=spec.max_tokens,
        num_speculative_tokens=context.num_speculative_tokens,
    )


def _draft(spec: LiveSpec, target: LanguageModel, warp: Warp, folder: Path) -> CausalDraft:
    if spec.draft.startswith(_EXIT):
        layers = spec.draft.removeprefix(_EXIT)
        if not layers.isdecimal():
            raise ConfigError.at("distributions.draft", f"'{spec.draft}': exit:LAYERS needs a whole number")
        return early_exit(target, int(layers), warp)
    model = load_language_model(_found(spec.draft, folder), device=target.device.type, dtype=target.dtype)
    return model_draft(target, model, warp)


def _found(name: str, folder: Path) -> Path:
    beside = folder / name
    return beside if beside.exists() else Path(name)
