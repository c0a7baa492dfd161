"""Gates: ``--fail-if`` conditions on what changed between two results.

``p99_tpot_ms>+5%`` holds where the metric rose by more than 5 %, ``output_throughput<-2%`` where it fell
by more than 2 %, ``p99_ttft_ms>+3`` where it rose by more than 3 in its own unit, and
``speedup.tpot<1.2`` where the new value itself is below 1.2.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from specsim.errors import ConfigError
from specsim.sweep.outcome import Figure
from specsim.sweep.table import meanings

_GATE = re.compile(
    r"\s*(?P<metric>[A-Za-z][\w.]*)\s*(?P<sign><=|>=|<|>)\s*"
    r"(?P<limit>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(?P<percent>%?)\s*"
)
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition under which a comparison fails."""

    text: str
    metric: str
    sign: str
    limit: float
    of: Literal["relative change", "change", "value"]
    """What is compared with the limit; a relative change is a fraction."""

    def judge(self, before: Mapping[str, Figure], after: Mapping[str, Figure]) -> str | None:
        """Return in words why the gate fails, None where it passes.

        Raises
        ------
        ConfigError
            If the metric is not a number in both results: a gate that cannot be judged does not pass.
        """
        name = next((name for name in meanings(self.metric) if name in after or name in before), self.metric)
        old, new = _number(before.get(name)), _number(after.get(name))
        is_relative = self.of == "relative change"
        if new is None or (self.of != "value" and old is None) or (is_relative and old == 0.0):
            shown = f"{old if old is not None else 'nothing'} and {new if new is not None else 'nothing'}"
            raise ConfigError(f"--fail-if {self.text}: '{self.metric}' cannot be judged: it is {shown}")
        if self.of == "value":
            return f"{name} is {new:.4g}" if _COMPARE[self.sign](new, self.limit) else None
        assert old is not None
        amount = new / old - 1.0 if is_relative else new - old
        if not _COMPARE[self.sign](amount, self.limit):
            return None
        by = f"{100 * amount:+.2f}%" if is_relative else f"{amount:+.4g}"
        return f"{name} went from {old:.4g} to {new:.4g} ({by})"


def parse_gate(text: str) -> Gate:
    """Read a condition.

    Raises
    ------
    ConfigError
        If it is not one.

    Examples
    --------
    >>> gate = parse_gate("p99_tpot_ms>+5%")
    >>> gate.of, gate.limit
    ('relative change', 0.05)
    >>> gate.judge({"p99_tpot_ms": 10.0}, {"p99_tpot_ms": 11.0})
    'p99_tpot_ms went from 10 to 11 (+10.00%)'
    """
    match = _GATE.fullmatch(text)
    if match is None:
        allowed = "metric>+5% (change), metric>+3 (change in its unit) or metric>50 (value), with < <= > >="
        raise ConfigError(f"--fail-if {text}: is not a condition; allowed: {allowed}")
    limit = float(match["limit"])
    if match["percent"]:
        return Gate(text, match["metric"], match["sign"], limit / 100.0, "relative change")
    is_change = match["limit"][0] in "+-"
    return Gate(text, match["metric"], match["sign"], limit, "change" if is_change else "value")


def _number(figure: Figure) -> float | None:
    return float(figure) if isinstance(figure, (int, float)) else None
