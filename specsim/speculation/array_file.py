"""Arrays in one npz file, read and written so that a hostile or broken file is one clear line.

Reading never unpickles, never trusts a declared size and never allocates more than a stated bound.
Writing is deterministic, byte for byte, and atomic: a temporary name beside the file, then a rename.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specsim.errors import ConfigError, Fault
from specsim.writing import write_faults, write_whole

Array: TypeAlias = NDArray[np.generic]

MAX_FILE_BYTES = 256 * 2**20
MAX_ARRAY_BYTES = 2**30
"""Bound on all arrays together once uncompressed."""
SMALL_BYTES = 32 * 2**20
MAX_EXPANSION = 64
"""Arrays beyond the small ones may be so many times their file: real columns shrink to a half or a tenth."""
_MAX_MEMBERS = 64
_EPOCH = (1980, 1, 1, 0, 0, 0)


def read_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of an npz file by name; anything else is a ConfigError of one line."""
    with contextlib.ExitStack() as stack:
        try:
            if not path.is_file():
                raise _refusal(path, "not a file" if path.exists() else "no such file")
            num_bytes = path.stat().st_size
            if num_bytes > MAX_FILE_BYTES:
                raise _refusal(path, f"{num_bytes} bytes, more than the limit of {MAX_FILE_BYTES}")
            archive = stack.enter_context(zipfile.ZipFile(path))
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS:
                raise _refusal(path, f"{len(members)} arrays, more than the limit of {_MAX_MEMBERS}")
            total_bytes = sum(member.file_size for member in members)
            limit = min(MAX_ARRAY_BYTES, SMALL_BYTES + MAX_EXPANSION * num_bytes)
            if total_bytes > limit:
                raise _refusal(
                    path,
                    f"{total_bytes} bytes of arrays, more than the limit of {limit} for a file of its size",
                )
            return {
                member.filename.removesuffix(".npy"): _parse(path, member.filename, archive.read(member))
                for member in members
            }
        except OSError as error:
            raise _refusal(path, f"cannot be read ({error.strerror or error})") from None
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError):
            raise _refusal(path, "not an npz file, or a truncated or corrupt one") from None
        except (NotImplementedError, RuntimeError) as error:
            raise _refusal(path, f"not a plain npz file ({error})") from None


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays to an npz file: equal arrays give equal bytes, and a failed write leaves nothing."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            # A tenth smaller than deflate on columns of near-random digits; numpy.load reads it too.
            entry.compress_type = zipfile.ZIP_LZMA
            archive.writestr(entry, member.getvalue())
    with write_faults(path):
        write_whole(path, buffer.getvalue())


def _parse(path: Path, name: str, content: bytes) -> Array:
    # By hand rather than by numpy.load, which allocates what the header claims before it reads.
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        shape, is_fortran, dtype = read_header[version](stream)
    except (ValueError, KeyError, EOFError, SyntaxError, TypeError):
        raise _refusal(path, f"'{name}' is not an array") from None
    if dtype.hasobject or dtype.names is not None or is_fortran:
        raise _refusal(path, f"array '{name}' is not a plain array of numbers or text")
    body = content[stream.tell() :]
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != len(body):
        raise _refusal(path, f"array '{name}' holds {len(body)} bytes, not what its shape {shape} needs")
    if dtype.itemsize == 0:
        raise _refusal(path, f"array '{name}' is empty text")
    return np.frombuffer(body, dtype=dtype).reshape(shape)


def _refusal(path: Path, message: str) -> ConfigError:
    return ConfigError([Fault(str(path), None, None, "", message)])
