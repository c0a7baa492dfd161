"""Another temperature of the draft, computed from the most probable tokens of both models.

A trace with unions holds log p as drawn from and log q at temperature 1 at the union of both top-k, and the
mass outside. At draft temperature t the draft's law is q^(1/t) / Z. Inside the union only Z is uncertain: the
tokens outside add between ``low`` and ``high`` to it, for a given mass is worth least to Z spread evenly and
most piled up as high as the last of the draft's own top-k allows (the other way round for t > 1). The
acceptance is computed at the middle; how far either end is from it, and half of what the tokens outside
could add, is the stated error. The target's temperature is part of the path's law and cannot be changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from specsim.arrays import Floats
from specsim.errors import ConfigError, DomainError
from specsim.speculation.trace import Trace


@dataclass(frozen=True, slots=True)
class Rewarped:
    """A trace with another temperature of its draft."""

    trace: Trace
    overlap_error: Floats
    """How far the overlap of p and q may be off at each position, [N]."""


def rewarp_draft(trace: Trace, temperature: float) -> Rewarped:
    """Return the trace as if the draft had been sampled at another temperature.

    Parameters
    ----------
    trace
        A trace with scalars and unions.
    temperature
        Of the draft, above 0; a greedy draft needs no re-warping.

    Raises
    ------
    ConfigError
        The trace holds no unions.
    DomainError
        The temperature is not above 0.

    Notes
    -----
    A token of the path outside the union gets the draft probability of its share of the mass outside, as
    far as that is known: the recorded one raised to the power, over the middle Z.
    """
    if not temperature > 0:
        raise DomainError(f"draft_temperature: above 0, not {temperature}")
    if trace.union_ids is None or trace.q_token is None or trace.header.draft_temperature <= 0:
        raise ConfigError.at(
            "distributions.draft_temperature",
            "only a trace of a sampled draft recorded with unions can be changed",
        )
    assert trace.log_p is not None
    assert trace.log_q is not None
    assert trace.tail_p is not None
    assert trace.tail_q is not None
    is_there = trace.union_ids >= 0
    power = 1.0 / temperature
    log_q = np.where(is_there, trace.log_q.astype(np.float64), -np.inf)
    p = np.where(is_there, np.exp(trace.log_p.astype(np.float64)), 0.0)
    raised = np.exp(power * log_q)
    inside = raised.sum(axis=1)
    low, high = _outside(trace, log_q, power)
    low_z, high_z = inside + low, inside + high
    middle = inside + (low + high) / 2
    q = raised / middle[:, np.newaxis]
    overlap = np.minimum(p, q).sum(axis=1)
    widest = np.minimum(p, raised / low_z[:, np.newaxis]).sum(axis=1)
    narrowest = np.minimum(p, raised / high_z[:, np.newaxis]).sum(axis=1)
    added = np.minimum(trace.tail_p.astype(np.float64), high / high_z)
    top = q.argmax(axis=1)
    rows = np.arange(trace.num_tokens)
    entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1)
    changed = replace(
        trace,
        header=trace.header.model_copy(update={"draft_temperature": temperature}),
        q_token=_of_path(trace, raised, middle, power).astype(np.float32),
        overlap=np.minimum(overlap + added / 2, 1.0).astype(np.float32),
        draft_argmax=trace.union_ids[rows, top],
        p_at_draft_argmax=p[rows, top].astype(np.float32),
        draft_entropy_nats=np.maximum(entropy, 0.0).astype(np.float32),
        draft_top_probability=q[rows, top].astype(np.float32),
    )
    return Rewarped(changed, np.maximum(widest - overlap, overlap - narrowest) + added / 2)


def _outside(trace: Trace, log_q: Floats, power: float) -> tuple[Floats, Floats]:
    """Least and most that the tokens outside the union add to Z, [N] each."""
    assert trace.union_ids is not None
    assert trace.tail_q is not None
    mass = trace.tail_q.astype(np.float64)
    num_outside = np.maximum(trace.header.vocabulary_size - (trace.union_ids >= 0).sum(axis=1), 1)
    # The draft's own top-k are all inside: half as many as the union has places.
    last = trace.union_ids.shape[1] // 2 - 1
    ceiling = np.exp(-np.sort(-log_q, axis=1)[:, last])
    even = num_outside * (mass / num_outside) ** power
    # No token outside is above the last of them; piled up there, the mass fills mass / ceiling tokens.
    piled = np.maximum(mass / ceiling, 1.0) * np.minimum(ceiling, mass) ** power
    return np.minimum(even, piled), np.maximum(even, piled)


def _of_path(trace: Trace, raised: Floats, middle: Floats, power: float) -> Floats:
    assert trace.union_ids is not None
    assert trace.q_token is not None
    is_token = trace.union_ids == trace.token[:, np.newaxis]
    inside = np.where(is_token, raised, 0.0).sum(axis=1)
    # The recorded q of a token outside is q1^(1/t0) / Z0; its power t0 / t gives q1^(1/t) up to Z0.
    base = trace.header.draft_temperature
    at_one = trace.q_token.astype(np.float64) ** base * _normaliser(trace, base) ** base
    outside = at_one**power
    return np.minimum(np.where(is_token.any(axis=1), inside, outside) / middle, 1.0)


def _normaliser(trace: Trace, temperature: float) -> Floats:
    assert trace.union_ids is not None
    assert trace.log_q is not None
    log_q = np.where(trace.union_ids >= 0, trace.log_q.astype(np.float64), -np.inf)
    low, high = _outside(trace, log_q, 1 / temperature)
    normaliser: Floats = np.exp(log_q / temperature).sum(axis=1) + (low + high) / 2
    return normaliser
