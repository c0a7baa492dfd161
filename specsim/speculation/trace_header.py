"""The header of a trace: where it comes from, enough to record it again."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import ConfigDict, Field

from specsim.config.base import Spec

DraftSampleMethod: TypeAlias = Literal["greedy", "probabilistic"]
"""How a draft draws: its most probable token, or a sample."""


class TraceHeader(Spec):
    """Where a trace comes from: enough to record it again."""

    model_config = ConfigDict(populate_by_name=True)

    schema_version: Literal[3] = Field(default=3, alias="schema")
    """Version of the file's layout."""
    target: str
    """Name of the target model."""
    draft: str
    """Name of the draft: a model, a number of layers, a lookup and its settings."""
    tokenizer: str
    """Name of the tokenizer that both share."""
    vocabulary_size: int = Field(gt=0)
    """Tokens in the vocabulary; every token id is below it."""
    temperature: float = Field(ge=0)
    """Temperature of the target; 0 is greedy. Part of the path's law: it cannot be changed afterwards."""
    top_k: int | None = Field(default=None, gt=0)
    """Tokens that the target keeps; None keeps all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Mass that the target keeps."""
    draft_temperature: float = Field(ge=0)
    """Temperature of the recorded draft distribution."""
    draft_sample_method: DraftSampleMethod = "probabilistic"
    """How the draft was meant to draw: its most probable token, or a sample."""
    prompts: str
    """Where the prompts come from, and their licence."""
    seed: int = Field(ge=0)
    """Seed of the recording."""
    created_by: str
    """Program and version that recorded the trace."""
    versions: dict[str, str]
    """Versions of the libraries that computed the distributions."""
    sha256: dict[str, str]
    """SHA-256 of the weights of each model."""
    log: Literal["in_order", "shuffled"] | None = None
    """Of a log of accepted lengths: rounds as they came, or counts whose order was drawn. It knows no tokens:
    all are 0."""
