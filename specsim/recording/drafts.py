"""Drafts as the recorder sees them: given a continuation, the columns of a trace.

A draft that is a function of the tokens before it (another model, an early exit) gives one value a
position. Prompt lookup, which goes on from the round's start, is in :mod:`specsim.recording.lookup`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from specsim.arrays import Ints
from specsim.errors import DomainError
from specsim.recording.extras import NO_EXTRAS, Extras, tail_columns, union_columns
from specsim.recording.generate import Continuation
from specsim.recording.models import LanguageModel, check_same_tokenizer
from specsim.recording.warp import Warp
from specsim.speculation.trace import DraftSampleMethod

Columns = Mapping[str, NDArray[np.generic]]


class RecordedDraft(Protocol):
    """What is recorded of one draft."""

    @property
    def name(self) -> str:
        """The draft in words, for the header."""
        ...

    @property
    def slug(self) -> str:
        """The draft as part of a file name."""
        ...

    @property
    def sha256(self) -> str | None:
        """Of its weights; None where it has none of its own."""
        ...

    @property
    def temperature(self) -> float:
        """Temperature of the recorded distribution."""
        ...

    @property
    def draft_sample_method(self) -> DraftSampleMethod:
        """How it draws."""
        ...

    def columns(self, continuation: Continuation) -> Columns:
        """Columns of :class:`specsim.speculation.trace.Trace` by name, each [N] or [N, D]."""
        ...


@dataclass(frozen=True, slots=True)
class CausalDraft:
    """A draft whose distribution depends only on the tokens before: a model, or part of one."""

    name: str
    slug: str
    network: nn.Module
    warp: Warp
    sha256: str | None = None
    draft_sample_method: DraftSampleMethod = "probabilistic"
    extras: Extras = NO_EXTRAS

    @property
    def temperature(self) -> float:
        """Temperature of the recorded distribution."""
        return self.warp.temperature

    @torch.no_grad()
    def columns(self, continuation: Continuation) -> Columns:
        """Scalars at every position, from one pass over prompt and continuation."""
        p = continuation.probabilities
        logits = widened(self._logits(continuation), p.shape[-1])
        q = self.warp(logits)
        columns = dict(scalar_columns(p, q, continuation.token))
        if self.extras.union_size:
            columns |= union_columns(p, q, logits, size=self.extras.union_size)
        if self.extras.num_tail_tokens:
            columns |= tail_columns(self, p, q, continuation)
        return columns

    def next_logits(self, texts: Sequence[Sequence[int]], device: torch.device, width: int) -> torch.Tensor:
        """Logits after each text, [texts, V]; texts are padded behind, which a causal model does not see."""
        longest = max(len(text) for text in texts)
        ids = torch.zeros(len(texts), longest, dtype=torch.long)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = torch.tensor(text)
        shortest = min(len(text) for text in texts)
        kept = longest - shortest + 1
        output = self.network(input_ids=ids.to(device), use_cache=False, logits_to_keep=kept)
        logits = output if isinstance(output, torch.Tensor) else output.logits
        at = torch.tensor([len(text) - 1 - longest for text in texts])
        return widened(logits[torch.arange(len(texts)), at].float().cpu(), width)

    def _logits(self, continuation: Continuation) -> torch.Tensor:
        device = next(self.network.parameters()).device
        before = np.concatenate([continuation.prompt, continuation.token[:-1]])
        ids = torch.from_numpy(before)[None].to(device)
        output = self.network(input_ids=ids, use_cache=False, logits_to_keep=len(continuation.token))
        # A plain module gives logits at every token, as a tensor.
        logits: torch.Tensor = output if isinstance(output, torch.Tensor) else output.logits
        return logits[0, -len(continuation.token) :].float().cpu()


def scalar_columns(p: torch.Tensor, q: torch.Tensor, tokens: Ints) -> Columns:
    """Return one value a position of a draft with distributions q along the path, [N] each.

    Parameters
    ----------
    p, q
        Distributions of target and draft over the same tokens, float32, [N, V].
    tokens
        Tokens of the path, [N].
    """
    token = torch.from_numpy(tokens)[:, None]
    top, argmax = q.max(-1)
    # A sum of many roundings may exceed 1 by as many; more is impossible.
    overlap = torch.minimum(p, q).sum(-1, dtype=torch.float64).clamp(max=1.0)
    return {
        "q_token": q.gather(1, token)[:, 0].numpy(),
        "overlap": overlap.float().numpy(),
        "draft_argmax": argmax.int().numpy(),
        "p_at_draft_argmax": p.gather(1, argmax[:, None])[:, 0].numpy(),
        "draft_entropy_nats": torch.special.entr(q).sum(-1).clamp(min=0.0).numpy(),
        "draft_top_probability": top.numpy(),
    }


def model_draft(
    target: LanguageModel,
    draft: LanguageModel,
    warp: Warp,
    *,
    draft_sample_method: DraftSampleMethod = "probabilistic",
    extras: Extras = NO_EXTRAS,
) -> CausalDraft:
    """Another model that shares the target's tokenizer.

    Raises
    ------
    DomainError
        Their tokenizers differ; the first differing id is named.
    """
    check_same_tokenizer(target, draft)
    return CausalDraft(draft.name, draft.name, draft.network, warp, draft.sha256, draft_sample_method, extras)


def early_exit(
    target: LanguageModel,
    num_layers: int,
    warp: Warp,
    *,
    draft_sample_method: DraftSampleMethod = "probabilistic",
    extras: Extras = NO_EXTRAS,
) -> CausalDraft:
    """Return the target's own first layers under its own final norm and output head; weights are shared.

    Raises
    ------
    DomainError
        Not fewer layers than the target has, or a model that does not keep them in ``model.layers``.
    """
    inner = getattr(target.network, "model", None)
    layers = getattr(inner, "layers", None)
    if not isinstance(inner, nn.Module) or not isinstance(layers, nn.ModuleList):
        raise DomainError(
            f"early exit needs a target with its layers in model.layers; '{target.name}' has none"
        )
    if not 1 <= num_layers < len(layers):
        raise DomainError(
            f"early exit after {num_layers}: '{target.name}' has {len(layers)}, so at most {len(layers) - 1}"
        )
    shallow = _with(inner, layers=nn.ModuleList(list(layers)[:num_layers]))
    shallow.config = copy.deepcopy(inner.config)
    shallow.config.get_text_config().num_hidden_layers = num_layers
    return CausalDraft(
        name=f"{target.name}, exit after {num_layers} of {len(layers)} layers",
        slug=f"exit{num_layers}",
        network=_with(target.network, model=shallow),
        warp=warp,
        draft_sample_method=draft_sample_method,
        extras=extras,
    )


def module_draft(
    name: str,
    module: nn.Module,
    warp: Warp,
    *,
    draft_sample_method: DraftSampleMethod = "probabilistic",
    extras: Extras = NO_EXTRAS,
) -> CausalDraft:
    """Return a draft of one's own: a module from token ids [1, L] to logits at every token, [1, L, V].

    It is called as ``module(input_ids=…, use_cache=False, logits_to_keep=…)`` and may ignore the last two.
    """
    return CausalDraft(name, name, module.eval(), warp, None, draft_sample_method, extras)


def _with(module: nn.Module, **replaced: nn.Module) -> nn.Module:
    # A copy that shares all submodules but those replaced; copy.copy alone would share the table of them.
    twin = copy.copy(module)
    twin._modules = {**module._modules, **replaced}
    return twin


def widened(logits: torch.Tensor, width: int) -> torch.Tensor:
    """Logits over the target's ids: rows that pad a vocabulary differ between models of one tokenizer."""
    missing = width - logits.shape[-1]
    if missing <= 0:
        return logits[:, :width]
    return nn.functional.pad(logits, (0, missing), value=-torch.inf)
