"""What a capture says of the machine it ran on: device, driver, versions, date."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_LIBRARIES = ("torch", "transformers", "numpy")


def machine_facts(gpu: str | None, *, threads: int, cpuinfo: Path = _CPUINFO) -> dict[str, str]:
    """Header of a capture.

    Parameters
    ----------
    gpu
        Name of the GPU that computes; None: the processor does.
    threads
        Threads of the arithmetic.
    cpuinfo
        Where Linux describes its processors.
    """
    facts = {
        "device": cpu_name(cpuinfo) if gpu is None else gpu,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "engine": ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES),
        "device_timer": "CPU time of one thread" if gpu is None else "CUDA events",
    }
    if gpu is None:
        facts["threads"] = str(threads)
        facts["t_host_us"] = "wall clock, not for fits"
        if threads != 1:
            facts["device_timer"] = "none: several threads; the host's clock"
            del facts["t_host_us"]
    return facts


def cpu_name(cpuinfo: Path = _CPUINFO) -> str:
    """Model name of the processor; the machine's architecture where Linux does not say."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named and named[0] else platform.machine()


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
