"""Number formats of weights, arithmetic and KV cache, and the bytes that one value takes.

Four-bit formats carry a scale for each group of weights. ``int4``: 32 weights share a 16-bit scale,
18 bytes in all (ggml's q4_0 block). ``fp4``: 16 weights share an 8-bit scale, 9 bytes in all (NVFP4).
Scales of ``int8`` and ``float8`` are one a channel or tensor, too few to count.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Dtype: TypeAlias = Literal["float32", "bfloat16", "float16", "float8", "int8", "int4", "fp4"]
"""Format of weights or arithmetic."""

CacheDtype: TypeAlias = Literal["float32", "bfloat16", "float16", "float8", "int8"]
"""Format of the KV cache."""

BYTES_PER_VALUE: dict[str, float] = {
    "float32": 4.0,
    "bfloat16": 2.0,
    "float16": 2.0,
    "float8": 1.0,
    "int8": 1.0,
    "int4": 18 / 32,
    "fp4": 9 / 16,
}

PLAIN_ARITHMETIC: tuple[Dtype, ...] = ("bfloat16", "float16", "float32")
"""Arithmetic on weights of any format, the first that a device has."""

ACTIVATION_BYTES = 2.0
"""Bytes of one activation sent between devices: two-byte formats."""


def is_low_bit(weight_dtype: Dtype) -> bool:
    """Tell whether weights must be unpacked before plain arithmetic can use them."""
    return BYTES_PER_VALUE[weight_dtype] < 1.0
