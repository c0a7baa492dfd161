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

from specsim.config.validate import nearest
from specsim.errors import ConfigError
from specsim.sweep.outcome import Figure, number_of
from specsim.sweep.table import ARM_PREFIXES, meanings

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
        name = self._found(before, after)
        old, new = number_of(before.get(name)), number_of(after.get(name))
        if new is None or (old is None and self.of != "value"):
            raise self._unjudged(f"{name} is {_shown(before, name)} before and {_shown(after, name)} after")
        is_relative = self.of == "relative change"
        if is_relative and old == 0.0:
            raise self._unjudged(
                f"{name} was 0, of which there is no percentage; give a change in its own unit"
            )
        if self.of == "value":
            return f"{name} is {new:.4g}" if _COMPARE[self.sign](new, self.limit) else None
        assert old is not None
        amount = new / old - 1.0 if is_relative else new - old
        if not _COMPARE[self.sign](amount, self.limit):
            return None
        by = f"{100 * amount:+.2f}%" if is_relative else f"{amount:+.4g}"
        return f"{name} went from {old:.4g} to {new:.4g} ({by})"

    def _found(self, before: Mapping[str, Figure], after: Mapping[str, Figure]) -> str:
        """Return the full name of the metric."""
        known = dict.fromkeys((*before, *after))
        for name in meanings(self.metric):
            if name in known:
                return name
        shorts = [name.partition(".")[2] if name.startswith(ARM_PREFIXES) else name for name in known]
        near = nearest(self.metric, [*known, *shorts])
        hint = f"; did you mean '{near}'?" if near else " (such as p99_tpot_ms or speedup.tpot)"
        raise self._unjudged(f"no metric '{self.metric}'{hint}")

    def _unjudged(self, why: str) -> ConfigError:
        return ConfigError(f"--fail-if {self.text}: cannot be judged: {why}")


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


def _shown(figures: Mapping[str, Figure], name: str) -> str:
    figure = figures.get(name)
    if number_of(figure) is not None:
        return f"{figure:.4g}"
    return "not known" if figure is None or isinstance(figure, float) else f"no number ({figure})"
