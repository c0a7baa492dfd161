"""The project's own trace files: three forms, every fault named by its row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrate import Defaults, read_cells, read_trace, write_trace
from calibrate.doubts import describe_rows
from specsim.errors import ConfigError

_HEADER = {"device": "h100-sxm", "model": "llama-3.1-8b", "source": "made up"}
_ROWS = pd.DataFrame(
    {
        "positions": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4],
        "batch": 1,
        "ctx": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128],
        "t_gpu_us": [5000.0 + 10 * n for n in range(12)],
    }
)


def _write(folder: Path, table: pd.DataFrame, name: str = "trace.csv") -> Path:
    path = folder / name
    write_trace(path, table, header=_HEADER)
    return path


def _text(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["trace.csv", "trace.jsonl", "trace.parquet"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    trace = read_trace(_write(tmp_path, _ROWS, name))
    assert trace.steps is not None
    assert trace.steps.time_s.tolist() == pytest.approx((_ROWS["t_gpu_us"] * 1e-6).tolist())
    assert trace.steps.num_positions.tolist() == _ROWS["positions"].tolist()
    assert trace.steps.models[0].name == "llama-3.1-8b"
    assert trace.header["source"] == "made up"
    assert trace.warnings == ()


def test_units_of_every_column(tmp_path: Path) -> None:
    row = pd.DataFrame(
        {
            "positions": [4],
            "batch": [2],
            "ctx": [100],
            "t_wall_us": [8000.0],
            "energy_mj": [3e6],
            "window_s": [5.0],
            "sm_mhz": [1700],
            "sm_lock_mhz": [1800],
            "mem_mhz": [2619],
            "power_cap_w": [700],
            "phase": ["verify"],
            "dtype": ["bf16"],
            "tp": [2],
        }
    )
    steps = read_trace(_write(tmp_path, row)).steps
    assert steps is not None
    assert steps.time_s[0] == pytest.approx(8e-3)
    assert steps.power_w[0] == pytest.approx(600.0)
    assert steps.sm_clock_hz[0] == pytest.approx(1.7e9)
    assert steps.sm_lock_hz[0] == pytest.approx(1.8e9)
    assert steps.memory_clock_hz[0] == pytest.approx(2.619e9)
    assert steps.power_cap_w[0] == 700
    assert steps.dtype[0] == "bfloat16"
    assert steps.tensor_parallel_size[0] == 2


def test_rounds_stand_beside_steps(tmp_path: Path) -> None:
    rounds = pd.DataFrame({"k": [0, 3], "acceptance_length": [1.0, 2.5], "tokens_per_s": [180.0, 350.0]})
    trace = read_trace(_write(tmp_path, pd.concat([_ROWS, rounds])))
    assert trace.steps is not None
    assert trace.rounds is not None
    assert len(trace.steps) == 12
    assert trace.rounds.round_s.tolist() == pytest.approx([1 / 180, 2.5 / 350])


def test_an_idle_phase_has_power_only(tmp_path: Path) -> None:
    idle = pd.DataFrame({"phase": ["idle"], "energy_mj": [350e3], "window_s": [5.0]})
    steps = read_trace(_write(tmp_path, pd.concat([_ROWS.assign(phase="verify"), idle]))).steps
    assert steps is not None
    assert steps.power_w[~steps.is_step].tolist() == pytest.approx([70.0])


def test_bad_rows_are_counted_and_named(tmp_path: Path) -> None:
    table = pd.concat([_ROWS] * 4, ignore_index=True).astype({"t_gpu_us": object})
    table.loc[5, "t_gpu_us"], table.loc[6, "t_gpu_us"], table.loc[20, "t_gpu_us"] = 0, -3, "nan"
    trace = read_trace(_write(tmp_path, table))
    assert trace.num_dropped == 3
    assert (trace.num_rows, len(trace.steps or ())) == (48, 45)
    said = [str(warning) for warning in trace.warnings]
    assert "t_gpu_us: is zero or negative; dropped 2 rows (10–11)" in said[0]
    assert "t_gpu_us: is not a finite number; dropped 1 row (25)" in said[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t_gpu_us": None}, "t_gpu_us: is missing, and so is t_wall_us"),
        ({"ctx": "drop"}, "ctx: missing: no such column"),
        ({"t_gpu_us": 0.001}, "would mean reading weights at"),
        ({"phase": "train"}, "phase: is not one of prefill"),
        ({"dtype": "int3"}, "dtype: is not one of float32"),
        ({"excludes": "kernels"}, "excludes: is not made of"),
        ({"batch": 64, "positions": 8}, "positions: is less than batch"),
        ({"positions": 1.5}, "positions: is not a whole number"),
        ({"energy_mj": 5.0}, "energy_mj: has no window_s"),
        ({"model": "llama-9"}, "no model 'llama-9'"),
        ({"model": "{bad"}, "is not JSON"),
    ],
)
def test_a_wrong_file_is_refused_in_words(tmp_path: Path, change: dict[str, object], message: str) -> None:
    table = _ROWS.copy()
    for name, value in change.items():
        table = table.drop(columns=name) if value == "drop" else table.assign(**{name: value})
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        read_trace(_write(tmp_path, table))


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "trace.csv", "is empty"),
        ("a,b\n1,2\n", "trace.csv", "no trace importer recognises it"),
        ("positions,batch,ctx,t_gpu_us\n", "trace.csv", "holds no rows"),
        ('{"positions": 1, "t_gpu_us": 2}\n{"positions": 1, "t_g', "trace.jsonl", ":2: is not JSON.*cut off"),
        ("[1, 2, t_gpu_us]\n", "trace.jsonl", "is not JSON"),
        ("not parquet", "trace.parquet", "is not a Parquet file"),
        (
            "positions,batch,ctx,t_gpu_us\n1,1,0,5000\n1,1,0,5000,9,9\n",
            "trace.csv",
            "has 6 values; the columns are 4",
        ),
        (
            "# batch: many\npositions,batch,ctx,t_gpu_us\n1,1,0,5000\n",
            "trace.csv",
            "batch: 'many' in the header is not a number",
        ),
        (
            "# batch: many\npositions,ctx,t_gpu_us\n1,0,5000\n",
            "trace.csv",
            "batch: 'many' in the header is not a number",
        ),
    ],
)
def test_a_broken_file_is_refused_in_words(tmp_path: Path, text: str, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_trace(_text(tmp_path, text, name), defaults=Defaults(device="h100-sxm", model="llama-3.1-8b"))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(ConfigError, match="is a directory"):
        read_trace(tmp_path)


def test_an_unknown_column_is_told_with_the_nearest(tmp_path: Path) -> None:
    path = _write(tmp_path, _ROWS)
    path.write_text(path.read_text().replace("batch", "batc", 1), encoding="utf-8")
    (warning,) = read_trace(path).warnings
    assert "batc: unknown column, not used (did you mean 'batch'?)" in str(warning)


def test_times_in_nanoseconds_are_suspected(tmp_path: Path) -> None:
    slow = _ROWS.assign(t_gpu_us=_ROWS["t_gpu_us"] * 1e5)
    (warning,) = read_trace(_write(tmp_path, slow)).warnings
    assert "are the times in µs, not in ns?" in str(warning)


def test_acceptance_beyond_the_draft_is_refused(tmp_path: Path) -> None:
    rounds = pd.DataFrame({"k": [3], "acceptance_length": [4.5], "tokens_per_s": [350.0]})
    with pytest.raises(ConfigError, match=r"acceptance_length: is more than k \+ 1"):
        read_trace(_write(tmp_path, rounds))


def test_a_row_without_k_among_rounds_is_a_round_without_k(tmp_path: Path) -> None:
    ks = [*range(1, 12), None]
    rounds = pd.DataFrame({"k": ks, "acceptance_length": 1.5, "tokens_per_s": 350.0})
    trace = read_trace(_write(tmp_path, rounds))
    assert (trace.steps, trace.num_dropped) == (None, 1)
    assert "k: is missing; dropped 1 row" in str(trace.warnings[0])
    with pytest.raises(ConfigError, match="k: is missing"):
        read_cells(_write(tmp_path, rounds), defaults=Defaults())


def test_idle_windows_may_stand_beside_rounds(tmp_path: Path) -> None:
    rounds = pd.DataFrame({"k": [1, 2], "acceptance_length": 1.5, "tokens_per_s": 350.0})
    idle = pd.DataFrame({"phase": ["idle"], "energy_mj": [500.0], "window_s": [5.0]})
    trace = read_trace(_write(tmp_path, pd.concat([rounds, idle], ignore_index=True)))
    assert trace.rounds is not None
    assert trace.steps is not None
    assert (len(trace.rounds), len(trace.steps)) == (2, 1)


def test_cells_to_predict_need_no_times(tmp_path: Path) -> None:
    cells = read_cells(_write(tmp_path, _ROWS.drop(columns="t_gpu_us")), defaults=Defaults())
    assert cells.steps is not None
    assert cells.rounds is None
    assert len(cells.steps) == 12
    assert np.isnan(cells.steps.time_s).all()


def test_rounds_to_predict_need_no_rates_and_may_stand_beside_steps(tmp_path: Path) -> None:
    rounds = pd.DataFrame({"k": [3, 5], "power_cap_w": [400, 500], "acceptance_length": [None, 2.0]})
    table = pd.concat([_ROWS.drop(columns="t_gpu_us"), rounds], ignore_index=True)
    cells = read_cells(_write(tmp_path, table), defaults=Defaults())
    assert cells.steps is not None
    assert cells.rounds is not None
    assert len(cells.steps) == 12
    assert cells.rounds.num_speculative_tokens.tolist() == [3, 5]
    assert cells.rounds.acceptance_length.tolist() == pytest.approx([np.nan, 2.0], nan_ok=True)


def test_a_file_of_idle_windows_holds_nothing_to_predict(tmp_path: Path) -> None:
    idle = pd.DataFrame({"phase": ["idle"], "energy_mj": [500.0], "window_s": [5.0]})
    with pytest.raises(ConfigError, match="holds neither steps nor rounds"):
        read_cells(_write(tmp_path, idle), defaults=Defaults())


def test_a_round_to_predict_that_is_wrong_is_refused(tmp_path: Path) -> None:
    rounds = pd.DataFrame({"k": [3], "acceptance_length": [4.5]})
    with pytest.raises(ConfigError, match=r"acceptance_length: is more than k \+ 1"):
        read_cells(_write(tmp_path, rounds), defaults=Defaults())


def test_a_cell_to_predict_that_is_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="positions: is zero or negative"):
        read_cells(_write(tmp_path, pd.concat([_ROWS] * 2).assign(positions=0)), defaults=Defaults())


def test_a_column_of_no_trace_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'speed' is not a column of a trace"):
        _write(tmp_path, _ROWS.assign(speed=1))


def test_long_lists_of_rows_are_cut() -> None:
    assert describe_rows(list(range(1, 40, 2))).endswith("13, 15, …)")


def test_rounds_of_a_target_without_a_preset_are_told_to_leave_it_out(tmp_path: Path) -> None:
    path = tmp_path / "rounds.csv"
    path.write_text("# device: rtx-5090\nmodel,k,acceptance_length,tokens_per_s\nmy-27b,1,1.8,100\n")
    with pytest.raises(ConfigError, match=r"no model 'my-27b'.*; rounds may leave model out"):
        read_trace(path)


def test_every_reason_is_told_where_too_many_rows_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "rounds.csv"
    rows = ["1,0.5,100,1", "1,1.5,0,1", "1,2.5,100,1", "1,1.5,100,0", "-1,1.5,100,1"]
    path.write_text("# device: x\nk,acceptance_length,tokens_per_s,batch\n" + "\n".join(rows) + "\n")
    with pytest.raises(ConfigError) as caught:
        read_trace(path)
    told = [fault.path for fault in caught.value.faults[1:]]
    assert told == ["acceptance_length", "tokens_per_s", "acceptance_length", "batch", "k"]
