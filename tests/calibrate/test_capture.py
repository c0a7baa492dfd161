"""Capturing: the design, the order, the journal and the counters, with a bench that only counts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate import read_trace
from calibrate.capture import CaptureSettings, capture, idle_record
from calibrate.design import Cell, design, grid, shuffled
from calibrate.energy_meter import RaplMeter, find_meter
from calibrate.journal import Journal
from calibrate.machine import cpu_name, machine_facts
from specsim.errors import ConfigError, DomainError
from specsim.hardware import ModelSpec, load_model
from specsim.recording.step_time import StepTime
from specsim.streams import RandomStreams

CELLS = [Cell("decode", 1, 1, 128), Cell("verify", 8, 2, 128)]
FACTS = {"device": "a100", "date": "2026-11-30", "energy": "none"}
SETTINGS = CaptureSettings(num_warmups=2, num_repeats=3, num_steps=2, energy_window_s=0.05)


class CountingBench:
    """A model whose steps take 10 ms a position, and which may be killed."""

    dtype = "bfloat16"
    model = "llama-3.1-8b"
    gpu: str | None = "A100"

    def __init__(self, *, dies_after: int | None = None) -> None:
        self.visited: list[tuple[str, int, int, int]] = []
        self.num_steps = 0
        self._dies_after = dies_after

    @property
    def spec(self) -> ModelSpec:
        return load_model(self.model)

    def prepare(self, phase: str, num_positions: int, num_sequences: int, context_tokens: int) -> None:
        if self._dies_after is not None and len(self.visited) >= self._dies_after:
            raise KeyboardInterrupt
        self.visited.append((phase, num_positions, num_sequences, context_tokens))

    def step(self) -> StepTime:
        self.num_steps += 1
        return StepTime(0.01 * self.visited[-1][1], 0.02, 0.01)


class SteadyMeter:
    """A counter that has counted one more joule at every reading."""

    name = "steady"

    def __init__(self) -> None:
        self.num_readings = 0

    def read_j(self) -> float:
        self.num_readings += 1
        return float(self.num_readings)

    def state(self) -> dict[str, float]:
        return {"sm_mhz": 1410.0}


def test_capture_is_read_back_as_it_was_measured(tmp_path: Path) -> None:
    bench = CountingBench()
    trace = read_trace(capture([bench], CELLS, SETTINGS, tmp_path / "out.csv", facts=FACTS))
    assert trace.steps is not None
    assert len(trace.steps) == 6
    assert trace.num_dropped == 0
    assert set(trace.steps.gpu_s.tolist()) == {0.01, 0.08}
    assert trace.header["num_warmups"] == "2"
    assert bench.num_steps == 6 * (2 + 2)


def test_wall_clock_beside_cpu_time_is_kept_from_fits(tmp_path: Path) -> None:
    bench = CountingBench()
    bench.gpu = None
    steps = read_trace(capture([bench], CELLS, SETTINGS, tmp_path / "out.csv", facts=FACTS)).steps
    assert steps is not None
    assert np.isnan(steps.wall_s).all()
    assert np.isfinite(steps.gpu_s).all()


def test_capture_that_was_killed_goes_on_and_measures_nothing_twice(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    killed = CountingBench(dies_after=4)
    with pytest.raises(KeyboardInterrupt):
        capture([killed], CELLS, SETTINGS, output, facts=FACTS)
    assert not output.exists()
    rest = CountingBench()
    capture([rest], CELLS, SETTINGS, output, facts=FACTS | {"date": "2026-12-01"})
    assert Counter(killed.visited + rest.visited) == Counter(
        {(cell.phase, cell.num_positions, cell.num_sequences, cell.context_tokens): 3 for cell in CELLS}
    )
    assert not list(tmp_path.glob("*.partial"))


def test_journal_of_another_capture_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    with pytest.raises(KeyboardInterrupt):
        capture([CountingBench(dies_after=1)], CELLS, SETTINGS, output, facts=FACTS)
    message = r"journal of another capture \(device was a100\); remove out\.csv\.partial"
    with pytest.raises(ConfigError, match=message):
        capture([CountingBench()], CELLS, SETTINGS, output, facts=FACTS | {"device": "h100"})


def test_journal_of_another_shape_under_the_same_name_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    with pytest.raises(KeyboardInterrupt):
        capture([CountingBench(dies_after=1)], CELLS, SETTINGS, output, facts=FACTS)
    other = CountingBench()
    other.model = "llama-3.2-1b"
    with pytest.raises(ConfigError, match=r"another capture \(models was llama-3.1-8b\)"):
        capture([other], CELLS, SETTINGS, output, facts=FACTS)
    with pytest.raises(ConfigError, match=r"another capture \(cells was decode-1x1-128 verify-8x2-128\)"):
        capture([CountingBench()], CELLS[:1] * 2, SETTINGS, output, facts=FACTS)


def test_model_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    bench = CountingBench()
    with pytest.raises(ConfigError, match=r"'llama-3.1-8b' is named twice"):
        capture([bench, CountingBench()], CELLS, SETTINGS, tmp_path / "out.csv", facts=FACTS)
    assert not bench.visited


def test_capture_into_no_folder_is_refused_before_measuring(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        capture([CountingBench()], CELLS, SETTINGS, tmp_path / "none" / "out.csv", facts=FACTS)


def test_capture_overwrites_nothing(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("precious")
    with pytest.raises(ConfigError, match="is there already"):
        capture([CountingBench()], CELLS, SETTINGS, output, facts=FACTS)
    assert output.read_text() == "precious"


def test_capture_into_an_unknown_form_is_refused_before_measuring(tmp_path: Path) -> None:
    bench = CountingBench()
    with pytest.raises(ConfigError, match="a trace is written as"):
        capture([bench], CELLS, SETTINGS, tmp_path / "out.xlsx", facts=FACTS)
    assert not bench.visited


def test_energy_is_counted_at_the_first_visit_over_a_window_of_whole_steps(tmp_path: Path) -> None:
    meter = SteadyMeter()
    idle = idle_record("idle", 0.01, meter)
    path = capture(
        [CountingBench()], CELLS, SETTINGS, tmp_path / "out.jsonl", facts=FACTS, meter=meter, idle=idle
    )
    trace = read_trace(path)
    assert trace.steps is not None
    is_measured = trace.steps.energy_j > 0
    assert trace.steps.phase[is_measured].tolist().count("idle") == 1
    assert trace.steps.phase[is_measured].tolist().count("idle_context") == 1
    assert int((is_measured & trace.steps.is_step).sum()) == len(CELLS)
    # Steps of 20 ms: three fill a window of 50 ms.
    assert trace.steps.window_s[is_measured & trace.steps.is_step].tolist() == pytest.approx([0.06, 0.06])


def test_cut_off_line_of_a_journal_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, {"a": "b"})
    journal.append({"cell_id": "x", "rep": 0})
    with path.open("a") as stream:
        stream.write('{"cell_id": "y", "re')
    resumed = Journal(path, {"a": "b"})
    resumed.append({"cell_id": "z", "rep": 0})
    lines = path.read_text().splitlines()
    assert [json.loads(line).get("cell_id") for line in lines] == [None, "x", "z"]


@given(st.integers(0, 2**32), st.integers(0, 30))
def test_order_is_a_permutation_that_the_seed_and_repeat_fix(seed: int, repeat: int) -> None:
    cells = design()
    first = shuffled(cells, RandomStreams(seed), repeat=repeat)
    assert sorted(first) == cells
    assert first == shuffled(cells, RandomStreams(seed), repeat=repeat)


def test_repeats_have_orders_of_their_own() -> None:
    cells = design()
    orders = {tuple(shuffled(cells, RandomStreams(0), repeat=repeat)) for repeat in range(5)}
    assert len(orders) == 5


def test_design_holds_every_position_at_batch_one_and_every_context() -> None:
    cells = design(max_cached_tokens=10**9)
    assert {cell.num_positions for cell in cells if cell.num_sequences == 1} >= {1, 2, 3, 4, 5, 8, 9, 256}
    assert {cell.context_tokens for cell in cells} >= {0, 128, 1024, 4096, 16384}
    assert {cell.num_sequences for cell in cells} == {1, 4, 16, 64}
    assert len({cell.cell_id for cell in cells}) == len(cells)


@given(st.integers(130, 10**6), st.integers(1, 2000))
def test_design_keeps_its_limits(max_cached_tokens: int, max_positions: int) -> None:
    for cell in design(max_cached_tokens=max_cached_tokens, max_positions=max_positions):
        assert cell.num_cached_tokens <= max_cached_tokens
        assert cell.num_positions <= max_positions
        assert cell.num_positions % cell.num_sequences == 0


def test_limits_that_leave_no_cell_are_refused() -> None:
    with pytest.raises(DomainError, match="no cell has at most"):
        design(max_cached_tokens=1)


def test_grid_is_the_full_product() -> None:
    assert len(grid([1, 2, 4], [64, 256])) == 6


def _counter(folder: Path, value: int, *, largest: int = 1000) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "energy_uj").write_text(f"{value}\n")
    (folder / "max_energy_range_uj").write_text(f"{largest}\n")
    return folder


def test_counter_that_wraps_goes_on_counting(tmp_path: Path) -> None:
    package = _counter(tmp_path / "intel-rapl:0", 900)
    meter = RaplMeter((package,))
    _counter(package, 100)
    assert meter.read_j() == pytest.approx(200e-6)
    _counter(package, 150)
    assert meter.read_j() == pytest.approx(250e-6)


def test_packages_are_added_and_their_parts_are_not(tmp_path: Path) -> None:
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        _counter(tmp_path / name, 0)
    meter, said = find_meter("cpu", rapl=tmp_path)
    assert meter is not None
    assert said == "RAPL"
    for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        _counter(tmp_path / name, 10)
    assert meter.read_j() == pytest.approx(20e-6)


def test_machine_without_counters_says_that_energy_is_not_measured(tmp_path: Path) -> None:
    meter, said = find_meter("cpu", rapl=tmp_path)
    assert meter is None
    assert said.startswith("energy is not measured")


def test_processor_is_named_as_linux_names_it(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor : 0\nmodel name\t: AMD EPYC 9B14\n")
    assert cpu_name(path) == "AMD EPYC 9B14"
    assert cpu_name(tmp_path / "absent") != ""


def test_header_says_that_several_threads_have_no_timer_of_their_own() -> None:
    assert machine_facts(None, threads=1)["device_timer"] == "CPU time of one thread"
    assert machine_facts(None, threads=4)["device_timer"].startswith("none")
    assert machine_facts("NVIDIA A100", threads=1)["device_timer"] == "CUDA events"
