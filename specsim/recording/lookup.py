"""Prompt lookup: the draft copies what followed an earlier occurrence of the last tokens (Saxena 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from specsim.arrays import Ints
from specsim.errors import DomainError
from specsim.speculation.trace import DraftSampleMethod

if TYPE_CHECKING:
    from specsim.recording.drafts import Columns
    from specsim.recording.generate import Continuation


@dataclass(frozen=True, slots=True)
class PromptLookup:
    """vLLM's rule: the longest n-gram that ends the context and occurred before, at its earliest occurrence.

    The copy ends where the context does: a match near the end proposes few tokens.
    """

    slug: ClassVar[str] = "lookup"
    sha256: ClassVar[str | None] = None
    temperature: ClassVar[float] = 0.0
    draft_sample_method: ClassVar[DraftSampleMethod] = "greedy"
    """Nothing is drawn: the proposal is certain."""

    prompt_lookup_max: int = 3
    """Longest n-gram matched, tokens."""
    prompt_lookup_min: int = 1
    """Shortest n-gram matched, tokens."""
    num_proposed: int = 8
    """Most tokens proposed."""

    def __post_init__(self) -> None:
        """Refuse impossible settings."""
        if not 1 <= self.prompt_lookup_min <= self.prompt_lookup_max:
            raise DomainError(
                f"prompt lookup needs 1 <= prompt_lookup_min <= prompt_lookup_max, "
                f"not {self.prompt_lookup_min} and {self.prompt_lookup_max}"
            )
        if self.num_proposed < 1:
            raise DomainError(f"prompt lookup proposes at least 1 token, not {self.num_proposed}")

    @property
    def name(self) -> str:
        """The draft in words, for the header."""
        return (
            f"prompt lookup, n-grams of {self.prompt_lookup_min} to {self.prompt_lookup_max} tokens, "
            f"up to {self.num_proposed} proposed"
        )

    def columns(self, continuation: Continuation) -> Columns:
        """Proposals of a round started at each position, and the target's probability of each, [N, D].

        A proposal below one that differs from the path has none: the target was never asked about it.
        """
        proposed = self.proposals(continuation.prompt, continuation.token)
        num_tokens, depth = proposed.shape
        at = np.arange(num_tokens)[:, None] + np.arange(depth)
        is_scored = (proposed >= 0) & (at < num_tokens)
        is_on_path = is_scored & (proposed == continuation.token[np.minimum(at, num_tokens - 1)])
        is_scored[:, 1:] &= np.logical_and.accumulate(is_on_path, axis=1)[:, :-1]
        p = continuation.probabilities.numpy()
        p_at_proposal = np.zeros(proposed.shape, dtype=np.float32)
        p_at_proposal[is_scored] = p[at[is_scored], proposed[is_scored]]
        return {"proposal_token": proposed.astype(np.int32), "p_at_proposal": p_at_proposal}

    def proposals(self, prompt: Ints, token: Ints) -> Ints:
        """Tokens proposed in a round started at each position of a continuation, [N, D]; -1 is none.

        Parameters
        ----------
        prompt
            Token ids before the continuation, [M].
        token
            Token ids of the continuation, [N]; a round started at s sees those before s.

        Examples
        --------
        >>> lookup = PromptLookup(prompt_lookup_max=2, num_proposed=3)
        >>> lookup.proposals(np.array([5, 6, 7, 8, 5, 6]), np.array([7, 9])).tolist()
        [[7, 8, 5], [8, 5, 6]]
        """
        context = [*prompt.tolist(), *token.tolist()]
        proposed = np.full((len(token), self.num_proposed), -1, dtype=np.int64)
        # First place after each n-gram; an n-gram enters once a token has followed it.
        first_after: dict[tuple[int, ...], int] = {}
        lengths = range(self.prompt_lookup_min, self.prompt_lookup_max + 1)
        for end in range(1, len(context)):
            start = end - len(prompt)
            if start >= 0:
                after = self._match(context, end, first_after)
                if after is not None:
                    copied = context[after : min(after + self.num_proposed, end)]
                    proposed[start, : len(copied)] = copied
            for length in lengths:
                if length <= end:
                    first_after.setdefault(tuple(context[end - length : end]), end)
        return proposed

    def _match(self, context: list[int], end: int, first_after: dict[tuple[int, ...], int]) -> int | None:
        for length in range(min(self.prompt_lookup_max, end - 1), self.prompt_lookup_min - 1, -1):
            after = first_after.get(tuple(context[end - length : end]))
            if after is not None:
                return after
        return None
