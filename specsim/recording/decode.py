"""Real speculative decoding of one sequence, exact and timed: what a simulation is held against.

Token verification (Leviathan et al. 2023, algorithm 1; Chen et al. 2023): a draft x from q is kept with
probability min(1, p(x)/q(x)), after the first that is not the next token comes from (p − q)⁺, normalised.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import nn

from specsim.recording.cached import CachedNetwork
from specsim.recording.lookup import PromptLookup
from specsim.recording.warp import Warp, sample


class Drafter(Protocol):
    """Proposes tokens along one sequence."""

    def begin(self, prompt: Sequence[int]) -> None:
        """Read a prompt."""
        ...

    def propose(
        self, tokens: Sequence[int], count: int, luck: np.random.Generator
    ) -> tuple[list[int], list[torch.Tensor | None]]:
        """Tokens that may follow, at most ``count``, and the q that each was drawn from.

        None for q: the proposal was certain. ``tokens`` are prompt and all that has been emitted.
        """
        ...


class NetworkDrafter:
    """Drafts from a network that shares the target's vocabulary."""

    def __init__(self, network: nn.Module, warp: Warp) -> None:
        self._network, self._warp = network, warp
        self._cached = CachedNetwork(network)

    def begin(self, prompt: Sequence[int]) -> None:
        """Read a prompt but for its last token, which the first proposal reads."""
        self._cached = CachedNetwork(self._network)
        if len(prompt) > 1:
            self._cached.logits(torch.tensor([list(prompt[:-1])]), last_only=True)

    def propose(
        self, tokens: Sequence[int], count: int, luck: np.random.Generator
    ) -> tuple[list[int], list[torch.Tensor | None]]:
        """Tokens drawn one after the other, each from the q after those before it."""
        # What was drafted and not kept was read as well, but for the last.
        self._cached.take_back(max(self._cached.num_tokens - (len(tokens) - 1), 0))
        fresh = list(tokens[self._cached.num_tokens :])
        drafts: list[int] = []
        laws: list[torch.Tensor | None] = []
        for _ in range(count):
            law = self._warp(self._cached.logits(torch.tensor([fresh]), last_only=True))[0]
            drafts.append(_draw(law, luck))
            laws.append(law[0])
            fresh = drafts[-1:]
        return drafts, laws


class LookupDrafter:
    """Drafts what followed an earlier occurrence of the last tokens."""

    def __init__(self, lookup: PromptLookup) -> None:
        self._lookup = lookup

    def begin(self, prompt: Sequence[int]) -> None:
        """Nothing to read ahead."""

    def propose(
        self, tokens: Sequence[int], count: int, luck: np.random.Generator
    ) -> tuple[list[int], list[torch.Tensor | None]]:
        """Copy the tokens that the lookup proposes; none where it finds nothing."""
        nothing_yet = np.zeros(1, dtype=np.int64)
        proposed = self._lookup.proposals(np.asarray(tokens, dtype=np.int64), nothing_yet)[0]
        drafts = [int(token) for token in proposed[:count] if token >= 0]
        return drafts, [None] * len(drafts)


@dataclass(slots=True)
class Decoded:
    """One sequence decoded, and what it took after its first token."""

    tokens: list[int]
    """Tokens emitted, the end token included."""
    decode_s: float = 0.0
    """CPU time of this thread from the first token to the last, s."""
    num_drafted: list[int] = field(default_factory=list)
    """Tokens drafted, a round."""
    num_emitted: list[int] = field(default_factory=list)
    """Tokens emitted, a round; the last is cut at the end of the sequence."""
    context_tokens: list[int] = field(default_factory=list)
    """Tokens that the target had cached before the round."""


@torch.inference_mode()
def decode(
    target: nn.Module,
    drafter: Drafter | None,
    prompt: Sequence[int],
    *,
    num_speculative_tokens: int,
    max_tokens: int,
    warp: Warp,
    end_tokens: frozenset[int],
    luck: np.random.Generator,
) -> Decoded:
    """Decode one sequence; any number of speculative tokens samples from the same law.

    Parameters
    ----------
    target
        The model that speaks.
    drafter
        What drafts; None or no speculative tokens: plain decoding.
    prompt
        Token ids, at least one.
    num_speculative_tokens
        The most that a round drafts.
    max_tokens
        The most that is emitted.
    warp
        The target's law.
    end_tokens
        Tokens that end the sequence.
    luck
        All randomness of the sequence.
    """
    cached = CachedNetwork(target)
    decoded = Decoded([_draw(warp(cached.logits(torch.tensor([list(prompt)]), last_only=True))[0], luck)])
    if drafter is not None and num_speculative_tokens:
        drafter.begin(prompt)
    start_s = time.thread_time()
    while len(decoded.tokens) < max_tokens and decoded.tokens[-1] not in end_tokens:
        known = [*prompt, *decoded.tokens]
        drafts: list[int] = []
        laws: list[torch.Tensor | None] = []
        if drafter is not None and num_speculative_tokens:
            drafts, laws = drafter.propose(known, num_speculative_tokens, luck)
        decoded.num_drafted.append(len(drafts))
        decoded.context_tokens.append(cached.num_tokens)
        p = warp(cached.logits(torch.tensor([[known[-1], *drafts]])))[0]
        emitted = _verified(p, drafts, laws, luck)
        cached.take_back(len(drafts) + 1 - len(emitted))
        emitted = _until_end(emitted, end_tokens, max_tokens - len(decoded.tokens))
        decoded.num_emitted.append(len(emitted))
        decoded.tokens += emitted
    decoded.decode_s = time.thread_time() - start_s
    return decoded


def _verified(
    p: torch.Tensor, drafts: Sequence[int], laws: Sequence[torch.Tensor | None], luck: np.random.Generator
) -> list[int]:
    """Tokens that a round emits: the drafts kept, and one more."""
    for depth, (token, q) in enumerate(zip(drafts, laws, strict=True)):
        kept = float(p[depth, token]) if q is None else float(p[depth, token] / q[token])
        if luck.random() < kept:
            continue
        residual = p[depth].clone()
        if q is None:
            residual[token] = 0.0
        else:
            residual = (residual - q).clamp(min=0.0)
        return [*drafts[:depth], _draw(residual[None], luck)]
    return [*drafts, _draw(p[len(drafts) :], luck)]


def _draw(law: torch.Tensor, luck: np.random.Generator) -> int:
    return int(sample(law, torch.tensor([luck.random()], dtype=torch.float64)))


def _until_end(tokens: list[int], end_tokens: frozenset[int], room: int) -> list[int]:
    tokens = tokens[:room]
    ends = [index for index, token in enumerate(tokens) if token in end_tokens]
    return tokens[: ends[0] + 1] if ends else tokens
