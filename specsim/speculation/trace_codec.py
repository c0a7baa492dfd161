"""How the columns of a trace lie in its file: small whole numbers, in planes of bytes.

What a replay needs of p and q is their ratio, so probabilities are stored as -ln p in steps of 1/512: a
relative error of at most 1e-3 at any size, and a token of small probability never becomes impossible (the
smallest half-precision number is 6e-8; here it is 2e-37). The overlap, of which the absolute error counts, is
stored in steps of 1/6144. What another column already says (the draft's most probable token is the path's
own; the lookup goes on copying; the overlap is seldom much more than the smaller of p and q) is stored as 0,
or as what is left. The high bytes of a column lie together, then the low ones, since the high ones repeat.
Token, p, q, overlap and entropy of 2,000 positions take 3 kB at temperature 0 and 12 kB at 0.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from specsim.arrays import Ints
from specsim.errors import ConfigError
from specsim.speculation.array_file import Array

LOG_STEPS = 512
"""Steps of -ln p for a factor of e."""
OVERLAP_STEPS = 6144
"""Steps of the overlap between 0 and 1."""
ENTROPY_STEPS = 64
"""Steps for a nat of entropy."""
SMALLEST_PROBABILITY = 2.0**-122
"""About 2e-37; what is below it is stored as 0; single precision has no more digits there."""
_ZERO = 65535

_Codes: TypeAlias = NDArray[np.uint32]
_TOKENS = ("token", "draft_argmax", "proposal_token", "union_ids", "tail_token")
_PROBABILITIES = (
    "p_token",
    "q_token",
    "p_at_draft_argmax",
    "draft_top_probability",
    "p_at_proposal",
    "q_from_start",
    "top_probability_from_start",
    "tail_p",
    "tail_q",
    "tail_overlap",
    "tail_top_probability",
)
_LOGARITHMS = ("log_p", "log_q")
_ENTROPIES = ("draft_entropy_nats", "entropy_from_start_nats", "tail_entropy_nats")
_SAME_AS_PATH = {"p_at_draft_argmax": "p_token", "draft_top_probability": "q_token"}
"""Columns that repeat another where the draft's most probable token is that of the path."""
_SUMMANDS = frozenset({"overlap", "p_token", "q_token"})
_SHIFTED = ("proposal_token", "p_at_proposal")
"""Tables of which a row is mostly the row before, one to the left."""


def encode(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns as they lie in the file; text and counts stay as they are."""
    codes: dict[str, _Codes] = {}
    for name in (*_TOKENS, *_PROBABILITIES, *_LOGARITHMS, *_ENTROPIES, "overlap"):
        if name in columns:
            codes[name] = _code(name, columns[name].astype(np.float64))
    if "draft_argmax" in codes:
        is_same = codes["draft_argmax"] == codes["token"]
        for name in _SAME_AS_PATH.keys() & codes.keys():
            codes[name] = np.where(is_same, 0, codes[name])
        codes["draft_argmax"] = codes["draft_argmax"] - codes["token"]
    if "p_at_proposal" in codes:
        guess = _of_path(codes["p_token"], codes["proposal_token"], codes["token"])
        codes["p_at_proposal"] = codes["p_at_proposal"] - guess
    if codes.keys() >= _SUMMANDS:
        codes["overlap"] = codes["overlap"] - _one_summand(codes)
    for name in _SHIFTED:
        if name in codes:
            codes[name] = codes[name] - _one_to_the_left(codes[name])
    width = np.uint16 if _fits_16_bits(columns) else np.uint32
    stored: dict[str, Array] = {}
    for name, column in columns.items():
        if name in codes:
            code = codes[name].astype(width if name in _TOKENS else np.uint16)
            stored[name] = code if name == "token" else _in_planes(code)
        else:
            stored[name] = column
    return stored


def decode(stored: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns of what lies in a file.

    Raises
    ------
    ConfigError
        A column that is not of the form that :func:`encode` writes.
    """
    codes = {
        name: _codes(name, array)
        for name, array in stored.items()
        if name in (*_TOKENS, *_PROBABILITIES, *_LOGARITHMS, *_ENTROPIES, "overlap")
    }
    mask = np.uint32(0xFFFF if "token" in stored and stored["token"].dtype == np.uint16 else 0xFFFFFFFF)
    for name in _SHIFTED:
        if name in codes and codes[name].ndim == 2:
            bits = mask if name in _TOKENS else np.uint32(0xFFFF)
            codes[name] = _undo_shift(codes[name], bits)
    if (
        "p_at_proposal" in codes
        and codes["p_at_proposal"].shape == codes.get("proposal_token", codes["p_at_proposal"]).shape
        and {"p_token", "proposal_token", "token"} <= codes.keys()
        and codes["p_token"].shape == codes["token"].shape == codes["p_at_proposal"].shape[:1]
    ):
        guess = _of_path(codes["p_token"], codes["proposal_token"], codes["token"])
        codes["p_at_proposal"] = (codes["p_at_proposal"] + guess) & np.uint32(0xFFFF)
    if codes.keys() >= _SUMMANDS and len({codes[name].shape for name in _SUMMANDS}) == 1:
        codes["overlap"] = (codes["overlap"] + _one_summand(codes)) & np.uint32(0xFFFF)
    if "draft_argmax" in codes and "token" in codes and codes["token"].shape == codes["draft_argmax"].shape:
        is_same = codes["draft_argmax"] == 0
        codes["draft_argmax"] = (codes["draft_argmax"] + codes["token"]) & mask
        for name, other in _SAME_AS_PATH.items():
            if name in codes and other in codes and codes[name].shape == codes[other].shape == is_same.shape:
                codes[name] = np.where(is_same, codes[other], codes[name])
    return {
        name: _value(name, codes[name], mask) if name in codes else array for name, array in stored.items()
    }


def _code(name: str, values: NDArray[np.float64]) -> _Codes:
    if name in _TOKENS:
        return (values.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
    if name == "overlap":
        return np.rint(values * OVERLAP_STEPS).astype(np.uint32)
    if name in _ENTROPIES:
        return np.rint(values * ENTROPY_STEPS).astype(np.uint32)
    if name in _LOGARITHMS:
        values = np.exp(values)
    with np.errstate(divide="ignore"):
        steps = np.rint(-np.log(values) * LOG_STEPS)
    return np.where(values < SMALLEST_PROBABILITY, _ZERO, steps).astype(np.uint32)


def _value(name: str, code: _Codes, mask: np.uint32) -> Array:
    if name in _TOKENS:
        # All bits set is -1: no token.
        return np.where(code == mask, -1, code.astype(np.int64)).astype(np.int32)
    if name == "overlap":
        return (code / OVERLAP_STEPS).astype(np.float32)
    if name in _ENTROPIES:
        return (code / ENTROPY_STEPS).astype(np.float32)
    if name in _LOGARITHMS:
        return np.where(code == _ZERO, -np.inf, -code.astype(np.float64) / LOG_STEPS).astype(np.float32)
    return np.where(code == _ZERO, 0.0, np.exp(-code.astype(np.float64) / LOG_STEPS)).astype(np.float32)


def _fits_16_bits(columns: Mapping[str, Array]) -> bool:
    # The largest 16-bit number means "no token", so it cannot be one.
    present = [cast("Ints", columns[name]) for name in _TOKENS if name in columns]
    return all(int(column.max(initial=0)) < 0xFFFF for column in present)


def _in_planes(code: Array) -> Array:
    """Bytes by significance, the low ones first: ``[bytes, …]``."""
    little = np.ascontiguousarray(code).astype(code.dtype.newbyteorder("<"))
    planes = little.view(np.uint8).reshape(*code.shape, code.dtype.itemsize)
    return np.ascontiguousarray(np.moveaxis(planes, -1, 0))


def _codes(name: str, array: Array) -> _Codes:
    if name == "token":
        if array.dtype not in (np.uint16, np.uint32):
            raise ConfigError(f"{name}: stored as {array.dtype}, not as 16- or 32-bit whole numbers")
        return array.astype(np.uint32)
    if array.dtype != np.uint8 or array.ndim < 2 or array.shape[0] not in (2, 4):
        raise ConfigError(f"{name}: not stored as two or four planes of bytes")
    code = np.zeros(array.shape[1:], dtype=np.uint32)
    for plane, byte in enumerate(array):
        code |= byte.astype(np.uint32) << np.uint32(8 * plane)
    return code


def _one_to_the_left(table: _Codes) -> _Codes:
    """Guess each row from the row before, moved one to the left."""
    guess = np.zeros_like(table)
    guess[1:, :-1] = table[:-1, 1:]
    return guess


def _of_path(p_token: _Codes, proposal: _Codes, token: _Codes) -> _Codes:
    """Return p at each proposal that is the path's token; 0 elsewhere."""
    num_tokens, depth = proposal.shape
    at = np.minimum(np.arange(num_tokens)[:, np.newaxis] + np.arange(depth), num_tokens - 1)
    return np.where(proposal == token[at], p_token[at], 0).astype(np.uint32)


def _one_summand(codes: Mapping[str, _Codes]) -> _Codes:
    """Return the smaller of p and q at the path's token, one summand of the overlap, in its steps."""
    larger = np.maximum(codes["p_token"], codes["q_token"])
    smaller = np.exp(-larger.astype(np.float64) / LOG_STEPS)
    return np.where(larger == _ZERO, 0, np.rint(smaller * OVERLAP_STEPS)).astype(np.uint32)


def _undo_shift(table: _Codes, bits: np.uint32) -> _Codes:
    undone = table.copy()
    for depth in range(table.shape[1] - 1, -1, -1):
        # Column by column from the right: each needs only the one to its right.
        if depth + 1 < table.shape[1]:
            undone[1:, depth] += undone[:-1, depth + 1]
        undone[:, depth] &= bits
    return undone
