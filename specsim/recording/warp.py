"""The distribution that a model is sampled from: temperature, then top-k, then top-p."""

from __future__ import annotations

from dataclasses import dataclass

import torch

GREEDY_BELOW = 1e-5
"""Temperatures below this one are greedy, as in vLLM."""


@dataclass(frozen=True, slots=True)
class Warp:
    """Temperature, top-k and top-p, applied in this order.

    The law of :mod:`specsim.speculation.warpers`, ties to the lowest id included, on the model's device.
    """

    temperature: float
    top_k: int | None = None
    top_p: float = 1.0

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Probabilities [..., V] in float32 of logits [..., V]; rows sum to 1 up to rounding."""
        logits = logits.float()
        if self.temperature < GREEDY_BELOW:
            best = logits.argmax(-1, keepdim=True)
            return torch.zeros_like(logits).scatter_(-1, best, 1.0)
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            keep = logits.sort(dim=-1, descending=True, stable=True).indices[..., : self.top_k]
            logits = torch.full_like(logits, -torch.inf).scatter_(-1, keep, logits.gather(-1, keep))
        probabilities = torch.softmax(logits, -1)
        if self.top_p < 1.0:
            probabilities = _keep_top_mass(probabilities, self.top_p)
        return probabilities


def sample(probabilities: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Tokens by inversion of the cumulative distribution, [B].

    Parameters
    ----------
    probabilities
        Rows that need not sum to 1 exactly, [B, V].
    uniforms
        One uniform in [0, 1) a row, float64, [B].
    """
    cumulative = probabilities.double().cumsum(-1)
    total = cumulative[:, -1:].contiguous()
    token = torch.searchsorted(cumulative, uniforms[:, None] * total, right=True)
    # The product may round up to the total; the last token of positive probability is meant then.
    last = torch.searchsorted(cumulative, total)
    return torch.minimum(token, last)[:, 0]


def _keep_top_mass(probabilities: torch.Tensor, mass: float) -> torch.Tensor:
    # The smallest set of most probable tokens that holds the mass: never empty.
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ordered.double().cumsum(-1) - ordered
    ordered = torch.where(before < mass, ordered, 0.0)
    kept = torch.zeros_like(probabilities).scatter_(-1, order, ordered)
    return kept / kept.sum(-1, keepdim=True)
