"""Profiles and models read from files, by name or path."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from specsim.config import find, read, validate
from specsim.errors import ConfigError, Fault
from specsim.hardware.accelerator import Accelerator, accelerators
from specsim.hardware.model import ModelSpec
from specsim.hardware.profile import DEFAULT_KIND


def load_profile(name: str, *, beside: Path | None = None) -> Accelerator:
    """Return the accelerator profile of a name or path.

    Parameters
    ----------
    name
        Name such as ``h100-sxm``, or a path.
    beside
        Folder to look in first.

    Raises
    ------
    ConfigError
        Where there is no such profile, or with all faults of its file.

    Examples
    --------
    >>> load_profile("h100-sxm.datasheet").memory.bandwidth_bytes_per_s
    3350000000000.0
    """
    document = read(find("hardware_profiles", name, beside=beside))
    kind = document.data.get("kind", DEFAULT_KIND)
    if kind not in accelerators.kinds():
        known = ", ".join(accelerators.kinds())
        raise ConfigError(
            [Fault(document.file, None, None, "kind", f"{kind!r} is not allowed; known: {known}")]
        )
    return cast("Accelerator", validate(accelerators[kind], document))


def load_model(name: str, *, beside: Path | None = None) -> ModelSpec:
    """Return the model of a preset's name or of a path, such as that of a ``config.json``.

    Parameters
    ----------
    name
        Name such as ``llama-3.1-8b``, or a path.
    beside
        Folder to look in first.

    Raises
    ------
    ConfigError
        Where there is no such model, or with all faults of its file.

    Examples
    --------
    >>> load_model("llama-3.1-8b").params_total
    8030261248
    """
    return validate(ModelSpec, read(find("models", name, beside=beside)))
