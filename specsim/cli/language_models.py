"""What the commands that run language models share: two flags, and the libraries that must be there."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from enum import StrEnum


class Device(StrEnum):
    """Where the models run."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Dtype(StrEnum):
    """Format of the weights and precision of the arithmetic."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


def refuse_missing_libraries(libraries: Sequence[str], *, purpose: str) -> None:
    """Refuse to begin where a library of the models is not installed.

    Raises
    ------
    ConfigError
        Naming all that are missing, and how to install them.
    """
    from specsim.errors import ConfigError

    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"{purpose} needs {', '.join(missing)}, not installed: pip install 'specsim-llm[models]'"
        )
