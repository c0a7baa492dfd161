"""Axes as they are written on a command line: ``KEY=VALUES``.

===============================================  ====================================================
``K=0..8``                                       every whole number, both ends included
``K=0..8:2``                                     steps of 2
``workload.max_concurrency=1,4,16``              a list; items are YAML, ``{kind: fixed}`` is one item
``hardware.target.price.usd_per_hour=1e0..8e0:log:4``  4 values of equal ratios; ``lin``: equal steps
``hardware.target=h100-sxm,l4``                  profiles by name
``hardware.target=hardware_profiles/*.yaml``     profiles by pattern, of paths or of names
===============================================  ====================================================

Ends may carry a unit (``1 TB/s..8 TB/s:log:8``); tables hold SI. Whole ends give whole values, of which
equal ratios may repeat some: each is taken once. A range without a number of values (``0.5..0.9``,
``1..100:log``) serves designs that sample.
"""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from specsim.config import names
from specsim.config.nodes import Place, Scalar
from specsim.config.yaml import parse_value
from specsim.errors import ConfigError
from specsim.scenario import REFERENCES
from specsim.scenario.settings import full_key
from specsim.sweep.axes import Axis, Spacing, Span, Value, label_of
from specsim.units import scale_of

MAX_VALUES = 100_000
"""Most values on one axis."""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_UNIT = r"[^\d\s:.,+-][^:.,]*?"
_RANGE = re.compile(
    rf"\s*(?P<low>{_NUMBER})\s*(?P<low_unit>{_UNIT})?\s*\.\.\s*"
    rf"(?P<high>{_NUMBER})\s*(?P<high_unit>{_UNIT})?\s*(?::(?P<rest>.*))?"
)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_CLOSING = {"[": "]", "{": "}"}


def parse_axis(text: str) -> Axis:
    """Read an axis from ``KEY=VALUES``.

    Raises
    ------
    ConfigError
        If it is not of that form, a range is empty, or a pattern matches nothing.

    Examples
    --------
    >>> [value.label for value in parse_axis("workload.max_concurrency=1..64:log:4").listed()]
    [1, 4, 16, 64]
    >>> parse_axis("K=0..8:4").key
    'speculative_config.num_speculative_tokens'
    """
    key, equals, values = text.partition("=")
    key = full_key(key)
    if not equals or not values.strip() or not all(key.split(".")):
        raise ConfigError([Place(f"--vary {text}").fault("", "is not of the form path.to.key=values")])
    place = Place(f"--vary {key}")
    match = _RANGE.fullmatch(values)
    if match is not None:
        return _ranged(key, match, place)
    found = [value for item in _items(values) for value in _item_values(key, item, place)]
    if len({str(value.label) for value in found}) < len(found):
        raise _error(key, place, "a value is listed twice")
    return Axis(key, tuple(found), None, place)


def _ranged(key: str, match: re.Match[str], place: Place) -> Axis:
    low, high = float(match["low"]), float(match["high"])
    low_unit, unit = match["low_unit"] or "", match["high_unit"] or ""
    is_whole = not unit and all(_WHOLE.fullmatch(match[end]) for end in ("low", "high"))
    spacing, count, step = _spacing(match["rest"], key, place)
    if low_unit not in ("", unit):
        raise _error(key, place, f"the ends of a range have one unit, not '{low_unit}' and '{unit}'")
    scale = scale_of(unit) if unit else 1.0
    if scale is None:
        raise _error(key, place, f"'{unit}' is no unit that is known; such as TB/s, GiB, ms, W")
    if not low < high or not math.isfinite(high - low):
        raise _error(
            key, place, f"the range {match['low']}..{match['high']} is empty; the lower end comes first"
        )
    if spacing == "log" and low <= 0:
        raise _error(key, place, f"equal ratios need ends above 0, not {match['low']}")
    if is_whole and spacing == "lin" and count is None:
        step = step or 1.0
    step = None if step is None else step * scale
    span = Span(low * scale, high * scale, spacing, is_whole, unit)
    axis = Axis(key, (), span, place)
    if step is not None:
        numbers = _stepped(span, step, key, place)
    elif count is not None:
        numbers = _counted(span, count, key, place)
    else:
        numbers = []
    return replace(axis, values=tuple(axis.number(number) for number in numbers))


def _spacing(rest: str | None, key: str, place: Place) -> tuple[Spacing, int | None, float | None]:
    """Read what follows a range: ``log:8``, ``lin:8``, ``log``, ``lin`` or a step."""
    word, _, count = (rest or "lin").strip().partition(":")
    if word in ("lin", "log"):
        spacing: Spacing = "log" if word == "log" else "lin"
        if not count:
            return spacing, None, None
        if count.isdecimal() and 2 <= int(count[:9]) <= MAX_VALUES:
            return spacing, int(count), None
    elif not count and re.fullmatch(_NUMBER, word) and float(word) > 0:
        return "lin", None, float(word)
    allowed = f"log:8 or lin:8 (2 to {MAX_VALUES} values), or a step above 0"
    raise _error(key, place, f"':{rest}' is not a spacing; allowed: {allowed}")


def _stepped(span: Span, step: float, key: str, place: Place) -> list[float]:
    if span.is_whole and step != int(step):
        raise _error(key, place, f"a step of {step:g} leaves the whole numbers; write the ends with a point")
    # A step that misses the upper end by rounding alone reaches it.
    num_steps = math.floor((span.high - span.low) / step + 1e-9)
    if num_steps >= MAX_VALUES:
        raise _error(key, place, f"more than {MAX_VALUES} values")
    return [min(span.low + index * step, span.high) for index in range(num_steps + 1)]


def _counted(span: Span, count: int, key: str, place: Place) -> list[float]:
    fractions = [index / (count - 1) for index in range(count)]
    if span.spacing == "log":
        numbers = [span.low * (span.high / span.low) ** fraction for fraction in fractions]
    else:
        numbers = [span.low + (span.high - span.low) * fraction for fraction in fractions]
    numbers[-1] = span.high
    if not span.is_whole:
        return numbers
    if span.spacing == "lin" and count > span.high - span.low + 1:
        fewer = f"only {span.high - span.low + 1:g} whole numbers in the range"
        raise _error(
            key, place, f"{fewer}; write its ends with a point, as in {span.low:.1f}..{span.high:.1f}"
        )
    return list(dict.fromkeys(float(round(number)) for number in numbers))


def _item_values(key: str, item: str, place: Place) -> Iterator[Value]:
    """Return what one item of a list stands for: itself, or all files that a pattern matches."""
    if key not in REFERENCES or not set(item) & set("*?"):
        node = parse_value(item, place=place)
        yield Value(label_of(node), node)
        return
    kind = REFERENCES[key]
    is_path = os.sep in item or item.endswith(".yaml")
    found = sorted(glob.glob(item)) if is_path else []  # noqa: PTH207 - a Path globs no absolute pattern
    if not found:
        # `hardware_profiles/*.yaml` are the shipped ones where there is no such folder.
        pattern = item.removeprefix(f"{kind}{os.sep}").removesuffix(".yaml")
        found = [name for name in names(kind) if fnmatchcase(name, pattern)]
    if not found:
        raise _error(key, place, f"the pattern '{item}' matches no file and no name")
    yield from (Value(name, Scalar(name, place)) for name in found)


def _items(text: str) -> Iterator[str]:
    """Split a list at its commas, those inside brackets and quotes left alone."""
    item, open_brackets, quote = "", "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _CLOSING:
            open_brackets += _CLOSING[letter]
        elif open_brackets and letter == open_brackets[-1]:
            open_brackets = open_brackets[:-1]
        elif letter == "," and not open_brackets:
            yield item.strip()
            item = ""
            continue
        item += letter
    yield item.strip()


def _error(key: str, place: Place, message: str) -> ConfigError:
    return ConfigError([place.fault(key, message)])
