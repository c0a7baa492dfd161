"""Drafts by the words that name them on a command line or in a file."""

from __future__ import annotations

import importlib
from pathlib import Path

from torch import nn

from specsim.errors import ConfigError
from specsim.recording.drafts import RecordedDraft, early_exit, model_draft, module_draft
from specsim.recording.eagle import is_head
from specsim.recording.extras import Extras
from specsim.recording.head_draft import load_head
from specsim.recording.lookup import PromptLookup
from specsim.recording.models import LanguageModel, load_language_model
from specsim.recording.warp import Warp
from specsim.speculation.trace import DraftSampleMethod

_EXIT = "exit:"
_MODULE = "module:"


def named_draft(
    word: str,
    target: LanguageModel,
    warp: Warp,
    *,
    method: DraftSampleMethod,
    lookup: PromptLookup,
    extras: Extras,
) -> RecordedDraft:
    """Return the draft that a word names.

    Parameters
    ----------
    word
        ``lookup``, ``exit:LAYERS``, ``module:PACKAGE:FUNCTION``, a folder with a trained head, or a model.
    target
        The model that it drafts for.
    warp, method
        How it draws.
    lookup
        The lookup that is meant; a trained head drafts as many tokens.
    extras
        What is recorded beside its scalars.

    Raises
    ------
    ConfigError
        The word names nothing, or a draft that these extras cannot be recorded of.
    """
    if word == "lookup":
        return lookup
    if word.startswith(_MODULE):
        module = _module(word, target)
        name = word.rpartition(":")[2]
        return module_draft(name, module, warp, draft_sample_method=method, extras=extras)
    if word.startswith(_EXIT):
        layers = word.removeprefix(_EXIT)
        if not layers.isdecimal():
            raise ConfigError(f"--draft '{word}': exit:LAYERS needs a whole number, such as exit:24")
        return early_exit(target, int(layers), warp, draft_sample_method=method, extras=extras)
    if is_head(Path(word)):
        if extras.union_size or extras.num_tail_tokens:
            raise ConfigError(
                "--union and --tails are for drafts that see only the tokens before, not for a head"
            )
        return load_head(word, target, warp, num_drafts=lookup.num_proposed, draft_sample_method=method)
    if not Path(word).exists():
        raise ConfigError(f"--draft '{word}': neither lookup, exit:LAYERS, module:… nor a model on disk")
    loaded = load_language_model(word, device=target.device.type, dtype=target.dtype)
    return model_draft(target, loaded, warp, draft_sample_method=method, extras=extras)


def _module(word: str, target: LanguageModel) -> nn.Module:
    package, _, function = word.removeprefix(_MODULE).partition(":")
    try:
        build = getattr(importlib.import_module(package), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"--draft '{word}': {error}") from None
    module = build(target.network)
    if not isinstance(module, nn.Module):
        raise ConfigError(f"--draft '{word}': gave a {type(module).__name__}, not a torch module")
    return module
