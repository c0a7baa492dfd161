"""Files into frozen specs, with every fault of a file at once. Knows no domain."""

from __future__ import annotations

from specsim.config.base import Spec
from specsim.config.catalog import expand, find, names
from specsim.config.document import Document, from_data, override, parse, read, validate

__all__ = [
    "Document",
    "Spec",
    "expand",
    "find",
    "from_data",
    "names",
    "override",
    "parse",
    "read",
    "validate",
]
