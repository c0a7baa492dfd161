"""Settings over a scenario, ``KEY=VALUE`` each, with the short names of keys that everybody sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specsim.config import Document, override
from specsim.errors import ConfigError

_LOOKAHEAD = "speculative_config.num_speculative_tokens"
SHORT_NAMES: Mapping[str, str] = {"K": _LOOKAHEAD, "k": _LOOKAHEAD}
"""What stands for a key wherever one is set or varied."""


def full_key(key: str) -> str:
    """Return the key that a short name such as ``K`` stands for."""
    return SHORT_NAMES.get(key.strip(), key.strip())


def with_setting(document: Document, setting: str) -> Document:
    """Return a document with one setting put over it; see `specsim.config.override`.

    Examples
    --------
    >>> from specsim.config import parse
    >>> with_setting(parse("seed: 0"), "K=2").data["speculative_config"]
    {'num_speculative_tokens': 2}
    """
    key, equals, value = setting.partition("=")
    return override(document, [f"{full_key(key)}{equals}{value}"])


def checked_settings(settings: Sequence[str]) -> Sequence[str]:
    """Return settings as they are.

    Raises
    ------
    ConfigError
        If they are not a list of texts: one text alone is a list of letters to Python.
    """
    is_list = isinstance(settings, Sequence) and not isinstance(settings, str)
    if not is_list or not all(isinstance(one, str) for one in settings):
        raise ConfigError(f"overrides: {settings!r} is not a list of settings such as ['seed=1', 'K=2']")
    return settings
