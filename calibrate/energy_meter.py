"""Energy counters of the machine: NVIDIA's of a GPU, Intel's and AMD's RAPL of a processor.

Counters, not power readings: a GPU's reported power is an average over a second or a sample of a quarter
of the time, its energy counter is neither (Yang et al., "Part-time Power Measurements", SC 2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_RAPL = Path("/sys/class/powercap")
_UJ, _MJ = 1e-6, 1e-3


class EnergyMeter(Protocol):
    """A counter of energy since some moment."""

    @property
    def name(self) -> str:
        """What counts, for the header."""
        ...

    def read_j(self) -> float:
        """Energy since the meter was made, J."""
        ...

    def state(self) -> dict[str, float]:
        """Clocks and temperature now, under the names of a trace's columns, as far as they are known."""
        ...


@dataclass(slots=True)
class RaplMeter:
    """Sum of the packages' counters under ``/sys/class/powercap``, each of which wraps.

    Read at least once a wrap: a counter of 32 bits of 15.3 µJ wraps every few minutes at full load.
    """

    domains: tuple[Path, ...]
    name: str = "RAPL"
    _last_uj: list[int] = field(default_factory=list)
    _range_uj: list[int] = field(default_factory=list)
    _sum_uj: int = 0

    def __post_init__(self) -> None:
        """Take the counters as they stand for zero."""
        self._range_uj = [_whole(domain / "max_energy_range_uj") for domain in self.domains]
        self._last_uj = [_whole(domain / "energy_uj") for domain in self.domains]

    def read_j(self) -> float:
        """Energy of all packages since the meter was made, J."""
        for index, domain in enumerate(self.domains):
            now_uj = _whole(domain / "energy_uj")
            step_uj = now_uj - self._last_uj[index]
            self._sum_uj += step_uj if step_uj >= 0 else step_uj + self._range_uj[index]
            self._last_uj[index] = now_uj
        return self._sum_uj * _UJ

    def state(self) -> dict[str, float]:
        """Nothing: the counters tell energy alone."""
        return {}


@dataclass(slots=True)
class NvmlMeter:
    """The energy counter of one NVIDIA GPU (Volta and later)."""

    handle: object
    name: str
    _start_mj: int = 0

    def __post_init__(self) -> None:
        """Take the counter as it stands for zero."""
        self._start_mj = self._read_mj()

    def read_j(self) -> float:
        """Energy since the meter was made, J."""
        return (self._read_mj() - self._start_mj) * _MJ

    def state(self) -> dict[str, float]:
        """Clocks, MHz, temperature, °C, and power limit, W."""
        import pynvml

        return {
            "sm_mhz": float(pynvml.nvmlDeviceGetClockInfo(self.handle, pynvml.NVML_CLOCK_SM)),
            "mem_mhz": float(pynvml.nvmlDeviceGetClockInfo(self.handle, pynvml.NVML_CLOCK_MEM)),
            "temp_c": float(pynvml.nvmlDeviceGetTemperature(self.handle, pynvml.NVML_TEMPERATURE_GPU)),
            "power_cap_w": pynvml.nvmlDeviceGetEnforcedPowerLimit(self.handle) / 1e3,
        }

    def _read_mj(self) -> int:
        import pynvml

        return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle))


def find_meter(device: str, *, rapl: Path = _RAPL) -> tuple[EnergyMeter | None, str]:
    """Return the energy counter of a device, and in words what it is or why there is none.

    Parameters
    ----------
    device
        ``cpu`` or ``cuda``.
    rapl
        Folder of the counters of processors.
    """
    if device == "cuda":
        return _find_nvml()
    domains = sorted(path for path in rapl.glob("*rapl:*") if path.name.count(":") == 1)
    if not domains:
        return None, f"energy is not measured: no RAPL counters under {rapl}"
    try:
        meter = RaplMeter(tuple(domains))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no number"
        return None, f"energy is not measured: RAPL counters cannot be read ({reason})"
    return meter, meter.name


def _find_nvml() -> tuple[EnergyMeter | None, str]:
    try:
        import pynvml
    except ImportError:
        return None, "energy is not measured: pip install 'specsim-llm[gpu]'"
    try:
        pynvml.nvmlInit()
        driver = pynvml.nvmlSystemGetDriverVersion()
        meter = NvmlMeter(pynvml.nvmlDeviceGetHandleByIndex(0), f"NVML energy counter, driver {driver}")
    except pynvml.NVMLError as error:
        return None, f"energy is not measured: {error}"
    return meter, meter.name


def _whole(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
