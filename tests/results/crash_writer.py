"""Write a run over an older one, killed at every step in turn; print the seed found after each death.

Run as a program: a fork of a test process that has threads would be unsafe.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq

from specsim.results.writer import REQUESTS_FILE, RUN_FILES, STEPS_FILE, SUMMARY, write
from tests.constant_cost import ClosedLoop

_OPERATIONS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "shutil.rmtree"}


def _dies_at(step: int, folder: Path) -> bool:
    """Write in a child that kills itself before its n-th file operation; whether it got that far."""
    child = os.fork()
    if child == 0:
        result = ClosedLoop().result(seed=1)
        remaining = step

        def count(event: str, _arguments: object) -> None:
            nonlocal remaining
            if event in _OPERATIONS:
                remaining -= 1
                if remaining < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        write(result, folder)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def _found(folder: Path) -> int | None:
    """Seed of the complete run that is there; None where there is nothing."""
    if not folder.exists():
        return None
    assert {path.name for path in folder.iterdir()} < RUN_FILES
    for name in (REQUESTS_FILE, STEPS_FILE):
        assert pq.read_table(folder / name).num_rows > 0
    return int(json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["seed"])


def main(folder: Path) -> None:
    """Kill at step 0, 1, 2, … until a write gets through."""
    old = ClosedLoop().result(seed=0)
    step = 0
    while True:
        write(old, folder)
        assert list(folder.parent.iterdir()) == [folder], "the next write clears what the dead one left"
        died = _dies_at(step, folder)
        print(json.dumps({"died": died, "found": _found(folder)}))
        if not died:
            return
        step += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
