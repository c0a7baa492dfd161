"""Continuations sampled from a target in batches, with the distributions that they were really drawn from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from transformers import DynamicCache

from specsim.arrays import Floats, Ints
from specsim.recording.models import LanguageModel
from specsim.recording.warp import Warp, sample


@dataclass(slots=True)
class Continuation:
    """What the target said after one prompt."""

    prompt: Ints
    """Token ids of the prompt, [M]."""
    token: Ints
    """Token ids sampled, the end token included, [N]."""
    probabilities: torch.Tensor
    """The warped p that each token was drawn from, float32 on the CPU, [N, V]."""
    ended_by: Literal["eos", "recorder"]
    """``recorder``: cut at the most tokens that the recording allows."""


@torch.no_grad()
def generate(
    target: LanguageModel,
    prompts: Sequence[Ints],
    uniforms: Floats,
    *,
    warp: Warp,
    on_tokens: Callable[[int], None],
    keeps_probabilities: bool = True,
) -> list[Continuation]:
    """Sample one continuation a prompt, all in one batch.

    Keeps p of every position: B · N · V · 4 bytes. A second, teacher-forced pass would differ from the p
    that was drawn from by rounding, and top-p could then exclude a token that was drawn.

    Parameters
    ----------
    target
        The model that speaks.
    prompts
        Token ids of each prompt, B of them.
    uniforms
        In [0, 1), one for each token, [B, N]; N is the most tokens a prompt.
    warp
        What the target's logits become before a token is drawn.
    on_tokens
        Told how many tokens each step sampled.
    keeps_probabilities
        Whether p is kept; where it is not, ``probabilities`` is empty.
    """
    num_prompts, max_tokens = uniforms.shape
    longest = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(num_prompts, longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.from_numpy(prompt)
        mask[row, longest - len(prompt) :] = 1
    ids, mask = ids.to(target.device), mask.to(target.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    luck = torch.from_numpy(uniforms).to(target.device)
    ends = torch.tensor(sorted(target.end_tokens), dtype=torch.long, device=target.device)

    token = np.zeros((num_prompts, max_tokens), dtype=np.int64)
    probabilities = torch.empty(num_prompts, max_tokens if keeps_probabilities else 0, target.vocabulary_size)
    num_tokens = np.zeros(num_prompts, dtype=np.int64)
    has_ended = np.zeros(num_prompts, dtype=bool)
    live = np.arange(num_prompts)
    cache = DynamicCache(config=target.network.config)
    # transformers renamed the argument in 5.
    parameters = inspect.signature(target.network.forward).parameters
    keep_cache = {"cache" if "cache" in parameters else "past_key_values": cache}
    for step in range(max_tokens):
        output = target.network(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **keep_cache,
        )
        p = warp(output.logits[:, -1])
        drawn = sample(p, luck[live, step])
        token[live, step] = drawn.cpu().numpy()
        if keeps_probabilities:
            probabilities[live, step] = p.cpu()
        num_tokens[live] = step + 1
        on_tokens(len(live))
        is_end = torch.isin(drawn, ends)
        has_ended[live[is_end.cpu().numpy()]] = True
        if is_end.all():
            break
        if is_end.any():
            # Ended rows cost as much as living ones: they leave the batch.
            keep = (~is_end).nonzero()[:, 0]
            cache.batch_select_indices(keep)
            drawn, mask, positions = drawn[keep], mask[keep], positions[keep]
            live = live[keep.cpu().numpy()]
        ids = drawn[:, None]
        mask = torch.cat([mask, torch.ones_like(ids)], dim=1)
        positions = positions[:, -1:] + 1
    return [
        Continuation(
            prompt=prompt,
            token=token[row, : num_tokens[row]],
            probabilities=probabilities[row, : num_tokens[row]],
            ended_by="eos" if has_ended[row] else "recorder",
        )
        for row, prompt in enumerate(prompts)
    ]
