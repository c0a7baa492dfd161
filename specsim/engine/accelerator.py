"""An accelerator as a SimPy process: serves steps in order and keeps a ledger of its busy time."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

import simpy


class Accelerator:
    """One device, or one group of devices that step together.

    A deque and one wake-up event take the place of a SimPy store: a step, or a block of steps, costs
    one timeout whatever the batch.

    Parameters
    ----------
    env
        The environment whose clock counts picoseconds.
    """

    def __init__(self, env: simpy.Environment) -> None:
        self.busy_ps = 0
        self._env = env
        self._inbox: deque[tuple[int, simpy.Event]] = deque()
        self._wake = env.event()
        env.process(self._serve())

    def submit(self, duration_ps: int) -> simpy.Event:
        """Queue work of a duration in picoseconds; the event fires when it is done."""
        done = self._env.event()
        self._inbox.append((duration_ps, done))
        if not self._wake.triggered:
            self._wake.succeed()
        return done

    def _serve(self) -> Generator[simpy.Event, None, None]:
        while True:
            if not self._inbox:
                self._wake = self._env.event()
                yield self._wake
            duration_ps, done = self._inbox.popleft()
            yield self._env.timeout(duration_ps)
            self.busy_ps += duration_ps
            done.succeed()
