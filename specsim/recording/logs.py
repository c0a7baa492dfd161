"""Logs of accepted lengths, as serving engines and benchmarks write them, as traces to replay.

A round emits its kept drafts and one token more. The simulator's first token comes from prefill, so a path is
one token longer than what its rounds emitted; engines that draft before their first token say one fewer.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from specsim import __version__
from specsim.arrays import Ints
from specsim.errors import ConfigError
from specsim.speculation.distributions import Ending
from specsim.speculation.trace import Trace, TraceHeader
from specsim.streams import Purpose, RandomStreams

LogFormat: TypeAlias = Literal["spec-bench", "vllm", "sglang", "csv"]
"""Who wrote the log.

``spec-bench``
    Answers of Spec-Bench (Xia et al. 2024), one question a line, each with the lengths of its rounds.
``vllm``
    Responses of vLLM under ``--per-request-spec-decode-metrics``, one a line; ``detailed`` keeps the order.
``sglang``
    Responses of SGLang with ``meta_info``, one a line: counts of rounds by drafts kept.
``csv``
    A table with the columns ``accept_lengths`` and ``gammas``, numbers apart by spaces, one text a row.
"""
_MAX_LINE = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What a log does not say of itself."""

    target: str
    """Name of the target model."""
    draft: str
    """Name of the draft."""
    temperature: float
    """Temperature of the target."""
    num_speculative_tokens: int | None = None
    """Drafts of every round, where the log does not give them."""
    heuristic_start: int | None = None
    """First length of transformers' heuristic (2 more after a full acceptance, else 1 less, at least 1)."""
    num_prompt_tokens: int | None = None
    """Length of the prompts, where the log does not give it."""
    method: str | None = None
    """Rows of a csv with this ``method`` only."""
    seed: int = 0
    """Draws the order of rounds of which only counts are known."""


@dataclass(frozen=True, slots=True)
class _Text:
    """One text of a log."""

    domain: str
    num_prompt_tokens: int | None
    accepted: Ints
    drafted: Ints | None
    """None: by the settings."""
    ended_by: Ending
    is_in_order: bool


_Row: TypeAlias = Mapping[str, Any]


def read_log(path: str | Path, *, log_format: LogFormat, settings: LogSettings) -> Trace:
    """Read a log as a trace of rounds.

    Raises
    ------
    ConfigError
        A line that is not of the format, rounds that keep more than they draft, or lengths that neither the
        log nor the settings give; the line is named.
    """
    path = Path(path)
    for name in ("num_speculative_tokens", "heuristic_start", "num_prompt_tokens"):
        given = getattr(settings, name)
        if given is not None and given < 1:
            raise ConfigError(f"{name}: at least 1, not {given}")
    read, is_csv = _READERS[log_format], log_format == "csv"
    texts: list[_Text] = []
    for line, row in _csv_rows(path) if is_csv else _json_rows(path):
        try:
            found = list(read(row, settings))
            texts += [_with_lengths(text, settings) for text in found if text.accepted.size]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(f"{path}:{line}: not a record of a {log_format} log: {reason}") from None
    if not texts:
        raise ConfigError(f"{path}: no text with rounds")
    order = RandomStreams(settings.seed)
    for number, text in enumerate(texts):
        if not text.is_in_order:
            place = order.generator(Purpose.LOG_ORDER, number).permutation(text.accepted.size)
            drafted = cast("Ints", text.drafted)[place]
            texts[number] = replace(text, accepted=text.accepted[place], drafted=drafted)
    return _trace(texts, settings, source=f"log of {log_format}: {path.name}")


def _with_lengths(text: _Text, settings: LogSettings) -> _Text:
    drafted = text.drafted
    if drafted is None and settings.heuristic_start is not None:
        if not text.is_in_order:
            raise ValueError("a heuristic needs rounds in order, and only counts are logged")
        drafted = _heuristic(text.accepted, settings.heuristic_start)
    elif drafted is None:
        if settings.num_speculative_tokens is None:
            raise ValueError("draft lengths are not logged: give num_speculative_tokens or a heuristic")
        drafted = np.full_like(text.accepted, settings.num_speculative_tokens)
    if np.any((text.accepted < 0) | (text.accepted > drafted)):
        first = int(np.flatnonzero((text.accepted < 0) | (text.accepted > drafted))[0])
        raise ValueError(f"round {first} keeps {text.accepted[first]} of {drafted[first]} drafts")
    num_prompt_tokens = text.num_prompt_tokens or settings.num_prompt_tokens
    if num_prompt_tokens is None:
        raise ValueError("prompt lengths are not logged: give num_prompt_tokens")
    return replace(text, num_prompt_tokens=num_prompt_tokens, drafted=drafted)


def _trace(texts: Sequence[_Text], settings: LogSettings, *, source: str) -> Trace:
    lengths = np.array([1 + int((text.accepted + 1).sum()) for text in texts])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    logged = np.full(int(offsets[-1]), -1, dtype=np.int32)
    for first, text in zip(offsets.tolist(), texts, strict=False):
        emitted = text.accepted + 1
        logged[first + 1 + np.cumsum(emitted) - emitted] = cast("Ints", text.drafted)
    trace = Trace(
        header=TraceHeader(
            target=settings.target,
            draft=settings.draft,
            tokenizer="none: a log knows no tokens",
            vocabulary_size=1,
            temperature=settings.temperature,
            draft_temperature=settings.temperature,
            prompts=source,
            seed=settings.seed,
            created_by=f"specsim {__version__}",
            versions={},
            sha256={},
            log="in_order" if all(text.is_in_order for text in texts) else "shuffled",
        ),
        offsets=offsets,
        num_prompt_tokens=np.array([text.num_prompt_tokens for text in texts], dtype=np.int32),
        domain=np.array([text.domain for text in texts]),
        language=np.array(["unknown"] * len(texts)),
        ended_by=np.array([text.ended_by for text in texts]),
        token=np.zeros(logged.size, dtype=np.int32),
        p_token=np.ones(logged.size, dtype=np.float32),
        logged_drafts=logged,
    )
    trace.check(source)
    return trace


def _heuristic(accepted: Ints, start: int) -> Ints:
    lengths, length = [], start
    for kept in accepted.tolist():
        lengths.append(length)
        length = length + 2 if kept == length else max(1, length - 1)
    return np.array(lengths, dtype=np.int64)


def _spec_bench(row: _Row, _: LogSettings) -> Iterator[_Text]:
    choice = row["choices"][0]
    accepted = _whole(choice["accept_lengths"]) - 1
    steps = _whole(choice["decoding_steps"])
    if steps.sum() != accepted.size:
        raise ValueError(f"{accepted.size} accept_lengths for {steps.sum()} decoding_steps")
    for part in np.split(accepted, np.cumsum(steps)[:-1]):
        yield _Text(str(row.get("category", "unknown")), None, part, None, "stop", True)


def _vllm(row: _Row, _: LogSettings) -> Iterator[_Text]:
    logged = row["metrics"]["speculative_decoding"]
    ending: Ending = "cap" if row["choices"][0].get("finish_reason") == "length" else "stop"
    num_prompt_tokens = int(row["usage"]["prompt_tokens"])
    if "per_step_accepted" in logged:
        accepted, drafted = _whole(logged["per_step_accepted"]), _whole(logged["per_step_drafted"])
        if accepted.size != drafted.size:
            raise ValueError(f"{accepted.size} per_step_accepted for {drafted.size} per_step_drafted")
        yield _Text("unknown", num_prompt_tokens, accepted, drafted, ending, True)
        return
    accepted = _from_counts(logged["acceptance_histogram"])
    drafted = np.full_like(accepted, int(logged["num_spec_tokens"]))
    if drafted.sum() != int(logged["num_draft_tokens"]):
        raise ValueError(
            "rounds of different lengths: log them with 'detailed', counts do not tell them apart"
        )
    yield _Text("unknown", num_prompt_tokens, accepted, drafted, ending, False)


def _sglang(row: _Row, _: LogSettings) -> Iterator[_Text]:
    meta = row["meta_info"]
    name = "spec_correct_drafts_histogram"
    counts = meta[name] if name in meta else meta["spec_accept_histogram"]
    finish = meta.get("finish_reason") or {}
    ending: Ending = "cap" if finish.get("type") == "length" else "stop"
    yield _Text("unknown", int(meta["prompt_tokens"]), _from_counts(counts), None, ending, False)


def _table(row: _Row, settings: LogSettings) -> Iterator[_Text]:
    if settings.method is not None and row["method"] != settings.method:
        return
    drafted = _whole(row["gammas"].split()) if row.get("gammas") else None
    accepted = _whole(row["accept_lengths"].split()) - 1
    if drafted is not None and drafted.size != accepted.size:
        raise ValueError(f"{accepted.size} accept_lengths for {drafted.size} gammas")
    given = row.get("prompt_tokens")
    yield _Text(
        row.get("category") or "unknown", int(given) if given else None, accepted, drafted, "stop", True
    )


_READERS: dict[str, Callable[[_Row, LogSettings], Iterator[_Text]]] = {
    "spec-bench": _spec_bench,
    "vllm": _vllm,
    "sglang": _sglang,
    "csv": _table,
}


def _from_counts(counts: Sequence[int]) -> Ints:
    """Make rounds of the numbers of rounds by drafts kept; their order is not known."""
    return np.repeat(np.arange(len(counts)), _whole(counts))


def _whole(values: Sequence[object]) -> Ints:
    numbers = np.array([int(cast("str", value)) for value in values], dtype=np.int64)
    if np.any(numbers < 0):
        raise ValueError(f"{numbers.min()} is not a count")
    return numbers


def _json_rows(path: Path) -> Iterator[tuple[int, _Row]]:
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise ConfigError(f"{path}:{number}: not JSON") from None
            if not isinstance(row, dict):
                raise ConfigError(f"{path}:{number}: not a JSON object")
            yield number, row


def _csv_rows(path: Path) -> Iterator[tuple[int, _Row]]:
    csv.field_size_limit(_MAX_LINE)
    try:
        reader = csv.DictReader(_text(path).splitlines())
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise ConfigError(f"{path}: not a table: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not text") from None
