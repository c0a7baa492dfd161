"""An accelerator serves in order, one piece of work at a time, and counts its busy time."""

from __future__ import annotations

from collections.abc import Generator

import simpy

from specsim.engine.accelerator import Accelerator


def test_work_is_served_in_order_and_idle_time_is_not_busy() -> None:
    env = simpy.Environment()
    accelerator = Accelerator(env)
    ends: list[tuple[str, int]] = []

    def client(name: str, wait_ps: int, duration_ps: int) -> Generator[simpy.Event, None, None]:
        yield env.timeout(wait_ps)
        yield accelerator.submit(duration_ps)
        ends.append((name, env.now))

    env.process(client("first", 5, 10))
    env.process(client("second", 6, 3))
    env.process(client("late", 100, 1))
    env.run()
    assert ends == [("first", 15), ("second", 18), ("late", 101)]
    assert accelerator.busy_ps == 14
    assert type(env.now) is int
