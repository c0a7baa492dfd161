"""The base of every configuration spec: frozen, complete, and closed to unknown keys."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from specsim.errors import ConfigError, Fault


class Spec(BaseModel):
    """A frozen spec that refuses unknown keys, NaN and infinities."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


def refuse(faults: Sequence[tuple[str, str]]) -> None:
    """Raise the faults that a check across fields found, from inside a pydantic validator.

    Parameters
    ----------
    faults
        Dotted path below the spec that is being validated, and what is wrong there.
        Nothing happens if there are none.
    """
    if faults:
        raise ConfigError([Fault("", None, None, path, message) for path, message in faults])
