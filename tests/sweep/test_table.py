"""The table of a sweep: order, columns, and the files that hold it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.engine.simulate import simulate
from specsim.errors import ConfigError, DomainError
from specsim.scenario import load_scenario
from specsim.sweep import SweepTable
from specsim.sweep.files import check_sweep_folder, finished, read_sweep, write_sweep
from specsim.sweep.order import merged
from specsim.sweep.outcome import Outcome, figures
from specsim.sweep.plan import Case
from specsim.sweep.sweep import SweepJob
from specsim.sweep.table import Rows
from tests.sweep.small import RATES, SMALL

JOB = SweepJob.of(SMALL, ["K=0..1", RATES])
ABOUT = {"axes": ["K"], "fingerprint": "f", "num_retryable": 0, "traces": {}, "caveats": []}


@given(st.permutations([Case(point, replication) for point in range(6) for replication in range(2)]))
def test_rows_come_in_the_order_of_points_whatever_the_order_of_outcomes(cases: list[Case]) -> None:
    rows = Rows()
    for case in cases:
        extra = {"baseline.odd": 1.0} if case.point % 2 else {"baseline.even": 2.0, "baseline.last": 3.0}
        figures = {"speedup.tpot": case.point + case.replication / 10, **extra}
        rows.add(case, Outcome("k", "", True, 0.1, figures, ()))
    table = rows.table(JOB.plan, 5, {})
    assert table.columns["point"] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert table.columns["replication"] == [0, 1] * 6
    assert table.columns["seed"] == [5, 6] * 6
    assert table.column("speedup.tpot") == [point + r / 10 for point in range(6) for r in (0, 1)]
    assert table.columns["speculative_config.num_speculative_tokens"] == [0] * 6 + [1] * 6
    assert list(table.columns)[-4:] == ["speedup.tpot", "baseline.odd", "baseline.even", "baseline.last"]


def test_a_case_that_comes_out_twice_is_a_bug() -> None:
    rows = Rows()
    rows.add(Case(0, 0), Outcome("k", "", True, 0.1, {}, ()))
    with pytest.raises(AssertionError, match="twice"):
        rows.add(Case(0, 0), Outcome("k", "", True, 0.1, {}, ()))


def test_a_failed_run_is_a_row_with_its_error_and_no_figures() -> None:
    rows = Rows()
    rows.add(Case(0, 0), Outcome("k", "", True, 0.1, {"speedup.tpot": 1.5}, ()))
    rows.add(Case(1, 0), Outcome.failed("", "no good", is_lasting=True))
    table = rows.table(JOB.plan, 0, {})
    assert table.columns["status"] == ["ok", "failed"]
    assert table.columns["error"] == [None, "no good"]
    assert table.columns["speedup.tpot"] == [1.5, None]
    assert table.num_failed == 1


def test_a_varied_seed_is_the_seed_of_its_rows() -> None:
    rows = Rows()
    for case in (Case(0, 0), Case(1, 1)):
        rows.add(case, Outcome("k", "", True, 0.1, {}, ()))
    assert rows.table(SweepJob.of(SMALL, ["seed=10,20"]).plan, 3, {}).columns["seed"][:2] == [10, 21]


@given(st.lists(st.lists(st.sampled_from("abcdefg"), unique=True).map(sorted).map(tuple), max_size=5))
def test_merged_names_are_all_there_once_in_the_order_of_the_first_list(lists: list[tuple[str, ...]]) -> None:
    found = merged(lists)
    assert sorted(found) == sorted({name for names in lists for name in names})
    for names in lists[:1]:
        assert [name for name in found if name in names] == list(names)


def test_a_short_name_is_speculation_first_then_the_baseline() -> None:
    columns = {"baseline.x": [1.0], "speculation.x": [2.0], "baseline.y": [3.0]}
    table = SweepTable((), columns, {})  # type: ignore[arg-type]
    assert (table.column("x"), table.column("y"), table.column("baseline.x")) == ([2.0], [3.0], [1.0])
    with pytest.raises(DomainError, match="no metric 'z'"):
        table.column("z")


def _table(about: dict | None = None) -> SweepTable:
    columns = {
        "point": [0, 1],
        "replication": [0, 0],
        "seed": [0, 0],
        "key": ["a", "b"],
        "status": ["ok", "ok"],
        "error": [None, None],
        "K": [1, 2],
        "x": [1.5, None],
        "y": [None, None],
        "z": [1, 2.5],
    }
    return SweepTable(("K",), columns, ABOUT if about is None else about)  # type: ignore[arg-type]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    write_sweep(_table(), tmp_path / "sweep")
    read = read_sweep(tmp_path / "sweep")
    assert read == _table()
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == ["sweep.json", "sweep.parquet"]
    schema = pq.read_schema(tmp_path / "sweep" / "sweep.parquet")
    assert [str(schema.field(name).type) for name in ("K", "x", "y", "z")] == [
        "int64",
        "double",
        "double",
        "double",
    ]


def test_two_writes_are_equal_byte_for_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_sweep(_table(), tmp_path / name)
    for file in ("sweep.json", "sweep.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_table_and_a_description_of_two_sweeps_are_refused(tmp_path: Path) -> None:
    write_sweep(_table(), tmp_path)
    about = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps({**about, "table_sha256": "0"}))
    with pytest.raises(ConfigError, match="are of two sweeps"):
        read_sweep(tmp_path)
    assert finished(tmp_path, "f") is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"axes": ["nosuch"]}, "the table has no column 'nosuch'"),
        ({"axes": "K"}, "axes are no list of keys"),
        ({"axes": [["K"]]}, "axes are no list of keys"),
        ({"base": 5}, "base is no scenario"),
    ],
)
def test_a_description_that_does_not_go_with_its_table_is_refused(
    tmp_path: Path, change: dict[str, object], why: str
) -> None:
    write_sweep(_table(), tmp_path)
    about = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps(about | change))
    with pytest.raises(ConfigError, match=f"is not a sweep that this version can read: {why}$"):
        read_sweep(tmp_path)


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_what_is_no_sweep_is_one_line(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "sweep.json").write_text(content)
        (tmp_path / "sweep.parquet").write_text("")
    with pytest.raises(ConfigError, match="sweep") as caught:
        read_sweep(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "is_finished"),
    [
        ({}, True),
        ({"fingerprint": "other"}, False),
        ({"num_retryable": 1}, False),
        ({"traces": {"/no/such/file": "0"}}, False),
    ],
)
def test_a_sweep_is_finished_only_if_nothing_it_rests_on_changed(
    tmp_path: Path, change: dict, is_finished: bool
) -> None:
    write_sweep(_table({**ABOUT, **change}), tmp_path)
    assert (finished(tmp_path, "f") is not None) is is_finished


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    check_sweep_folder(tmp_path / "new")
    (tmp_path / "points").mkdir()
    check_sweep_folder(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"'notes\.txt', which is no file of a sweep"):
        check_sweep_folder(tmp_path)
    with pytest.raises(ConfigError, match="not a folder"):
        check_sweep_folder(tmp_path / "notes.txt")


def test_a_mean_of_an_arm_has_the_ends_of_its_interval_beside_it() -> None:
    summary = simulate(load_scenario(SMALL)).summary()
    found = dict(figures(summary))
    for arm in ("baseline", "speculation"):
        low, high = (found[f"{arm}.mean_tpot_ms.{end}"] for end in ("ci_low", "ci_high"))
        assert [low, high] == (summary["intervals"][arm] or {})["mean_tpot_ms"]  # type: ignore[literal-required]
    assert found["speculation.usd_per_mtok.ci_low"] is None
    assert "speculation.p99_tpot_ms.ci_low" not in found


def test_a_sweep_written_without_caveats_is_put_together_anew(tmp_path: Path) -> None:
    write_sweep(_table({key: value for key, value in ABOUT.items() if key != "caveats"}), tmp_path)
    assert finished(tmp_path, "f") is None
