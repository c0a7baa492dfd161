"""Fitted profiles as YAML files: a header that says what they rest on, then the figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from specsim.hardware import RooflineProfile
from specsim.writing import write_faults, write_whole

_BLOCKS = ("provenance", "fitted")


def profile_text(profile: RooflineProfile, *, header: Mapping[str, str] | None = None) -> str:
    """Return a profile as YAML that `specsim.hardware.load_profile` reads back.

    Parameters
    ----------
    profile
        The profile; it is checked anew.
    header
        Lines above it as ``# key: value``: source, licence, date.

    Raises
    ------
    pydantic.ValidationError
        Where the figures contradict each other.
    """
    data = profile.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    RooflineProfile.model_validate(data)
    lines = [f"# {key}: {' '.join(str(value).split())}" for key, value in (header or {}).items()]
    lines += [f"{key}: {_scalar(data.pop(key))}" for key in ("name", "description") if key in data]
    lines.append(f"kind: {profile.kind}")
    data.pop("kind", None)
    lines += [f"{key}: {_flow(value)}" for key, value in data.items() if key not in _BLOCKS]
    for key in _BLOCKS:
        if data.get(key):
            lines.append(f"{key}:")
            lines += [f"  {name}: {_flow(value)}" for name, value in data[key].items()]
    return "\n".join(lines) + "\n"


def write_profile(path: Path, profile: RooflineProfile, *, header: Mapping[str, str] | None = None) -> None:
    """Write a profile file at once or not at all.

    Raises
    ------
    ConfigError
        Where the file cannot be written.
    """
    text = profile_text(profile, header=header)
    with write_faults(path):
        write_whole(path, text)


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value)


def _key(key: object) -> str:
    return str(key)


def _scalar(value: object) -> str:
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """Return a number as short as it is exact to twelve digits.

    Examples
    --------
    >>> _number(0.00033), _number(3.35e12), _number(85899345920.0)
    ('0.00033', '3.35e+12', '85899345920')
    """
    return f"{value:.12g}" if value != int(value) or value % 10**9 else f"{value:.9g}"
