"""Traces put together and taken apart, prompt by prompt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from specsim.errors import ConfigError
from specsim.speculation.trace import Trace

_PER_PROMPT = ("num_prompt_tokens", "domain", "language", "ended_by")
_MAY_DIFFER = ("prompts", "seed", "versions", "created_by")
_Columns = dict[str, NDArray[np.generic]]


def concatenate(traces: Sequence[Trace]) -> Trace:
    """Put the prompts of several traces end to end, in order.

    The header is the first one's; sources of prompts that differ are joined.

    Raises
    ------
    ConfigError
        No trace, or traces of different models, laws or columns: the first difference is named.
    """
    if not traces:
        raise ConfigError("no trace to join")
    first = traces[0]
    for other in traces[1:]:
        _check_alike(first, other)
    columns = {name: np.concatenate([_columns(trace)[name] for trace in traces]) for name in _columns(first)}
    lengths = np.concatenate([np.diff(trace.offsets) for trace in traces])
    sources = "; ".join(dict.fromkeys(trace.header.prompts for trace in traces))
    header = first.header.model_copy(update={"prompts": sources})
    return _with_columns(replace(first, header=header), lengths, columns)


def select_prompts(trace: Trace, prompts: Sequence[int]) -> Trace:
    """Take the given prompts of a trace, in the given order.

    Raises
    ------
    ConfigError
        None given, or a number outside the trace.
    """
    if len(prompts) == 0:
        raise ConfigError("a trace needs at least one prompt")
    outside = [number for number in prompts if not 0 <= number < trace.num_prompts]
    if outside:
        raise ConfigError(f"no prompt {outside[0]}; the trace has 0 to {trace.num_prompts - 1}")
    rows = np.asarray(prompts, dtype=np.int64)
    positions = np.concatenate([np.arange(trace.offsets[row], trace.offsets[row + 1]) for row in rows])
    columns = {
        name: column[rows if name in _PER_PROMPT else positions] for name, column in _columns(trace).items()
    }
    return _with_columns(trace, np.diff(trace.offsets)[rows], columns)


def of_domain(
    trace: Trace, *, domains: Collection[str] = (), languages: Collection[str] = (), first: int | None = None
) -> Trace:
    """Take the prompts of some domains and languages; all where none is named.

    Parameters
    ----------
    trace
        The recording.
    domains, languages
        Those to keep.
    first
        Keep at most this many prompts of what is left.

    Raises
    ------
    ConfigError
        No such prompts; names what there is.
    """
    is_kept = np.ones(trace.num_prompts, dtype=bool)
    for names, wanted in ((trace.domain, domains), (trace.language, languages)):
        is_kept &= np.isin(names, list(wanted)) | (not wanted)
    kept = np.flatnonzero(is_kept)[:first]
    if not kept.size:
        there, spoken = (", ".join(sorted(set(names.tolist()))) for names in (trace.domain, trace.language))
        raise ConfigError(f"no such prompts; domains: {there}; languages: {spoken}")
    return trace if kept.size == trace.num_prompts else select_prompts(trace, kept.tolist())


def _columns(trace: Trace) -> _Columns:
    named = {field.name: getattr(trace, field.name) for field in fields(trace)}
    return {
        name: column
        for name, column in named.items()
        if name not in ("header", "offsets") and column is not None
    }


def _with_columns(trace: Trace, lengths: NDArray[np.int64], columns: _Columns) -> Trace:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    joined = replace(trace, offsets=offsets)
    for name, column in columns.items():
        setattr(joined, name, column)
    return joined


def _check_alike(first: Trace, other: Trace) -> None:
    ours, theirs = first.header.model_dump(), other.header.model_dump()
    for name in ours:
        if name not in _MAY_DIFFER and ours[name] != theirs[name]:
            raise ConfigError(f"traces differ in {name}: '{ours[name]}' and '{theirs[name]}'")
    odd = sorted(_columns(first).keys() ^ _columns(other).keys())
    if odd:
        raise ConfigError(f"traces differ in what they record: '{odd[0]}' is in one only")
    for name, column in _columns(first).items():
        if column.shape[1:] != _columns(other)[name].shape[1:]:
            raise ConfigError(f"traces differ in the depth of {name}")
