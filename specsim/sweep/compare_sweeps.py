"""Two sweeps side by side, point by point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from specsim.errors import ConfigError
from specsim.sweep.changes import changes
from specsim.sweep.compare import ONE_SIDED, Comparison, Delta, failures, relative
from specsim.sweep.gates import Gate
from specsim.sweep.outcome import Figure, is_metric, number_of
from specsim.sweep.repeats import mean_of
from specsim.sweep.table import SweepTable


def compare_sweeps(
    before: tuple[str, SweepTable], after: tuple[str, SweepTable], gates: Sequence[Gate] = ()
) -> Comparison:
    """Compare a sweep with a reference, point by point where both have the same values of the same keys.

    Parameters
    ----------
    before
        The reference with its name.
    after
        The sweep with its name.
    gates
        Conditions under which the comparison fails: at any point, on the mean of its replications.

    Raises
    ------
    ConfigError
        If the sweeps vary other keys or share no point, or a gate names no metric of both.
    """
    (old_name, old), (new_name, new) = before, after
    if set(old.axes) != set(new.axes):
        keys = sorted(set(old.axes) ^ set(new.axes))
        raise ConfigError(f"the sweeps vary other keys, so their points cannot be matched: {', '.join(keys)}")
    rows = _matched(old, new)
    if not rows:
        raise ConfigError("the sweeps share no point that was simulated in both")
    metrics = [name for name in old.columns if name in new.columns and is_metric(name)]
    deltas = [delta for name in metrics if (delta := _sweep_delta(old, new, name, rows)) is not None]
    pairs = [pair for found in rows.values() for pair in found]
    old_base, new_base = (cast(Mapping[str, JsonValue], t.about.get("base") or {}) for t in (old, new))
    judged = [(_where(old, found[0][0]), *_means(old, new, found)) for found in rows.values()]
    is_paired, over = _pairing(old, new, rows)
    num_left = len(old) + len(new) - 2 * len(pairs)
    left = f"; {num_left} runs are in one sweep only or failed in one" if num_left else ""
    return Comparison(
        old_name,
        new_name,
        (_verdict(old, [row for row, _ in pairs]), _verdict(new, [row for _, row in pairs])),
        tuple(changes(old_base, new_base)),
        tuple(deltas),
        is_paired,
        f"{len(rows)} points in both sweeps{left}. Change: the mean over points; 95% intervals {over}",
        len(gates),
        failures(gates, judged),
        tuple(_one_sided((old_name, old), (new_name, new))),
    )


def _one_sided(*sweeps: tuple[str, SweepTable]) -> Iterator[str]:
    for metric, noun in ONE_SIDED.items():
        column = f"baseline.{metric}"
        lacking = [
            name
            for name, table in sweeps
            if all(number_of(figure) is None for figure in table.columns.get(column, ()))
        ]
        if len(lacking) == 1:
            yield f"No {noun} are compared: {lacking[0]} has none; its runs say why"


def _pairing(
    old: SweepTable, new: SweepTable, rows: Mapping[int, list[tuple[int, int]]]
) -> tuple[bool | None, str]:
    """Tell whether replications of a point have the same luck in both, and what intervals are over."""
    if max(len(pairs) for pairs in rows.values()) == 1:
        return None, "need replications, of which there is one"
    before, after = old.columns["seed"], new.columns["seed"]
    if all(before[row] == after[other] for pairs in rows.values() for row, other in pairs):
        return True, "over replications, paired by seed"
    return False, "over replications, not paired, since their seeds differ"


def _matched(old: SweepTable, new: SweepTable) -> dict[int, list[tuple[int, int]]]:
    """Return the rows that belong together, by point of the reference."""
    places = {
        _identity(old.axes, new, row): row for row in range(len(new)) if new.columns["status"][row] == "ok"
    }
    found: dict[int, list[tuple[int, int]]] = {}
    for row in range(len(old)):
        other = places.get(_identity(old.axes, old, row))
        if other is not None and old.columns["status"][row] == "ok":
            found.setdefault(cast(int, old.columns["point"][row]), []).append((row, other))
    return found


def _identity(axes: Sequence[str], table: SweepTable, row: int) -> tuple[object, ...]:
    return (*(table.columns[axis][row] for axis in axes), table.columns["replication"][row])


def _sweep_delta(
    old: SweepTable, new: SweepTable, name: str, rows: Mapping[int, list[tuple[int, int]]]
) -> Delta | None:
    by_replication: dict[int, list[float]] = {}
    values: list[tuple[float, float]] = []
    for pairs in rows.values():
        for row, other in pairs:
            before, after = number_of(old.columns[name][row]), number_of(new.columns[name][other])
            change = None if before is None or after is None else relative(before, after)
            if before is None or after is None or change is None:
                continue
            values.append((before, after))
            by_replication.setdefault(cast(int, old.columns["replication"][row]), []).append(change)
    if not values:
        return None
    everything = [change for changed in by_replication.values() for change in changed]
    whole = {number: changed for number, changed in by_replication.items() if len(changed) == len(rows)}
    mean = mean_of([sum(changed) / len(changed) for changed in (whole or by_replication).values()])
    half_width = mean.half_width if len(whole) == len(by_replication) else None
    return Delta(
        name,
        sum(before for before, _ in values) / len(values),
        sum(after for _, after in values) / len(values),
        mean.value,
        None if half_width is None else mean.value - half_width,
        None if half_width is None else mean.value + half_width,
        min(everything),
        max(everything),
    )


def _means(
    old: SweepTable, new: SweepTable, pairs: Sequence[tuple[int, int]]
) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Return every figure of a point in both sweeps, means of the replications."""
    return _mean_figures(old, [row for row, _ in pairs]), _mean_figures(new, [row for _, row in pairs])


def _mean_figures(table: SweepTable, rows: Sequence[int]) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for name in table.columns:
        if is_metric(name):
            numbers = [number_of(table.columns[name][row]) for row in rows]
            known = [number for number in numbers if number is not None]
            found[name] = sum(known) / len(known) if len(known) == len(rows) else None
    return found


def _verdict(table: SweepTable, rows: Sequence[int]) -> str:
    claims = [table.columns["verdict.pays"][row] for row in rows]
    return f"pays in {sum(pays is True for pays in claims)} of {len(rows)} runs"


def _where(table: SweepTable, row: int) -> str:
    return ", ".join(f"{axis}={table.columns[axis][row]}" for axis in table.axes)
