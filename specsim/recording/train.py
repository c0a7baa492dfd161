"""Training of a draft head on text that the target itself has written, to say what the target would say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field
from torch.nn import functional

from specsim.arrays import Ints
from specsim.config import Spec
from specsim.errors import ConfigError
from specsim.recording.eagle import EagleHead, head_for, target_features
from specsim.recording.models import LanguageModel
from specsim.streams import Purpose, RandomStreams

_WORD_STRIDE = 8
"""Every so many positions say which words the target uses."""
_LATER_DRAFT_WEIGHT = 0.7
"""Weight of a draft in the loss, relative to the one before it: later ones are reached less often."""
_REJECTION_WEIGHT = 4.0
"""Weight of the share rejected beside the cross entropy, whose gradient reaches words without mass."""


class TrainingSettings(Spec):
    """How a head is trained."""

    temperature: float = Field(default=0.7, gt=0)
    """Temperature at which head and target are compared."""
    num_words: int = Field(default=8192, gt=0)
    """Words that the head can say: the target's most used."""
    depth: int = Field(default=2, gt=0, le=16)
    """Drafts of a round that are trained."""
    num_epochs: int = Field(default=4, gt=0)
    """Passes over the texts."""
    batch_size: int = Field(default=8, gt=0)
    """Texts in a step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Highest learning rate; it falls to nothing along a cosine."""
    seed: int = Field(default=0, ge=0)
    """Seed of the order of the texts."""


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A prompt and what the target said to it."""

    ids: Ints
    """Token ids, [L]."""
    num_prompt_tokens: int
    """How many of them are the prompt's."""


Progress = Callable[[int, int, float, float], None]
"""Told the step, their number, the loss and the acceptance of a first draft in the last batch."""


def train_head(
    target: LanguageModel,
    texts: Sequence[TrainingText],
    settings: TrainingSettings,
    *,
    on_step: Progress = lambda *_: None,
    on_epoch: Callable[[EagleHead], None] = lambda _: None,
) -> EagleHead:
    """Train a head to minimise the cross entropy of the target's distribution and the share rejected.

    The share rejected of a draft is the total variation 1 - Σ min(p, q) (Zhou et al. 2024, DistillSpec).

    All tokens count but the preamble that the texts share: the target's distribution is known at the
    prompts' tokens too.

    Raises
    ------
    ConfigError
        No text of more than two tokens after its prompt.
    DomainError
        The target is not of Llama's layout.
    """
    usable = [text for text in texts if len(text.ids) > text.num_prompt_tokens + 2]
    if not usable:
        raise ConfigError("nothing to train on: no text of more than two tokens after its prompt")
    features = [
        target_features(target, torch.from_numpy(text.ids)[None].to(target.device))[0].bfloat16().cpu()
        for text in usable
    ]
    embedding = target.network.get_input_embeddings().weight.detach()
    output = target.network.get_output_embeddings().weight.detach()
    start = _num_shared_tokens(usable)
    words = _most_used_words(features, output, start, settings)
    head = head_for(target, words).to(target.device)
    spoken = output[words.to(target.device)].float()
    optimiser = torch.optim.AdamW(head.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98))
    batches_an_epoch = math.ceil(len(usable) / settings.batch_size)
    num_steps = batches_an_epoch * settings.num_epochs
    order = RandomStreams(settings.seed)
    step = 0
    for epoch in range(settings.num_epochs):
        for rows in _batches(usable, order.generator(Purpose.TRAINING, 2, epoch), settings.batch_size):
            rate = settings.learning_rate * min(1.0, (step + 1) / 20) * _cosine(step / num_steps)
            for group in optimiser.param_groups:
                group["lr"] = rate
            batch = _batch([usable[row] for row in rows], [features[row] for row in rows], start)
            loss, acceptance = _loss(head, batch, embedding, spoken, settings)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimiser.step()
            step += 1
            on_step(step, num_steps, float(loss.detach()), acceptance)
        on_epoch(head)
    return head.eval()


@dataclass(frozen=True, slots=True)
class _Batch:
    ids: torch.Tensor
    features: torch.Tensor
    is_trained: torch.Tensor
    """Positions whose next token is not of the shared preamble, [B, L]."""


def _loss(
    head: EagleHead,
    batch: _Batch,
    embedding: torch.Tensor,
    spoken: torch.Tensor,
    settings: TrainingSettings,
) -> tuple[torch.Tensor, float]:
    """Mean loss over all drafts of rounds begun everywhere; share of first drafts that would be kept."""
    device = spoken.device
    ids, features = batch.ids.to(device), batch.features.to(device).float()
    length, width = ids.shape[1], embedding.shape[1]
    padded = functional.pad(ids, (0, settings.depth))
    embedded = functional.embedding(padded[:, 1:], embedding).float()
    with torch.no_grad():
        p = torch.softmax(features[..., -width:] @ spoken.T / settings.temperature, -1)
    total = torch.zeros((), device=device)
    weights, acceptance = 0.0, 0.0
    for ahead, stream in enumerate(head.unroll(features, embedded, settings.depth)):
        # Row t foretells what the target says after token t + 1 + ahead.
        last = length - 1 - ahead
        chosen = batch.is_trained[:, 1 + ahead :].to(device)
        logits = head.spoken(stream[:, :last][chosen]) @ spoken.T
        log_q = torch.log_softmax(logits / settings.temperature, -1)
        wanted = p[:, 1 + ahead :][chosen]
        weight = _LATER_DRAFT_WEIGHT**ahead
        kept = torch.minimum(wanted, log_q.exp()).sum(-1).mean()
        surprise = -(wanted * log_q).sum(-1).mean()
        total = total + weight * (surprise + _REJECTION_WEIGHT * (1.0 - kept))
        weights += weight
        if ahead == 0:
            acceptance = float(kept.detach())
    return total / weights, acceptance


def _num_shared_tokens(texts: Sequence[TrainingText]) -> int:
    """Tokens with which every prompt begins, at least 1."""
    shortest = min(text.num_prompt_tokens for text in texts)
    prompts = np.stack([text.ids[:shortest] for text in texts])
    differs = np.any(prompts != prompts[0], axis=0)
    return max(1, int(differs.argmax()) if differs.any() else shortest)


def _most_used_words(
    features: Sequence[torch.Tensor],
    output: torch.Tensor,
    start: int,
    settings: TrainingSettings,
) -> torch.Tensor:
    """Token ids with the most of the target's probability, sorted."""
    mass = torch.zeros(output.shape[0], device=output.device)
    width = output.shape[1]
    with torch.no_grad():
        for feature in features:
            states = feature[start - 1 :: _WORD_STRIDE, -width:].to(output.device).float()
            mass += torch.softmax(states @ output.float().T / settings.temperature, -1).sum(0)
    count = min(settings.num_words, output.shape[0])
    return mass.topk(count).indices.sort().values.cpu()


def _batch(texts: Sequence[TrainingText], features: Sequence[torch.Tensor], start: int) -> _Batch:
    longest = max(len(text.ids) for text in texts)
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    padded = torch.zeros(len(texts), longest, features[0].shape[-1], dtype=features[0].dtype)
    is_trained = torch.zeros(len(texts), longest, dtype=torch.bool)
    for row, (text, feature) in enumerate(zip(texts, features, strict=True)):
        length = len(text.ids)
        ids[row, :length] = torch.from_numpy(text.ids)
        padded[row, :length] = feature
        is_trained[row, start - 1 : length] = True
    return _Batch(ids, padded, is_trained)


def _batches(texts: Sequence[TrainingText], luck: np.random.Generator, batch_size: int) -> list[list[int]]:
    """Texts of like length together, batches in random order."""
    jitter = luck.random(len(texts)) * 16
    order = sorted(range(len(texts)), key=lambda row: len(texts[row].ids) + jitter[row])
    groups = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    return [groups[number] for number in luck.permutation(len(groups))]


def _cosine(done: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * done))
