"""Two runs side by side: what changed in the configuration, and what that did to every metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from specsim.errors import ConfigError, Fault
from specsim.results.reading import percent
from specsim.results.summary import Summary, finite, number
from specsim.streams import RandomStreams
from specsim.sweep.changes import Change, changes
from specsim.sweep.gates import Gate
from specsim.sweep.outcome import Figure, claim, figures, is_metric, number_of
from specsim.sweep.paired import KeptTables, change_intervals, other_prompts

_PART_OF_TRACE = ("domain", "language")
"""Keys of a trace that choose among its prompts."""
ONE_SIDED = {
    "energy_per_token_joules": "joules",
    "usd_per_mtok": "dollars",
    "request_goodput": "goodput",
}
"""Metrics of an arm that a result may lack, and what they are called."""


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric of two results."""

    metric: str
    before: float
    after: float
    change: float | None
    """Relative; of a sweep the mean over its points. None where it was 0."""
    low: float | None
    """Ends of the 95 % interval of the relative change; None where there is none."""
    high: float | None
    least: float | None = None
    """Of a sweep: the smallest change of a point, and below the largest."""
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One result against the reference."""

    before: str
    """What the reference is called."""
    after: str
    verdicts: tuple[str, str]
    """Whether speculation pays in each, in words."""
    changes: tuple[Change, ...]
    deltas: tuple[Delta, ...]
    is_paired: bool | None
    """The intervals cancel what both results share; None where there are no intervals."""
    basis: str
    """What the intervals rest on, in a sentence."""
    num_gates: int
    """Gates that were judged."""
    failures: tuple[str, ...]
    """Those that fail, and why."""
    one_sided: tuple[str, ...] = ()
    """What only one of the two knows, and why the other does not, a sentence each."""


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run and what it is called."""

    name: str
    summary: Summary
    tables: KeptTables


def compare_runs(before: NamedRun, after: NamedRun, gates: Sequence[Gate] = ()) -> Comparison:
    """Compare a run with a reference.

    Parameters
    ----------
    before
        The reference.
    after
        The run.
    gates
        Conditions under which the comparison fails.

    Raises
    ------
    ConfigError
        If a gate names a metric that is not a number in both.
    """
    old, new = dict(figures(before.summary)), dict(figures(after.summary))
    failed = failures(gates, [("", old, new)])
    unpaired = _why_unpaired(before, after)
    streams = RandomStreams(before.summary["seed"])
    limits = change_intervals(before.tables, after.tables, streams, is_paired=unpaired is None)
    deltas = []
    for metric, (was, now) in _shared_numbers(old, new).items():
        ends = limits.get(metric)
        low, high = (ends.low, ends.high) if ends is not None else (None, None)
        deltas.append(Delta(metric, was, now, relative(was, now), low, high))
    num_prompts = min(before.tables.num_prompts, after.tables.num_prompts)
    basis = (
        f"95% intervals over the {num_prompts} prompts of both runs, paired prompt by prompt"
        if unpaired is None
        else f"95% intervals over prompts ({num_prompts} or more), not paired: {unpaired}"
    )
    return Comparison(
        before.name,
        after.name,
        (_verdict(before.summary), _verdict(after.summary)),
        tuple(_run_changes(before.summary, after.summary)),
        tuple(deltas),
        (unpaired is None) if num_prompts > 1 else None,
        basis + _left_out(before, after) if num_prompts > 1 else "No intervals: a run has one prompt only",
        len(gates),
        failed,
        tuple(_one_sided((before, old), (after, new))),
    )


def failures(
    gates: Sequence[Gate], judged: Sequence[tuple[str, Mapping[str, Figure], Mapping[str, Figure]]]
) -> tuple[str, ...]:
    """Return which gates fail and why, given what each place is called and its figures in both results.

    Raises
    ------
    ConfigError
        All gates that cannot be judged.
    """
    failed, faults = [], []
    for gate in gates:
        try:
            reasons = [(where, gate.judge(old, new)) for where, old, new in judged]
        except ConfigError as error:
            faults.append(str(error))
            continue
        found = [
            f"{reason}{f' at {where}' if where else ''}" for where, reason in reasons if reason is not None
        ]
        more = f", and at {len(found) - 1} more points" if len(found) > 1 else ""
        failed += [f"{gate.text}: {found[0]}{more}"] if found else []
    if faults:
        raise ConfigError([Fault("", None, None, "", fault) for fault in faults])
    return tuple(failed)


def _one_sided(*runs: tuple[NamedRun, Mapping[str, Figure]]) -> Iterator[str]:
    for metric, noun in ONE_SIDED.items():
        lacking = [run for run, known in runs if number_of(known.get(f"baseline.{metric}")) is None]
        if len(lacking) == 1:
            reason = _why(metric, lacking[0].summary)
            yield f"No {noun} are compared: {lacking[0].name} has none, since {reason}"


def _why(metric: str, summary: Summary) -> str:
    if metric == "usd_per_mtok":
        return "the price of a device, or the joules to be paid, are not known"
    if metric == "request_goodput":
        return "it has no objectives"
    if not summary["provenance"]["power_is_estimated"]:
        return "its profile states no power"
    arms = (summary["baseline"], summary["speculation"] or {})
    guessed = max(number(arm, "guessed_energy_fraction") or 0.0 for arm in arms)
    return f"{100 * guessed:.0f} % of its joules come from guessed watts (show_estimated_energy shows them)"


def _left_out(before: NamedRun, after: NamedRun) -> str:
    """Say how far off the profiles of two runs are, where one is better known than the other."""
    profiles = [run.summary["provenance"] for run in (before, after)]
    known = [(profile.get("profile_kind"), profile.get("held_out_error")) for profile in profiles]
    if known[0] == known[1] or any(kind == "unit" for kind, _ in known):
        return ""
    first, second = (f"{profile.get('profile')}'s {_error(profile)}" for profile in profiles)
    return f". They leave out how far off step times are: {first}; {second}"


def _error(profile: Mapping[str, JsonValue]) -> str:
    error = profile.get("held_out_error")
    if isinstance(error, float):
        return f"{percent(error)} on measured runs"
    is_fitted = profile.get("profile_kind") == "fitted"
    return "by how much is not known" if is_fitted else "10–30 %, as is usual of a datasheet, not calibrated"


def _verdict(summary: Summary) -> str:
    if summary["speculation"] is None:
        return "no speculation"
    return claim(summary["verdict"]["pays"])


def _why_unpaired(before: NamedRun, after: NamedRun) -> str | None:
    """Say why the runs hold other prompts, None where they hold the same.

    The same are those of one recorded trace, or drawn from one seed.
    """
    recorded, other = (_recordings(run.summary) for run in (before, after))
    if recorded != other:
        return f"their prompts are those of {_listed(recorded)} and of {_listed(other)}"
    seeds = before.summary["seed"], after.summary["seed"]
    if not recorded and seeds[0] != seeds[1]:
        return f"their prompts are drawn from two seeds, {seeds[0]} and {seeds[1]}"
    return other_prompts(before.tables, after.tables)


def _recordings(summary: Summary) -> list[str]:
    """Return the traces that a run's prompts come from and the parts of them, then the models recorded on."""
    if summary["provenance"].get("trace") is None:
        return []
    scenario = summary["scenario"]
    classes = _mapping(scenario.get("workload")).get("classes")
    entries = classes if isinstance(classes, list) else []
    kinds = [_mapping(entry.get("distributions")) for entry in (scenario, *map(_mapping, entries))]
    parts = [
        " ".join([Path(str(kind["path"])).name, *(str(kind[key]) for key in _PART_OF_TRACE if kind.get(key))])
        for kind in kinds
        if "path" in kind
    ]
    return [*parts, str(summary["provenance"]["trace"])]


def _listed(recordings: Sequence[str]) -> str:
    return ", ".join(recordings) if recordings else "no recording"


def _run_changes(before: Summary, after: Summary) -> list[Change]:
    found = changes(before["scenario"], after["scenario"])
    versions = [
        {"specsim_version": run["specsim_version"], **_mapping(run["provenance"].get("versions"))}
        for run in (before, after)
    ]
    return found + changes(versions[0], versions[1])


def _mapping(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _shared_numbers(
    before: Mapping[str, Figure], after: Mapping[str, Figure]
) -> dict[str, tuple[float, float]]:
    found = {}
    for name, figure in before.items():
        old, new = number_of(figure), number_of(after.get(name))
        if is_metric(name) and old is not None and new is not None:
            found[name] = (old, new)
    return found


def relative(before: float, after: float) -> float | None:
    """Return the relative change, None where it was 0 or so little that the change is no number.

    Examples
    --------
    >>> relative(2.0, 3.0), relative(0.0, 1.0), relative(1e-300, 1e300)
    (0.5, None, None)
    """
    return finite(after / before - 1.0) if before else None
