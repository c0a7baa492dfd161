"""Prompts by the hundred from templates: what a draft is trained on must be more than a person writes."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from specsim.config import Spec, read, validate
from specsim.errors import DomainError
from specsim.streams import Purpose, RandomStreams

SHIPPED_TEMPLATES = Path(__file__).parent / "training" / "english.yaml"
_MAX_TRIES_PER_PROMPT = 50


class PromptTemplates(Spec):
    """Sentences with gaps, and what may fill each gap."""

    source: str = Field(min_length=1)
    """Who wrote them, and their licence."""
    templates: tuple[str, ...] = Field(min_length=1)
    """Sentences with gaps such as ``{subject}``."""
    fills: dict[str, tuple[str, ...]]
    """What may stand in each gap."""
    openings: tuple[str, ...] = ()
    """First words of prompts that the target goes on with; an empty one leaves it all to the target."""

    @model_validator(mode="after")
    def _every_gap_can_be_filled(self) -> Self:
        for template in self.templates:
            missing = sorted(_gaps(template) - self.fills.keys())
            if missing:
                raise ValueError(f"fills: nothing for '{{{missing[0]}}}' of '{template[:40]}'")
        return self

    def expand(self, count: int, *, seed: int) -> list[str]:
        """Prompts by taking the templates in turn and filling their gaps at random; each once.

        Raises
        ------
        DomainError
            More prompts than the templates give.

        Examples
        --------
        >>> templates = PromptTemplates(
        ...     source="me", templates=("Draw {thing}.", "Eat {thing}."), fills={"thing": ("a pear",)}
        ... )
        >>> templates.expand(2, seed=0)
        ['Draw a pear.', 'Eat a pear.']
        """
        luck = RandomStreams(seed).generator(Purpose.TRAINING)
        prompts: dict[str, None] = {}
        for attempt in range(_MAX_TRIES_PER_PROMPT * count):
            if len(prompts) == count:
                break
            template = self.templates[attempt % len(self.templates)]
            chosen = {
                gap: self.fills[gap][int(luck.integers(len(self.fills[gap])))]
                for gap in sorted(_gaps(template))
            }
            prompts[template.format(**chosen)] = None
        if len(prompts) < count:
            raise DomainError(f"the templates gave {len(prompts)} different prompts, not {count}")
        return list(prompts)


def load_templates(path: str | Path = SHIPPED_TEMPLATES) -> PromptTemplates:
    """Read templates from a YAML file; the shipped ones if none is given. Faults are a ConfigError."""
    return validate(PromptTemplates, read(Path(path)))


def _gaps(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}
