"""The accelerator profile of any kind, and where it is read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import BeforeValidator

from specsim.hardware.accelerator import Accelerator, accelerators
from specsim.hardware.roofline_profile import RooflineProfile
from specsim.hardware.table import TableProfile
from specsim.hardware.unit import UnitProfile

DEFAULT_KIND = "roofline"
"""Kind of a profile that names none."""


def _with_kind(given: object) -> object:
    """Add the kind that a profile has when it names none."""
    if isinstance(given, Mapping) and "kind" not in given:
        return {"kind": DEFAULT_KIND, **given}
    return given


BUILT_IN: tuple[type[Accelerator], ...] = (RooflineProfile, TableProfile, UnitProfile)
"""Kinds that specsim brings; others register under the entry point ``specsim.accelerators``."""

if TYPE_CHECKING:
    AcceleratorProfile: TypeAlias = Accelerator
else:
    AcceleratorProfile = Annotated[accelerators.union(), BeforeValidator(_with_kind)]
"""Type of a field that holds a profile of any kind; ``kind`` left out means ``roofline``."""
