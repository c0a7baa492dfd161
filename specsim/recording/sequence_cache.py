"""What a model has read of many texts: keys and values by text, so that each may be taken back on its own."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from transformers import DynamicCache

from specsim.arrays import Ints

_MAX_TEXTS = 512
"""Texts remembered; one that has been forgotten is read again."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text, and after how many of its tokens the next token's logits are wanted."""

    text: int
    """Number of the text, under which it is remembered."""
    ids: Ints
    """All its tokens, [L]."""
    lengths: tuple[int, ...]
    """Numbers of tokens, each from 1 to L, rising."""


@dataclass(slots=True)
class _Read:
    ids: Ints
    layers: list[tuple[torch.Tensor, ...]]
    """Keys and values of each layer, [heads, L, width]."""


class SequenceCache:
    """A model that has read many texts and reads only what is new of each.

    Texts are kept apart and put together, aligned at their ends, for each pass. To take tokens back is to
    keep fewer of them, text by text: a batch in which each text keeps another number needs nothing more.

    Parameters
    ----------
    network
        A causal language model in evaluation mode.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._read: OrderedDict[int, _Read] = OrderedDict()
        # transformers renamed the argument in 5.
        parameters = inspect.signature(network.forward).parameters
        self._argument = "cache" if "cache" in parameters else "past_key_values"

    @torch.no_grad()
    def logits(self, questions: Sequence[Question]) -> list[torch.Tensor]:
        """Logits at the wanted places of each text, [places, V] each; one pass for all.

        A text may be asked for once only.
        """
        known = [self._known(question) for question in questions]
        fresh = [question.ids[count:] for question, count in zip(questions, known, strict=True)]
        device = next(self._network.parameters()).device
        num_rows, num_past, num_new = len(questions), max(known), max(len(ids) for ids in fresh)
        ids = torch.zeros(num_rows, num_new, dtype=torch.long)
        mask = torch.zeros(num_rows, num_past + num_new, dtype=torch.long)
        positions = torch.zeros_like(ids)
        for row, (count, new) in enumerate(zip(known, fresh, strict=True)):
            ids[row, num_new - len(new) :] = torch.from_numpy(new)
            mask[row, num_past - count : num_past] = 1
            mask[row, num_past + num_new - len(new) :] = 1
            positions[row, num_new - len(new) :] = torch.arange(count, count + len(new))
        cache = self._together(questions, known, num_past)
        # Logits over a whole prompt would outweigh all else.
        num_kept = max(len(question.ids) - question.lengths[0] + 1 for question in questions)
        output = self._network(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            position_ids=positions.to(device),
            use_cache=True,
            logits_to_keep=num_kept,
            **{self._argument: cache},
        )
        answers = []
        for row, (question, count, new) in enumerate(zip(questions, known, fresh, strict=True)):
            places = torch.tensor(question.lengths) - 1 - len(question.ids) + num_kept
            answers.append(output.logits[row, places.to(device)].float())
            past, own = slice(num_past - count, num_past), slice(num_past + num_new - len(new), None)
            layers = [
                tuple(
                    torch.cat([part[row, :, past], part[row, :, own]], 1)
                    for part in (layer.keys, layer.values)
                )
                for layer in cache.layers
            ]
            self._remember(question, layers)
        return answers

    def _known(self, question: Question) -> int:
        """How many tokens of a text need not be read again: the last wanted places must be."""
        read = self._read.get(question.text)
        if read is None:
            return 0
        shorter = min(len(read.ids), question.lengths[0] - 1)
        differs = np.flatnonzero(read.ids[:shorter] != question.ids[:shorter])
        return int(differs[0]) if differs.size else shorter

    def _together(self, questions: Sequence[Question], known: Sequence[int], num_past: int) -> DynamicCache:
        cache = DynamicCache(config=self._network.config)
        if num_past == 0:
            return cache
        sample = next(
            self._read[question.text] for question, count in zip(questions, known, strict=True) if count
        )
        for number, (key, value) in enumerate(sample.layers):
            keys = key.new_zeros(len(questions), key.shape[0], num_past, key.shape[2])
            values = value.new_zeros(len(questions), value.shape[0], num_past, value.shape[2])
            for row, (question, count) in enumerate(zip(questions, known, strict=True)):
                if count:
                    own_key, own_value = self._read[question.text].layers[number]
                    keys[row, :, num_past - count :] = own_key[:, :count]
                    values[row, :, num_past - count :] = own_value[:, :count]
            cache.update(keys, values, number)
        return cache

    def _remember(self, question: Question, layers: list[tuple[torch.Tensor, ...]]) -> None:
        self._read[question.text] = _Read(question.ids, layers)
        self._read.move_to_end(question.text)
        while len(self._read) > _MAX_TEXTS:
            self._read.popitem(last=False)
