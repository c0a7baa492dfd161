"""A network and its cache: passes over new tokens that the cache remembers, and tokens taken back."""

from __future__ import annotations

import inspect

import torch
from torch import nn
from transformers import DynamicCache, StaticCache


class CachedNetwork:
    """A causal language model with the keys and values of what it has read.

    Parameters
    ----------
    network
        The model, in evaluation mode.
    max_tokens
        Room for so many tokens, allocated at once, as a CUDA graph needs it; left out: the cache grows.
    """

    def __init__(self, network: nn.Module, *, max_tokens: int | None = None) -> None:
        self.network = network
        self.is_static = max_tokens is not None
        self.cache = (
            DynamicCache(config=network.config)
            if max_tokens is None
            else StaticCache(config=network.config, max_cache_len=max_tokens)
        )
        self.num_tokens = 0
        # transformers renamed the argument in 5.
        parameters = inspect.signature(network.forward).parameters
        self._argument = "cache" if "cache" in parameters else "past_key_values"

    def logits(self, ids: torch.Tensor, *, last_only: bool = False) -> torch.Tensor:
        """Logits after each new token, or after the last alone, [B, N or 1, V].

        Parameters
        ----------
        ids
            New tokens of each sequence, [B, N].
        last_only
            Whether only the last position's logits are wanted.
        """
        output = self.network(
            input_ids=ids, use_cache=True, logits_to_keep=int(last_only), **{self._argument: self.cache}
        )
        self.num_tokens += ids.shape[1]
        logits: torch.Tensor = output.logits
        return logits

    def take_back(self, num_tokens: int) -> None:
        """Forget the last tokens read."""
        if num_tokens:
            self.cache.crop(-num_tokens)
            self.num_tokens -= num_tokens

    def repeat(self, num_sequences: int) -> None:
        """Make several sequences of one, all with what has been read."""
        if num_sequences > 1 and self.num_tokens:
            self.cache.batch_repeat_interleave(num_sequences)
