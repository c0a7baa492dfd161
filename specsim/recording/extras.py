"""What may be recorded of a draft beside its scalars: unions for re-warping, tails after rejections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from specsim.recording.warp import Warp, sample
from specsim.streams import Purpose, RandomStreams

if TYPE_CHECKING:
    from torch import nn

    from specsim.recording.generate import Continuation
    from specsim.speculation.trace import DraftSampleMethod

_ROWS_PER_PASS = 64
_LEAST_REJECTION = 1e-4
"""Rejections rarer than this have no tail: where the two agree, rounding leaves crumbs."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What may be recorded beside the scalars."""

    union_size: int = 0
    """Most probable tokens of each model, of which both are kept; 0: none."""
    num_tail_tokens: int = 0
    """Tokens that the draft goes on to draft after a rejection; 0: none."""
    seed: int = 0
    """Seed of the tails."""


NO_EXTRAS = Extras()
"""The scalars alone."""


class TailDraft(Protocol):
    """A draft that goes on from any text."""

    @property
    def network(self) -> nn.Module:
        """What runs."""

    @property
    def warp(self) -> Warp:
        """From logits to the law that is drawn from."""

    @property
    def draft_sample_method(self) -> DraftSampleMethod:
        """How it draws."""

    @property
    def extras(self) -> Extras:
        """What is recorded of it."""

    def next_logits(self, texts: Sequence[Sequence[int]], device: torch.device, width: int) -> torch.Tensor:
        """Logits after each text, [texts, V]."""


def union_columns(
    p: torch.Tensor, q: torch.Tensor, logits: torch.Tensor, *, size: int
) -> Mapping[str, NDArray[np.generic]]:
    """Both models at the union of their most probable tokens, [N, 2 size], and the mass outside, [N].

    Parameters
    ----------
    p, q
        Distributions as drawn from, [N, V].
    logits
        Of the draft, [N, V].
    size
        Most probable tokens of each.
    """
    at_one = torch.softmax(logits, -1)
    size = min(size, p.shape[-1])
    both = torch.cat([p.topk(size, -1).indices, at_one.topk(size, -1).indices], -1).sort(-1).values
    is_again = torch.zeros_like(both, dtype=torch.bool)
    is_again[:, 1:] = both[:, 1:] == both[:, :-1]
    # Each token once, those there are first, in rising order.
    ids = both.masked_fill(is_again, p.shape[-1]).sort(-1).values
    is_there = ids < p.shape[-1]
    at = ids.clamp(max=p.shape[-1] - 1)
    inside_p, inside_q, inside_one = (torch.where(is_there, law.gather(1, at), 0.0) for law in (p, q, at_one))
    shared = torch.minimum(p, q).sum(-1) - torch.minimum(inside_p, inside_q).sum(-1)
    return {
        "union_ids": torch.where(is_there, ids, -1).int().numpy(),
        "log_p": inside_p.log().clamp(max=0.0).numpy(),
        "log_q": inside_one.log().clamp(max=0.0).numpy(),
        "tail_p": (1 - inside_p.sum(-1)).clamp(0.0, 1.0).numpy(),
        "tail_q": (1 - inside_one.sum(-1)).clamp(0.0, 1.0).numpy(),
        "tail_overlap": shared.clamp(0.0, 1.0).numpy(),
    }


@torch.no_grad()
def tail_columns(
    draft: TailDraft, p: torch.Tensor, q: torch.Tensor, continuation: Continuation
) -> Mapping[str, NDArray[np.generic]]:
    """Return what the draft goes on to draft after a rejection at each position, [N, T].

    The rejected token is drawn from the law of rejected drafts, (q - p)+ normalised, which given a rejection
    is independent of the path; a greedy draft has its most probable token rejected, unless it is the path's.
    Where nothing can be rejected there is no tail.
    """
    num_tokens, count = len(continuation.token), draft.extras.num_tail_tokens
    is_greedy = draft.draft_sample_method == "greedy"
    key = int(np.abs(np.concatenate([continuation.prompt, continuation.token])).sum())
    luck = RandomStreams(draft.extras.seed).generator(Purpose.DRAFT, key).random((count + 1, num_tokens))
    uniforms = torch.from_numpy(luck)
    if is_greedy:
        rejected = q.argmax(-1)
        can_be = rejected != torch.from_numpy(continuation.token)
    else:
        excess = (q - p).clamp(min=0.0)
        can_be = excess.sum(-1) > _LEAST_REJECTION
        rejected = torch.where(can_be, sample(excess + 1e-30, uniforms[0]), 0)
    before = np.concatenate([continuation.prompt, continuation.token])
    tokens = np.full((num_tokens, count), -1, dtype=np.int32)
    top, entropy = (np.zeros((num_tokens, count), dtype=np.float32) for _ in range(2))
    device = next(draft.network.parameters()).device
    for first in range(0, num_tokens, _ROWS_PER_PASS):
        rows = [row for row in range(first, min(first + _ROWS_PER_PASS, num_tokens)) if can_be[row]]
        texts = [[*before[: len(continuation.prompt) + row].tolist(), int(rejected[row])] for row in rows]
        for ahead in range(count if rows else 0):
            law = draft.warp(draft.next_logits(texts, device, p.shape[-1]))
            drawn = law.argmax(-1) if is_greedy else sample(law, uniforms[ahead + 1, rows])
            tokens[rows, ahead] = drawn.numpy()
            top[rows, ahead] = law.amax(-1).numpy()
            entropy[rows, ahead] = torch.special.entr(law).sum(-1).clamp(min=0.0).numpy()
            for text, token in zip(texts, drawn.tolist(), strict=True):
                text.append(token)
    return {"tail_token": tokens, "tail_top_probability": top, "tail_entropy_nats": entropy}
