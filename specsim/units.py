"""Quantities with units: a spec takes a number in SI or a string such as ``3.35 TB/s``.

SI inside, always: a string is converted once, when a file is read. Decimal prefixes are powers of ten
(``GB`` = 1e9 bytes), binary ones powers of two (``GiB`` = 2**30 bytes).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

_QUANTITY = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(\S.*)?")
_MAX_CHARACTERS = 80

_SMALL = {"m": "1e-3", "u": "1e-6", "µ": "1e-6", "μ": "1e-6", "n": "1e-9", "p": "1e-12"}
_LARGE = {"k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15"}
_BINARY = {f"{prefix}i": str(1024**power) for power, prefix in enumerate("KMGTP", start=1)}


@dataclass(frozen=True, slots=True)
class Dimension:
    """One kind of quantity: its name, SI unit, an example, and the size of every unit it may be given in."""

    noun: str
    symbol: str
    example: str
    scales: Mapping[str, Decimal]

    def parse(self, value: object) -> float:
        """Return a number or a string with a unit as a float in the SI unit.

        Raises
        ------
        PydanticCustomError
            Where the value is not finite, has no unit or a unit of another dimension. It is a ``ValueError``.

        Examples
        --------
        >>> BANDWIDTH.parse("3.35 TB/s")
        3350000000000.0
        >>> TIME.parse("28 us")
        2.8e-05
        """
        if isinstance(value, str):
            return self._parse_string(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._error(f"{_shown(value)} is not {self.noun}")
        return self._finite(value, _shown(value))

    def _parse_string(self, text: str) -> float:
        match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
        if match is None:
            raise self._error(f"{_shown(text)} is not {self.noun}")
        number, unit = match[1], (match[2] or "").strip()
        if not unit:
            raise self._error(f"{_shown(text)} has no unit")
        if unit not in self.scales:
            near = difflib.get_close_matches(unit, self.scales, n=1, cutoff=0.5)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            raise self._error(f"{_shown(text)} is not {self.noun}: unknown unit {_shown(unit)}{hint}")
        self._finite(float(number), _shown(text))
        return self._finite(Decimal(number) * self.scales[unit], _shown(text))

    def _finite(self, value: float | Decimal, shown: str) -> float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._error(f"{shown} is not a finite number")
        return number

    def _error(self, what: str) -> PydanticCustomError:
        allowed = f"allowed: a number in {self.symbol}, or a string such as '{self.example}'"
        return PydanticCustomError("quantity", "{text}", {"text": f"{what}; {allowed}"})


def _shown(value: object) -> str:
    text = (
        repr(value) if isinstance(value, (str, bool, int, float, type(None))) else f"a {type(value).__name__}"
    )
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS // 2]}…"


def _scales(units: Mapping[str, Sequence[Mapping[str, str]]], **extra: str) -> dict[str, Decimal]:
    """Return the size of each unit alone, under each prefix of its families, and of the extra units."""
    scales = {unit: Decimal(1) for unit in units}
    for unit, families in units.items():
        for family in families:
            scales |= {f"{prefix}{unit}": Decimal(scale) for prefix, scale in family.items()}
    return scales | {unit: Decimal(scale) for unit, scale in extra.items()}


_PER_BYTE = _scales({"B": (_LARGE, _BINARY)}, KB="1e3")
_PER_FLOP = _scales({"FLOP": (_LARGE,), "OP": (_LARGE,)})

TIME = Dimension("a time", "s", "2 ms", _scales({"s": (_SMALL,)}, min="60", h="3600"))
SIZE = Dimension("a size in bytes", "bytes", "80 GiB", _PER_BYTE)
BANDWIDTH = Dimension(
    "a bandwidth",
    "bytes/s",
    "3.35 TB/s",
    {f"{unit}/s": scale for unit, scale in _PER_BYTE.items()}
    | {f"{prefix}bit/s": Decimal(scale) / 8 for prefix, scale in _LARGE.items()},
)
COMPUTE = Dimension(
    "a rate of operations",
    "FLOP/s",
    "989 TFLOP/s",
    {f"{unit}/s": scale for unit, scale in _PER_FLOP.items()}
    | {f"{unit}S": scale for unit, scale in _PER_FLOP.items()},
)
POWER = Dimension("a power", "W", "700 W", _scales({"W": (_SMALL, _LARGE)}))

_DIMENSIONS = (TIME, SIZE, BANDWIDTH, COMPUTE, POWER)
_Given: TypeAlias = float | str

Seconds = Annotated[float, BeforeValidator(TIME.parse, json_schema_input_type=_Given)]
"""Field type: a time in s, or a string such as ``2 ms``."""
Bytes = Annotated[float, BeforeValidator(SIZE.parse, json_schema_input_type=_Given)]
"""Field type: a size in bytes, or a string such as ``80 GiB``."""
BytesPerSecond = Annotated[float, BeforeValidator(BANDWIDTH.parse, json_schema_input_type=_Given)]
"""Field type: a bandwidth in bytes/s, or a string such as ``3.35 TB/s``."""
FlopsPerSecond = Annotated[float, BeforeValidator(COMPUTE.parse, json_schema_input_type=_Given)]
"""Field type: a rate in FLOP/s, or a string such as ``989 TFLOP/s``."""
Watts = Annotated[float, BeforeValidator(POWER.parse, json_schema_input_type=_Given)]
"""Field type: a power in W, or a string such as ``700 W``."""


def scale_of(unit: str) -> float | None:
    """Return how many SI units one of a unit is, whatever it measures; None where it is no unit.

    Examples
    --------
    >>> scale_of("TB/s"), scale_of("ms"), scale_of("TBps")
    (1000000000000.0, 0.001, None)
    """
    return next((float(one.scales[unit]) for one in _DIMENSIONS if unit in one.scales), None)


def si_value(text: str) -> float | None:
    """Return a quantity such as ``3.35 TB/s`` in its SI unit, whatever it measures; None where it is none.

    Examples
    --------
    >>> si_value("3.35 TB/s"), si_value("l4"), si_value("7")
    (3350000000000.0, None, None)
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    unit = "" if match is None else (match[2] or "").strip()
    found = next((one for one in _DIMENSIONS if unit in one.scales), None)
    return None if found is None else found.parse(text)


_BYTE_LADDER = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def format_bytes(size_bytes: float) -> str:
    """Return a size with three significant digits in the largest decimal unit that keeps it above 1.

    Examples
    --------
    >>> format_bytes(16_060_522_496)
    '16.1 GB'
    """
    if size_bytes == 0 or not math.isfinite(size_bytes):
        return f"{size_bytes:g} B"
    for unit, scale in _BYTE_LADDER:
        # 0.9995 of a unit already prints as 1.00 of it.
        if abs(size_bytes) >= 0.9995 * scale:
            scaled = size_bytes / scale
            digits_before_point = len(f"{abs(scaled):.0f}")
            return f"{scaled:.{max(0, 3 - digits_before_point)}f} {unit}"
    return f"{size_bytes:.3g} B"
