"""A recorded trace: what target and draft said along continuations that the target has sampled.

Positions are output positions: position 0 of a prompt is its first token, which prefill emits. All
prompts lie end to end; ``offsets`` says where each begins. What is stored about the draft comes in groups:

``scalars``
    of a draft that is a function of the tokens before it (a separate model, early exit): one value
    a position.
``proposals``
    of a deterministic draft that goes on from the round's start (prompt lookup): ``[start, depth]``,
    where the draft at depth d of a round started at s is that of position s + d.
``heads``
    of a sampled draft that goes on from the round's start (EAGLE, MTP): q at the path, ``[start, depth]``.
``union``
    both models at the union of their most probable tokens, with the mass outside.
``tails``
    what the draft went on to draft after a rejection at each position, ``[position, depth]``.
``log``
    of a log that knows only how much was drafted and kept in each round: where rounds began.

One of scalars, proposals, heads and log is there in every trace. Replay is exact under the conditions in
the docs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from specsim.arrays import Bools
from specsim.errors import ConfigError, Fault
from specsim.speculation.array_file import Array, read_arrays, write_arrays
from specsim.speculation.distributions import Ending
from specsim.speculation.logged import LoggedRounds
from specsim.speculation.trace_codec import SMALLEST_PROBABILITY, decode, encode
from specsim.speculation.trace_header import DraftSampleMethod as DraftSampleMethod
from specsim.speculation.trace_header import TraceHeader as TraceHeader

_TOLERANCE = 2e-3
"""How far stored columns may disagree: the rounding of storage, and of the models' own arithmetic."""

TokenIds: TypeAlias = NDArray[np.int32]
Probabilities: TypeAlias = NDArray[np.float32]
Names: TypeAlias = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class _Column:
    dtype: type[np.generic]
    shape: Literal["prompt", "position", "table"]
    kind: Literal["token", "probability", "natural", "log", "count", "text"]
    group: Literal["path", "scalars", "proposals", "heads", "union", "tails", "log"]


_COLUMNS: dict[str, _Column] = {
    "num_prompt_tokens": _Column(np.int32, "prompt", "count", "path"),
    "domain": _Column(np.str_, "prompt", "text", "path"),
    "language": _Column(np.str_, "prompt", "text", "path"),
    "ended_by": _Column(np.str_, "prompt", "text", "path"),
    "token": _Column(np.int32, "position", "token", "path"),
    "p_token": _Column(np.float32, "position", "probability", "path"),
    "q_token": _Column(np.float32, "position", "probability", "scalars"),
    "overlap": _Column(np.float32, "position", "probability", "scalars"),
    "draft_argmax": _Column(np.int32, "position", "token", "scalars"),
    "p_at_draft_argmax": _Column(np.float32, "position", "probability", "scalars"),
    "draft_entropy_nats": _Column(np.float32, "position", "natural", "scalars"),
    "draft_top_probability": _Column(np.float32, "position", "probability", "scalars"),
    "proposal_token": _Column(np.int32, "table", "token", "proposals"),
    "p_at_proposal": _Column(np.float32, "table", "probability", "proposals"),
    "q_from_start": _Column(np.float32, "table", "probability", "heads"),
    "top_probability_from_start": _Column(np.float32, "table", "probability", "heads"),
    "entropy_from_start_nats": _Column(np.float32, "table", "natural", "heads"),
    "union_ids": _Column(np.int32, "table", "token", "union"),
    "log_p": _Column(np.float32, "table", "log", "union"),
    "log_q": _Column(np.float32, "table", "log", "union"),
    "tail_p": _Column(np.float32, "position", "probability", "union"),
    "tail_q": _Column(np.float32, "position", "probability", "union"),
    "tail_overlap": _Column(np.float32, "position", "probability", "union"),
    "tail_token": _Column(np.int32, "table", "token", "tails"),
    "tail_top_probability": _Column(np.float32, "table", "probability", "tails"),
    "tail_entropy_nats": _Column(np.float32, "table", "natural", "tails"),
    "logged_drafts": _Column(np.int32, "position", "count", "log"),
}
_MAY_BE_ABSENT = ("proposal_token", "union_ids", "tail_token", "logged_drafts")
"""Columns in which -1 marks that there is none."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """P continuations of N tokens in all; arrays are in storage precision.

    Raises
    ------
    ConfigError
        From :meth:`check`, :meth:`save` and :meth:`load`: every broken invariant at once.
    """

    header: TraceHeader
    offsets: NDArray[np.int64]
    """First position of each prompt, and N, [P + 1]."""
    num_prompt_tokens: NDArray[np.int32]
    """Length of each prompt, tokens, [P]."""
    domain: Names
    """Domain of each prompt, such as ``chat``, [P]."""
    language: Names
    """Language of each prompt, such as ``en``, [P]."""
    ended_by: Names
    """``eos``, ``stop``, ``cap`` or ``recorder`` (cut by the recording), [P]."""
    token: TokenIds
    """Token that the target sampled, [N]."""
    p_token: Probabilities
    """Its probability under the target as warped, above 0, [N]."""
    q_token: Probabilities | None = None
    """Its probability under the draft, [N]."""
    overlap: Probabilities | None = None
    """Sum over the vocabulary of min(p, q): the acceptance rate whatever is sampled, [N]."""
    draft_argmax: TokenIds | None = None
    """The draft's most probable token, [N]."""
    p_at_draft_argmax: Probabilities | None = None
    """Its probability under the target, [N]."""
    draft_entropy_nats: Probabilities | None = None
    """Entropy of the draft distribution, nats, [N]."""
    draft_top_probability: Probabilities | None = None
    """Largest draft probability, [N]."""
    proposal_token: TokenIds | None = None
    """Token proposed for position start + depth; -1: no proposal, and none deeper, [N, D]."""
    p_at_proposal: Probabilities | None = None
    """Its probability under the target; 0 where there is none, or one above it left the path, [N, D]."""
    q_from_start: Probabilities | None = None
    """Draft probability of the path's token at start + depth, [N, D]; 0 past the prompt's end."""
    top_probability_from_start: Probabilities | None = None
    """Largest draft probability there, [N, D]."""
    entropy_from_start_nats: Probabilities | None = None
    """Entropy of the draft distribution there, nats, [N, D]."""
    union_ids: TokenIds | None = None
    """Union of the most probable tokens of both models, -1 pads, [N, U]."""
    log_p: Probabilities | None = None
    """Natural logarithm of the target's probability at each of them, as drawn from, [N, U]."""
    log_q: Probabilities | None = None
    """The same of the draft at temperature 1, whatever the draft's own, [N, U]."""
    tail_p: Probabilities | None = None
    """Target mass outside the union, [N]."""
    tail_q: Probabilities | None = None
    """Draft mass at temperature 1 outside the union, [N]."""
    tail_overlap: Probabilities | None = None
    """Sum of min(p, q) outside the union, q as recorded, [N]."""
    tail_token: TokenIds | None = None
    """Tokens drafted after the one rejected at this position; -1: none, [N, T]."""
    tail_top_probability: Probabilities | None = None
    """Largest draft probability at each of them, [N, T]."""
    tail_entropy_nats: Probabilities | None = None
    """Entropy of the draft distribution at each of them, nats, [N, T]."""
    logged_drafts: TokenIds | None = None
    """Drafts of the logged round that began at each position; -1: none did, [N]."""

    @property
    def num_prompts(self) -> int:
        """P."""
        return len(self.offsets) - 1

    @property
    def num_tokens(self) -> int:
        """N."""
        return int(self.offsets[-1])

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read and check a trace file."""
        path = Path(path)
        arrays = read_arrays(path)
        faults = [
            f"unknown array '{name}'" for name in arrays.keys() - _COLUMNS.keys() - {"header", "offsets"}
        ]
        required = [
            "header",
            "offsets",
            *(name for name, column in _COLUMNS.items() if column.group == "path"),
        ]
        faults += [f"no array '{name}'" for name in required if name not in arrays]
        if faults:
            raise _as_error(sorted(faults), path)
        header = _parse_header(arrays.pop("header"), path)
        try:
            arrays = decode(arrays)
        except ConfigError as error:
            raise _as_error([str(error)], path) from None
        trace = cls(header=header, **cast("dict[str, NDArray[np.int64]]", arrays))  # type: ignore[arg-type]
        trace.check(path)
        return trace

    def save(self, path: str | Path) -> None:
        """Check the trace and write it atomically; equal traces give equal bytes.

        Columns are rounded as :mod:`specsim.speculation.trace_codec` states: probabilities to a relative
        error of 1e-3, the overlap to an error of 8.2e-5, entropies to 1/128 nat.
        """
        path = Path(path)
        self.check(path)
        header = json.dumps(self.header.model_dump(by_alias=True, mode="json"), sort_keys=True)
        arrays: dict[str, Array] = {
            "header": np.frombuffer(header.encode(), dtype=np.uint8),
            "offsets": self.offsets.astype(np.int32),
        }
        columns = {name: array for name in _COLUMNS if (array := self._column(name)) is not None}
        write_arrays(path, arrays | encode(columns))

    def check(self, source: str | Path = "trace") -> None:
        """Refuse broken invariants, all at once.

        Parameters
        ----------
        source
            What the faults point to: the file.
        """
        faults = self._offset_faults()
        if not faults:
            faults = [
                fault for name, column in _COLUMNS.items() for fault in self._column_faults(name, column)
            ]
        if not faults:
            faults = self._group_faults() + self._cross_faults()
        if faults:
            raise _as_error(faults, Path(source))

    def logged_rounds(self) -> LoggedRounds:
        """Return the rounds of a log of accepted lengths.

        Raises
        ------
        ConfigError
            The trace is not one.
        """
        if self.logged_drafts is None:
            raise ConfigError("the trace is not a log of accepted lengths")
        start = np.flatnonzero(self.logged_drafts >= 0)
        prompt = np.searchsorted(self.offsets, start, side="right") - 1
        end = np.minimum(np.append(start[1:], self.num_tokens), self.offsets[prompt + 1])
        return LoggedRounds(prompt, start, self.logged_drafts[start].astype(np.int64), end - start - 1)

    def _column(self, name: str) -> Array | None:
        return cast("Array | None", getattr(self, name))

    def _offset_faults(self) -> list[str]:
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) < 2 or not np.issubdtype(offsets.dtype, np.integer):
            return ["offsets: not a list of at least two integers"]
        if offsets[0] != 0 or np.any(np.diff(offsets) < 1):
            return ["offsets: must begin at 0 and increase: every prompt has at least one token"]
        self.offsets = offsets.astype(np.int64)
        return []

    def _column_faults(self, name: str, column: _Column) -> list[str]:
        array = self._column(name)
        if array is None:
            return []
        length = self.num_prompts if column.shape == "prompt" else self.num_tokens
        if array.ndim != (2 if column.shape == "table" else 1) or len(array) != length:
            return [f"{name}: shape {array.shape}, not one row for each of {length} {column.shape}s"]
        family = {np.int32: np.integer, np.str_: np.str_}.get(column.dtype, np.floating)
        if not np.issubdtype(array.dtype, family):
            return [f"{name}: values of type {array.dtype}, not {column.dtype.__name__}"]
        lowest = -1 if name in _MAY_BE_ABSENT else 0
        violations: dict[str, tuple[Callable[[Array], Bools], str]] = {
            "token": (
                lambda a: (a < lowest) | (a >= self.header.vocabulary_size),  # type: ignore[operator]
                f"token ids from {lowest} to {self.header.vocabulary_size - 1}",
            ),
            "probability": (lambda a: ~((a >= 0) & (a <= 1)), "probabilities in [0, 1]"),  # type: ignore[operator]
            "natural": (lambda a: ~((a >= 0) & np.isfinite(a)), "finite numbers, at least 0"),  # type: ignore[operator]
            "log": (lambda a: np.isnan(a) | (a > _TOLERANCE), "logarithms of probabilities"),  # type: ignore[operator]
            "count": (lambda a: a < lowest, "counts"),  # type: ignore[operator]
            "text": (lambda a: a == "", "names"),
        }
        violates, allowed = violations[column.kind]
        bad = np.flatnonzero(violates(array))
        if bad.size == 0:
            # The storage type makes a load, a save and a load give the same arrays.
            setattr(self, name, array if column.dtype is np.str_ else array.astype(column.dtype))
            return []
        return [f"{name}: {bad.size} values are not {allowed}; the first is {array.flat[bad[0]]} at {bad[0]}"]

    def _group_faults(self) -> list[str]:
        faults = []
        present = set()
        for group in ("scalars", "proposals", "heads", "union", "tails", "log"):
            names = [name for name, column in _COLUMNS.items() if column.group == group]
            absent = [name for name in names if self._column(name) is None]
            if len(absent) < len(names):
                present.add(group)
                faults += [f"{name}: missing, while {group} are recorded" for name in absent]
                tables = [self._column(name) for name in names if _COLUMNS[name].shape == "table"]
                if len({table.shape for table in tables if table is not None}) > 1:
                    faults.append(f"{group}: tables of different depths")
        if not present & {"scalars", "proposals", "heads", "log"}:
            faults.append("nothing is recorded of the draft")
        if ("log" in present) != (self.header.log is not None):
            faults.append("logged_drafts: recorded in logs, and only there")
        return faults

    def _cross_faults(self) -> list[str]:
        faults = []
        impossible = np.flatnonzero(self.p_token < SMALLEST_PROBABILITY)
        if impossible.size:
            first = int(impossible[0])
            faults.append(
                f"p_token: {self.p_token[first]:.4g} at {first}, a token that the target cannot have sampled"
            )
        unknown = sorted(set(self.ended_by.tolist()) - set(get_args(Ending)))
        if unknown:
            faults.append(f"ended_by: '{unknown[0]}' is not one of {', '.join(get_args(Ending))}")
        if self.q_token is not None and self.overlap is not None and self.draft_top_probability is not None:
            if np.any(self.q_token > self.draft_top_probability + _TOLERANCE):
                faults.append("q_token: above draft_top_probability")
            if self.draft_argmax is not None:
                apart = np.abs(self.q_token - self.draft_top_probability) > _TOLERANCE
                if np.any(apart[self.draft_argmax == self.token]):
                    faults.append(
                        "q_token: below draft_top_probability where the draft's argmax is the token"
                    )
            if np.any(self.overlap < np.minimum(self.p_token, self.q_token) - _TOLERANCE):
                faults.append("overlap: below min(p_token, q_token)")
        if self.draft_argmax is not None and self.p_at_draft_argmax is not None:
            agree = self.draft_argmax == self.token
            if np.any(np.abs(self.p_at_draft_argmax - self.p_token)[agree] > _TOLERANCE):
                faults.append("p_at_draft_argmax: differs from p_token where the draft's argmax is the token")
        if self.logged_drafts is not None:
            rounds = self.logged_rounds()
            is_first = np.isin(np.arange(self.num_tokens), self.offsets[:-1])
            is_second = np.roll(is_first, 1) & ~is_first
            if np.any((self.logged_drafts >= 0)[is_first]) or np.any((self.logged_drafts < 0)[is_second]):
                faults.append("logged_drafts: the first round of a prompt begins after its first token")
            elif np.any(rounds.accepted > rounds.drafted):
                faults.append("logged_drafts: fewer than the round kept")
        for name in ("proposal_token", "tail_token"):
            table = self._column(name)
            if table is not None and np.any((table[:, 1:] >= 0) & (table[:, :-1] < 0)):  # type: ignore[operator]
                faults.append(f"{name}: a proposal below a missing one")
        return faults


def _parse_header(array: Array, path: Path) -> TraceHeader:
    try:
        return TraceHeader.model_validate_json(array.astype(np.uint8).tobytes())
    except ValidationError as error:
        raise _as_error(
            [f"header: {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()], path
        ) from None
    except ValueError:
        raise _as_error(["header: not JSON"], path) from None


def _as_error(messages: list[str], path: Path) -> ConfigError:
    return ConfigError([Fault(str(path), None, None, "", message) for message in messages])
