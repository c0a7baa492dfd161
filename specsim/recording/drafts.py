"""Drafts as the recorder sees them: given a continuation, the columns of a trace.

A draft that is a function of the tokens before it (another model, an early exit) gives one value a
position. Prompt lookup, which goes on from the round's start, is in :mod:`specsim.recording.lookup`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from specsim.errors import DomainError
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

    @property
    def temperature(self) -> float:
        """Temperature of the recorded distribution."""
        return self.warp.temperature

    @torch.no_grad()
    def columns(self, continuation: Continuation) -> Columns:
        """Scalars at every position, from one pass over prompt and continuation."""
        p = continuation.probabilities
        q = self.warp(widened(self._logits(continuation), p.shape[-1]))
        token = torch.from_numpy(continuation.token)[:, None]
        top, argmax = q.max(-1)
        # A sum of many roundings may exceed 1 by as many; more is impossible.
        overlap = torch.minimum(p, q).sum(-1, dtype=torch.float64).clamp(max=1.0)
        return {
            "q_token": q.gather(1, token)[:, 0].numpy(),
            "overlap": overlap.float().numpy(),
            "draft_argmax": argmax.int().numpy(),
            "p_at_draft_argmax": p.gather(1, argmax[:, None])[:, 0].numpy(),
            "draft_entropy_nats": torch.special.entr(q).sum(-1).clamp(min=0.0).float().numpy(),
            "draft_top_probability": top.float().numpy(),
        }

    def _logits(self, continuation: Continuation) -> torch.Tensor:
        device = next(self.network.parameters()).device
        before = np.concatenate([continuation.prompt, continuation.token[:-1]])
        ids = torch.from_numpy(before)[None].to(device)
        output = self.network(input_ids=ids, use_cache=False, logits_to_keep=len(continuation.token))
        logits: torch.Tensor = output.logits[0].float().cpu()
        return logits


def model_draft(
    target: LanguageModel,
    draft: LanguageModel,
    warp: Warp,
    *,
    draft_sample_method: DraftSampleMethod = "probabilistic",
) -> CausalDraft:
    """Another model that shares the target's tokenizer.

    Raises
    ------
    DomainError
        Their tokenizers differ; the first differing id is named.
    """
    check_same_tokenizer(target, draft)
    return CausalDraft(draft.name, draft.name, draft.network, warp, draft.sha256, draft_sample_method)


def early_exit(
    target: LanguageModel,
    num_layers: int,
    warp: Warp,
    *,
    draft_sample_method: DraftSampleMethod = "probabilistic",
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
    )


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
