"""A schedule: how many tokens a round should draft at each load, from a sweep over both.

At each load the smallest lookahead whose 95 % interval reaches the best mean is taken: with few prompts
neighbours cannot be told apart, and the smallest wastes least. Where the best does not pay, none is drafted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specsim.sweep.estimates import PointEstimate


@dataclass(frozen=True, slots=True)
class Rung:
    """One range of loads with one lookahead."""

    lowest: int
    """Fewest sequences in the batch."""
    highest: int
    """Most sequences in the batch."""
    num_speculative_tokens: int
    """Tokens a round should draft."""


def schedule(gains: Mapping[int, Mapping[int, PointEstimate]]) -> list[Rung]:
    """Return ranges of loads with the lookahead of each; a load between two goes with the higher.

    Parameters
    ----------
    gains
        By load, in any order, the speed-up at each lookahead.

    Examples
    --------
    >>> def gain(mean): return PointEstimate(mean, mean - 0.05, mean + 0.05, 1)
    >>> found = schedule({1: {2: gain(1.3), 4: gain(1.5)}, 8: {2: gain(1.2), 4: gain(0.9)}})
    >>> [(rung.lowest, rung.highest, rung.num_speculative_tokens) for rung in found]
    [(1, 1, 4), (2, 8, 2)]
    """
    rungs: list[Rung] = []
    lowest = 1
    for load in sorted(gains):
        length = _length(gains[load])
        if rungs and rungs[-1].num_speculative_tokens == length:
            rungs[-1] = Rung(rungs[-1].lowest, load, length)
        else:
            rungs.append(Rung(lowest, load, length))
        lowest = load + 1
    return rungs


def vllm_schedule(rungs: Sequence[Rung]) -> str:
    """Return vLLM's ``num_speculative_tokens_per_batch_size``: [lowest, highest, K], both included.

    Examples
    --------
    >>> vllm_schedule([Rung(1, 4, 5), Rung(5, 32, 3)])
    '[[1, 4, 5], [5, 32, 3]]'
    """
    return str([[rung.lowest, rung.highest, rung.num_speculative_tokens] for rung in rungs])


def tensorrt_schedule(rungs: Sequence[Rung]) -> str:
    """Return TensorRT-LLM's ``draft_len_schedule``: the length up to each batch; beyond, none.

    Examples
    --------
    >>> tensorrt_schedule([Rung(1, 4, 5), Rung(5, 32, 3)])
    '{4: 5, 32: 3}'
    """
    return str({rung.highest: rung.num_speculative_tokens for rung in rungs})


def _length(gains: Mapping[int, PointEstimate]) -> int:
    best = max(gain.mean for gain in gains.values())
    if best <= 1.0:
        return 0
    return min(
        length for length, gain in gains.items() if (gain.mean if gain.high is None else gain.high) >= best
    )
