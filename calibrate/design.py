"""The design of experiment of a capture: which cells are measured, and in which random order.

Cells that identify a roofline: positions at batch 1 around every kernel switch and the corner between
memory and compute, batches against verified positions, contexts from short to long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.measurements import Phase
from specsim.errors import DomainError
from specsim.streams import Purpose, RandomStreams

POSITIONS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256)
"""Positions of one sequence; one past a power of two shows its tile."""
BATCHES = (1, 4, 16, 64)
"""Sequences decoding at once."""
VERIFIED = (1, 4, 8)
"""Positions that each of them verifies."""
CONTEXTS = (128, 1024, 4096, 16384)
"""Cached tokens of each sequence."""
PREFILLS = (64, 256, 1024)
"""Prompt tokens of one sequence without cache."""

_BASE_CONTEXT = 128


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One shape of step to be measured."""

    phase: Phase
    num_positions: int
    """Positions of the whole batch."""
    num_sequences: int
    context_tokens: int
    """Cached tokens of each sequence."""

    @property
    def cell_id(self) -> str:
        """Name of the cell in a file, and of its range in a profile."""
        return f"{self.phase}-{self.num_positions}x{self.num_sequences}-{self.context_tokens}"

    @property
    def num_cached_tokens(self) -> int:
        """Cached tokens of all sequences after the step."""
        return self.num_sequences * self.context_tokens + self.num_positions


def design(
    *,
    positions: Sequence[int] = POSITIONS,
    batches: Sequence[int] = BATCHES,
    verified: Sequence[int] = VERIFIED,
    contexts: Sequence[int] = CONTEXTS,
    prefills: Sequence[int] = PREFILLS,
    max_positions: int = 1024,
    max_cached_tokens: int = 65536,
) -> list[Cell]:
    """Cells of an experiment, each once.

    Parameters
    ----------
    positions, batches, verified, contexts, prefills
        Levels of each factor.
    max_positions
        Cells with more positions are left out.
    max_cached_tokens
        Cells with more cached tokens over all sequences are left out.

    Raises
    ------
    DomainError
        Where the limits leave no cell.

    Examples
    --------
    >>> [cell.cell_id for cell in design(positions=[1, 4], batches=[], contexts=[], prefills=[8])]
    ['decode-1x1-128', 'prefill-8x1-0', 'verify-4x1-128']
    """
    along_positions = [_decoding(each, 1, _BASE_CONTEXT) for each in positions]
    along_batches = [_decoding(each, batch, _BASE_CONTEXT) for batch in batches for each in verified]
    along_contexts = [
        _decoding(each, batch, context)
        for context in contexts
        for batch in (batches or (1,))[:3:2]
        for each in (1, max(verified, default=1))
    ]
    prompts = [Cell("prefill", tokens, 1, 0) for tokens in prefills]
    wanted = {*along_positions, *along_batches, *along_contexts, *prompts}
    cells = sorted(
        cell
        for cell in wanted
        if cell.num_positions <= max_positions and cell.num_cached_tokens <= max_cached_tokens
    )
    if not cells:
        raise DomainError(
            f"no cell has at most {max_positions} positions and {max_cached_tokens} cached tokens"
        )
    return cells


def grid(positions: Sequence[int], contexts: Sequence[int]) -> list[Cell]:
    """Cells of one sequence at every pair of positions and context, as a table profile needs them."""
    return [_decoding(each, 1, context) for context in contexts for each in positions]


def shuffled(cells: Sequence[Cell], streams: RandomStreams, *, repeat: int) -> list[Cell]:
    """Cells in the random order of one repeat, so that drift of the device meets none in particular."""
    order = streams.generator(Purpose.CAPTURE_ORDER, repeat).permutation(len(cells))
    return [cells[index] for index in order.tolist()]


def _decoding(each: int, batch: int, context: int) -> Cell:
    return Cell("decode" if each == 1 else "verify", each * batch, batch, context)
