"""Two language models that draft and verify while the simulation runs, in simulated time."""

from __future__ import annotations

from importlib import import_module
from typing import Literal, cast

from pydantic import Field

from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.speculation.distributions import ConditionalDistributions
from specsim.speculation.kinds import DISTRIBUTIONS, BuildContext

_BUILDER = "specsim.recording.live"
"""Named, not imported: it needs torch, and stands above this package."""


@DISTRIBUTIONS.register
class LiveSpec(Spec):
    """Real models on their own prompts: every token is drafted, verified and drawn anew.

    Needs the libraries of ``specsim-llm[models]``. Two runs on one machine with one set of libraries agree;
    elsewhere a last digit of a probability may differ and with it a text.
    """

    kind: Literal["live"] = "live"
    """Live models."""
    target: str
    """Target: a Hugging Face directory or a GGUF file, beside the scenario or from the working folder."""
    draft: str
    """Draft: ``exit:LAYERS``, or a model that shares the target's tokenizer."""
    prompts: tuple[str, ...] = ("chat",)
    """Prompt sets: shipped names or YAML files; request r takes prompt r, repeating."""
    temperature: float = Field(default=1.0, ge=0)
    """Temperature of the target; 0 is greedy."""
    top_k: int | None = Field(default=None, gt=0)
    """Tokens that the target keeps; None keeps all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Mass that the target keeps."""
    draft_temperature: float | None = Field(default=None, ge=0)
    """Temperature of the draft, if another."""
    max_tokens: int = Field(default=256, gt=0)
    """Longest text that a request may emit, tokens."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the models run."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the arithmetic."""

    def build(self, context: BuildContext) -> ConditionalDistributions:
        """Load the models; faults of their files are a ConfigError."""
        try:
            builder = import_module(_BUILDER)
        except ModuleNotFoundError as error:
            raise ConfigError.at(
                "distributions",
                f"live models need {error.name}, not installed: pip install 'specsim-llm[models]'",
            ) from None
        return cast("ConditionalDistributions", builder.build_live(self, context))
