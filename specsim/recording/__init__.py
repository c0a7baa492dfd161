"""Recording of real token distributions: language models in, traces of (p, q) out.

The only importer of torch in specsim. Names are imported on first use, so that what needs no model
(prompt sets, summaries of traces) works where torch is absent.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specsim.recording.drafts import CausalDraft as CausalDraft
    from specsim.recording.drafts import RecordedDraft as RecordedDraft
    from specsim.recording.drafts import early_exit as early_exit
    from specsim.recording.drafts import model_draft as model_draft
    from specsim.recording.logs import LogSettings as LogSettings
    from specsim.recording.logs import read_log as read_log
    from specsim.recording.lookup import PromptLookup as PromptLookup
    from specsim.recording.models import LanguageModel as LanguageModel
    from specsim.recording.models import load_language_model as load_language_model
    from specsim.recording.prompt_sets import PromptSet as PromptSet
    from specsim.recording.prompt_sets import load_prompt_set as load_prompt_set
    from specsim.recording.recorder import RecordingSettings as RecordingSettings
    from specsim.recording.recorder import record as record
    from specsim.recording.summary import DomainAcceptance as DomainAcceptance
    from specsim.recording.summary import acceptance_by_domain as acceptance_by_domain

_MODULE_OF = {
    "CausalDraft": "drafts",
    "DomainAcceptance": "summary",
    "LanguageModel": "models",
    "LogSettings": "logs",
    "PromptLookup": "lookup",
    "PromptSet": "prompt_sets",
    "RecordedDraft": "drafts",
    "RecordingSettings": "recorder",
    "acceptance_by_domain": "summary",
    "early_exit": "drafts",
    "load_language_model": "models",
    "load_prompt_set": "prompt_sets",
    "model_draft": "drafts",
    "read_log": "logs",
    "record": "recorder",
}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    """Import a public name from its module when it is first asked for."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
