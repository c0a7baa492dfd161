"""The kinds of distributions, policies and verifiers by name, and what their specs are built with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from specsim.registry import Registry
from specsim.speculation.trace import DraftSampleMethod

DISTRIBUTIONS = Registry("distributions", group="specsim.distributions")
"""Where p and q come from."""
DRAFT_SOURCES = Registry("draft source", group="specsim.draft_sources")
"""Who drafts from distributions: chains, trees, lookup."""
LOOKAHEAD_POLICIES = Registry("lookahead policy", group="specsim.lookahead_policies")
"""How many tokens a round drafts."""
VERIFIERS = Registry("verifier", group="specsim.verifiers")
"""Which drafts are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """What the spec of a kind may ask of the scenario that it stands in."""

    num_speculative_tokens: int
    """The most that a round drafts."""
    draft_sample_method: DraftSampleMethod = "greedy"
    """How the draft draws; vLLM's default is greedy."""
    folder: Path = field(default_factory=Path)
    """Folder of the scenario's file: relative paths are looked up there, then in the working folder."""
    tree_round_s: Callable[[tuple[int, ...], int], float] | None = None
    """Time of a round, s, of the positions of each draft pass and of those verified; None: not known."""
