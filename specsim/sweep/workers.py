"""Who simulates: this process, processes of this machine, or a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from specsim.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_TIMEOUT_S = 10.0
"""How long a cluster may take to answer, s."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of one kind, started when there is something to do and again if they break."""

    num_workers: int
    start: Callable[[], Executor]
    share_disk: bool
    """They write to the same disk as this process."""


class InProcess(Executor):
    """Runs each call at once, in this process."""

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run a call and return its finished future."""
        future: Future[R] = Future()
        future.set_result(function(*args, **kwargs))
        return future


def in_process() -> Workers:
    """Return this process as the only worker."""
    return Workers(1, InProcess, share_disk=True)


def local_workers(num_workers: int | None = None) -> Workers:
    """Return processes of this machine: one for each core by default.

    They are spawned, not forked: a fork would copy the locks of threads that it does not copy.
    """
    count = num_workers or _num_cores()
    if count == 1:
        return in_process()

    def start() -> Executor:
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(count, mp_context=spawn, initializer=_begin_worker)

    return Workers(count, start, share_disk=True)


def _num_cores() -> int:
    """Return the cores that this process may use, where the system tells; else all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it: a pool's workers would wait for a dead one for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def cluster_workers(address: str) -> Iterator[Workers]:
    """Workers of the dask.distributed cluster whose scheduler is at an address such as ``tcp://host:8786``.

    They must have specsim installed, in the same version, and see the same traces under the same paths.

    Raises
    ------
    ConfigError
        If dask is not installed, the scheduler does not answer, or it has no worker.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError("--cluster needs dask: install specsim-llm[dask]") from None
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"no dask scheduler answers at '{address}': {reason}") from None
    with client:
        num_threads = sum(client.nthreads().values())
        if num_threads == 0:
            raise ConfigError(f"the dask scheduler at '{address}' has no worker")
        # `pure`: a group lost with its worker is run again, never taken from an earlier sweep.
        yield Workers(num_threads, lambda: client.get_executor(pure=False), share_disk=False)
