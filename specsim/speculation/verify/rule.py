"""The seam of verification rules: a rule states a law and draws nothing, so it can be enumerated."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from specsim.arrays import Floats, Ints
from specsim.speculation.draft import Draft, Siblings


class Verifier(Protocol):
    """A verification rule as two conditional laws."""

    @property
    def is_lossless(self) -> bool:
        """The emitted tokens follow the target's distribution exactly."""
        ...

    @property
    def needs(self) -> Literal["acceptance", "path", "conditional"]:
        """The least that the distributions must offer; checked before anything runs.

        ``acceptance``: the rule keeps what path distributions say is kept, as token verification does.
        ``path``: p and q of the tokens of a recorded text; the rule is then a :class:`PathVerifier`.
        ``conditional``: p and q after any prefix.
        """
        ...

    @property
    def siblings(self) -> tuple[Siblings, ...]:
        """Kinds of drafts that the rule is stated for; any other is refused."""
        ...

    def descend(self, draft: Draft, target: Floats) -> Floats:
        """Probability that each node is kept given that its parent was, [B, N]; 0 at padding.

        ``target`` [B, N + 1, V]: the target distribution at the root and after each node. Siblings
        exclude each other and their sum is at most 1, so one uniform a depth picks among them.
        """
        ...

    def next_token(self, draft: Draft, target: Floats, last: Ints) -> Floats:
        """Law of the token emitted after the last kept node, [B, V]; ``last`` [B], -1 is the root.

        It holds given that no child of the last node was kept; where it has none, it is the target's.
        """
        ...


@runtime_checkable
class PathVerifier(Protocol):
    """What a rule adds that replays exactly along a recorded text.

    Only a lossless rule can: the text that another emits is not the target's.
    """

    def along_path(self, target: Floats, draft: Floats) -> Floats:
        """Probability that each draft is kept given the text and that those before it were, [B, D].

        Of a chain. ``target`` [B, D]: p of the text's token at each depth, from where the round starts.
        ``draft`` [B, D]: the probability that the draft proposes it there; NaN where it makes no proposal,
        which stays NaN.
        """
        ...
