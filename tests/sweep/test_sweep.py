"""Whole sweeps: equal to single runs, resumed after any death, the same on a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from specsim.engine.simulate import simulate
from specsim.errors import ConfigError, DomainError
from specsim.scenario import load_scenario
from specsim.sweep import Progress, Repeats, SweepJob, SweepTable, cluster_workers, in_process
from specsim.sweep.workers import Workers
from tests.sweep.small import RATES, SMALL, Refusing

ROOT = Path(__file__).parents[2]
AXES = ["K=0..3", "distributions.acceptance_rate=0.1..0.9:lin:10"]
"""40 points of a few milliseconds, of which ten are the same baseline in all but their key."""
LONGER = ["workload.output_tokens=300"]
FILES = ("sweep.parquet", "sweep.json")


def _run(job: SweepJob, folder: Path | None = None, workers: Workers | None = None) -> tuple[SweepTable, int]:
    """Run a job; return its table and how many runs were simulated."""
    seen: list[Progress] = []
    table = job.run(workers=workers or in_process(), folder=folder, progress=seen.append)
    return table, seen[-1].num_simulated if seen else 0


def test_a_metric_that_no_run_has_is_refused_and_what_was_simulated_is_kept(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="no metric 'tpott'"):
        _run(SweepJob.of(SMALL, ["K=1,3"], metric="tpott"), tmp_path)
    assert not any((tmp_path / name).exists() for name in FILES)
    _, num_simulated = _run(SweepJob.of(SMALL, ["K=1,3"], metric="request_throughput"), tmp_path)
    assert num_simulated == 0


def test_a_row_is_what_a_single_run_gives() -> None:
    table, _ = _run(SweepJob.of(SMALL, ["K=1,3", RATES], repeats=Repeats(first=2)))
    overrides = ["speculative_config.num_speculative_tokens=3", "distributions.acceptance_rate=0.5"]
    result = simulate(load_scenario(SMALL, overrides=overrides), seed=1)
    row = table.columns["key"].index(result.key)
    assert [table.columns[name][row] for name in ("point", "replication", "seed")] == [4, 1, 1]
    summary = result.summary()
    assert summary["speedup"] is not None
    assert summary["speculation"] is not None
    assert table.column("speedup.tpot")[row] == summary["speedup"]["tpot"]["mean"]
    assert table.column("p99_tpot_ms")[row] == summary["speculation"]["p99_tpot_ms"]
    assert table.columns["verdict.pays"][row] == summary["verdict"]["pays"]


def test_a_finished_sweep_is_not_simulated_again(tmp_path: Path) -> None:
    job = SweepJob.of(SMALL, ["K=0..3", RATES])
    first, _ = _run(job, tmp_path)
    before = [(tmp_path / name).read_bytes() for name in FILES]
    again, num_simulated = _run(job, tmp_path, Workers(1, Refusing, share_disk=True))
    assert again == first
    assert num_simulated == 0
    assert [(tmp_path / name).read_bytes() for name in FILES] == before


def test_a_wider_sweep_simulates_only_what_is_new(tmp_path: Path) -> None:
    _run(SweepJob.of(SMALL, ["K=0..2"]), tmp_path)
    table, num_simulated = _run(SweepJob.of(SMALL, ["K=0..4"]), tmp_path)
    assert len(table) == 5
    assert num_simulated == 2


def test_a_changed_trace_is_simulated_again(tmp_path: Path) -> None:
    trace = tmp_path / "t.npz"
    shipped = ROOT / "scenarios" / "traces" / "smollm2_lookup_t0.7.npz"
    if not shipped.exists():
        pytest.skip("no shipped trace")
    trace.write_bytes(shipped.read_bytes())
    job = SweepJob.of(
        "quickstart", ["K=1"], settings=[f"distributions.path={trace}", "workload.num_prompts=2"]
    )
    first, _ = _run(job, tmp_path / "sweep")
    assert _run(job, tmp_path / "sweep")[1] == 0
    # Bytes after the end of the archive change the file, not what is read from it.
    trace.write_bytes(shipped.read_bytes() + b"\0")
    try:
        again, _ = _run(job, tmp_path / "sweep")
    finally:
        trace.unlink()
    assert again.columns["key"] != first.columns["key"]


def test_points_that_fail_are_rows_and_are_not_tried_again(tmp_path: Path) -> None:
    job = SweepJob.of("chat_8b", ["hardware.target=t4,h100-sxm"], settings=["workload.num_prompts=2"])
    table, _ = _run(job, tmp_path)
    assert table.columns["status"] == ["failed", "ok"]
    assert "lacks" in str(table.columns["error"][0])
    assert _run(job, tmp_path)[1] == 0


def test_whole_runs_are_kept_if_asked(tmp_path: Path) -> None:
    job = SweepJob.of(SMALL, ["K=1,2"])
    _run(job, tmp_path)
    table = job.run(workers=in_process(), folder=tmp_path, keep_runs=True)
    kept = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert kept == sorted(str(key) for key in table.columns["key"])
    assert all((tmp_path / "runs" / key / "requests.parquet").exists() for key in kept)


def test_nothing_is_written_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _run(SweepJob.of(SMALL, ["K=1"]))
    assert list(tmp_path.iterdir()) == []


def test_a_dry_look_knows_what_is_done_and_how_long_a_run_takes(tmp_path: Path) -> None:
    job = SweepJob.of(SMALL, ["K=0..4"])
    assert job.num_known(tmp_path) == 0
    _run(SweepJob.of(SMALL, ["K=0..2"]), tmp_path)
    assert job.num_known(tmp_path) == 3
    time_s = job.time_one(10.0)
    assert time_s is not None
    assert time_s > 0.0


@contextmanager
def _sweeping(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the sweep of `AXES` in a process of its own, on two workers."""
    (folder / "small.yaml").write_text(SMALL)
    words = [word for axis in AXES for word in ("--vary", axis)] + [
        "--set",
        LONGER[0],
        "-j",
        "2",
        "-o",
        "out",
    ]
    main = f"main(['sweep', 'small.yaml', *{words!r}])"
    code = f"from specsim.cli.app import main\nif __name__ == '__main__': {main}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait(is_so: Callable[[], bool], *, limit_s: float = 120.0) -> None:
    end_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.005)


def _num_stored(folder: Path) -> int:
    return len(list((folder / "out" / "points").glob("*.json")))


def _is_running(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill_and_resume(folder: Path, num_stored: int) -> None:
    """Kill a sweep that has stored so many outcomes, run it again, compare with an undisturbed one."""
    folder.mkdir()
    with _sweeping(folder) as process:
        _wait(lambda: _num_stored(folder) >= num_stored or process.poll() is not None)
        children_file = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        children = children_file.read_text().split() if children_file.exists() else []
        process.send_signal(signal.SIGKILL)
        process.wait()
    # Workers end with their parent; a pool's own would wait for it for ever.
    _wait(lambda: not any(_is_running(child) for child in children))
    known = _num_stored(folder)
    assert known >= num_stored
    job = SweepJob.of(folder / "small.yaml", AXES, settings=LONGER)
    table, num_simulated = _run(job, folder / "out")
    # A finished sweep is read back, and then nobody is told of progress.
    assert num_simulated in (len(table) - known, 0)
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "points",
        "sweep.json",
        "sweep.parquet",
    ]
    assert not list((folder / "out" / "points").glob(".*"))
    _run(job, folder / "undisturbed")
    for name in FILES:
        assert (folder / "out" / name).read_bytes() == (folder / "undisturbed" / name).read_bytes()


def test_a_killed_sweep_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    _kill_and_resume(tmp_path / "killed", 10)


@pytest.mark.verification
@pytest.mark.parametrize("trial", range(20))
def test_a_sweep_killed_at_any_moment_resumes_to_the_same_bytes(tmp_path: Path, trial: int) -> None:
    generator = np.random.Generator(np.random.PCG64DXSM(trial))
    _kill_and_resume(tmp_path / "killed", int(generator.integers(0, 41)))


@contextmanager
def _process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_cluster_gives_the_same_table_though_a_worker_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    contact = tmp_path / "scheduler.json"
    scheduler = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(contact))
    worker = ("--scheduler-file", str(contact), "--no-nanny", "--nthreads", "1", "--no-dashboard")
    job = SweepJob.of(SMALL, AXES, settings=LONGER)
    expected, _ = _run(job)
    with _process("distributed.cli.dask_scheduler", *scheduler):
        _wait(contact.exists)
        with (
            _process("distributed.cli.dask_worker", *worker) as first,
            _process("distributed.cli.dask_worker", *worker),
        ):
            address = json.loads(contact.read_text())["address"]
            assert address.startswith("tcp://127.0.0.1:")
            _wait_for_workers(address, 2)
            seen: list[Progress] = []

            def kill_midway(progress: Progress) -> None:
                seen.append(progress)
                if progress.num_done == 12:
                    first.kill()

            with cluster_workers(address) as workers:
                assert workers.num_workers == 2
                table = job.run(workers=workers, folder=tmp_path / "out", progress=kill_midway)
            assert first.poll() is not None
    assert table == expected
    assert [progress.num_done for progress in seen] == list(range(1, 41))
    assert _num_stored(tmp_path) == len({str(key) for key in table.columns["key"]})


def _wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("specsim.sweep.workers.CONNECT_TIMEOUT_S", 0.5)
    with (
        pytest.raises(ConfigError, match=r"no dask scheduler answers at 'tcp://127\.0\.0\.1:9'") as caught,
        cluster_workers("tcp://127.0.0.1:9"),
    ):
        pass
    assert "\n" not in str(caught.value)
