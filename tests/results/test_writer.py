"""Files of a run: complete or absent, byte for byte the same, and never over somebody else's files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.config.yaml import parse
from specsim.errors import ConfigError
from specsim.results.schema import PROMPTS, REQUESTS, STEPS
from specsim.results.writer import check_folder, config_yaml, summary_json, write
from tests.constant_cost import ClosedLoop

FILES = {"config.resolved.yaml", "summary.json", "requests.parquet", "prompts.parquet", "steps.parquet"}
RESULT = ClosedLoop().result()


def test_a_run_folder_holds_its_five_files(tmp_path: Path) -> None:
    write(RESULT, tmp_path / "a" / "run")
    assert {path.name for path in (tmp_path / "a" / "run").iterdir()} == FILES
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["run"]


def test_two_writes_of_one_run_are_equal_byte_for_byte(tmp_path: Path) -> None:
    write(ClosedLoop().result(), tmp_path / "first")
    write(ClosedLoop().result(), tmp_path / "second")
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_the_summary_file_is_the_summary(tmp_path: Path) -> None:
    write(RESULT, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8")) == RESULT.summary()


def test_undefined_numbers_are_null_in_json() -> None:
    text = summary_json(ClosedLoop(output_tokens=(1, 1), prompts=(0, 0)).result().summary())
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["baseline"]["mean_tpot_ms"] is None


@pytest.mark.parametrize(
    ("name", "columns"), [("requests", REQUESTS), ("prompts", PROMPTS), ("steps", STEPS)]
)
def test_parquet_columns_carry_unit_and_meaning(tmp_path: Path, name: str, columns: tuple) -> None:
    write(RESULT, tmp_path / "run")
    table = pq.read_table(tmp_path / "run" / f"{name}.parquet")
    assert table.column_names == [column.name for column in columns]
    for column in columns:
        about = table.schema.field(column.name).metadata
        assert about == {b"unit": column.unit.encode(), b"meaning": column.meaning.encode()}
    assert table.schema.metadata[b"schema_version"] == b"3"
    assert table.schema.metadata[b"seed"] == b"0"


def test_parquet_holds_the_tables(tmp_path: Path) -> None:
    write(RESULT, tmp_path / "run")
    read = pq.read_table(tmp_path / "run" / "steps.parquet").to_pandas()
    assert read.target_s.tolist() == RESULT.steps.target_s.tolist()
    assert read.arm.tolist() == RESULT.steps.arm.tolist()


def test_withheld_joules_are_null_in_parquet(tmp_path: Path) -> None:
    write(ClosedLoop().with_provenance(power_is_estimated=True).result(), tmp_path / "run")
    steps = pq.read_table(tmp_path / "run" / "steps.parquet")
    for name in ("draft_energy_j", "target_energy_j", "limit_j"):
        assert steps.column(name).null_count == steps.num_rows


def test_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    write(RESULT, tmp_path / "run")
    (tmp_path / "run" / "report.html").write_text("made from the earlier run")
    write(ClosedLoop().result(seed=5), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["seed"] == 5
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write(RESULT, tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES


@pytest.mark.parametrize("name", ["notes.txt", "steps.parquet", ".hidden"])
def test_a_folder_of_other_files_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match="not written, since it") as refusal:
        write(RESULT, tmp_path)
    assert "\n" not in str(refusal.value)
    assert refusal.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_run_folder_with_a_file_of_the_user_is_refused(tmp_path: Path) -> None:
    write(RESULT, tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds 'notes\.txt', which is no file of a run"):
        check_folder(tmp_path / "run")


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(ConfigError, match="not a folder"):
        write(RESULT, tmp_path / "run")
    with pytest.raises(ConfigError, match="cannot be written"):
        write(RESULT, tmp_path / "run" / "below")
    assert (tmp_path / "run").read_text() == "mine"


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(path))
    with pytest.raises(ConfigError, match="run: cannot be written: no permission to write into "):
        check_folder(tmp_path / "deeper" / "run")
    assert asked == [tmp_path.resolve()]


def test_links_in_a_circle_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(ConfigError, match=r"one: cannot be written: [^\n]+$"):
        write(RESULT, tmp_path / "one")


@pytest.mark.parametrize("text", ["{}", "[]", "not JSON"])
def test_a_file_that_only_has_the_name_of_a_summary_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"holds no summary\.json of a run"):
        write(RESULT, tmp_path)
    assert (tmp_path / "summary.json").read_text("utf-8") == text


def test_a_folder_named_like_a_file_of_a_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run" / "summary.json").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"'summary\.json', which is no file of a run"):
        write(RESULT, tmp_path / "run")
    assert (tmp_path / "run" / "summary.json").is_dir()


def test_a_failed_write_leaves_the_earlier_run_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(RESULT, tmp_path / "run")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ConfigError, match="run: cannot be written: No space left on device"):
        write(ClosedLoop().result(seed=5), tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["seed"] == 0


def test_a_run_set_aside_by_a_dead_process_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(RESULT, tmp_path / "run")
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    (tmp_path / "run").rename(tmp_path / f".run.specsim-old-{int(dead.stdout)}")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ConfigError):
        write(ClosedLoop().result(seed=5), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["seed"] == 0


def test_a_run_that_another_process_puts_there_meanwhile_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(RESULT, tmp_path / "run")
    write(ClosedLoop().result(seed=3), tmp_path / "other")
    rename = Path.rename

    def late(self: Path, target: Path) -> Path:
        if ".specsim-new-" in self.name and (tmp_path / "other").exists():
            rename(tmp_path / "other", tmp_path / "run")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    write(ClosedLoop().result(seed=5), tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["seed"] == 5


def test_what_a_live_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f".run.specsim-new-{os.getppid()}").mkdir()
    (tmp_path / ".run.specsim-new-notes").mkdir()
    write(RESULT, tmp_path / "run")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_kill_at_any_step_leaves_the_old_run_the_new_one_or_nothing(tmp_path: Path) -> None:
    program = subprocess.run(
        [sys.executable, "-m", "tests.results.crash_writer", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert program.returncode == 0, program.stderr
    deaths = [json.loads(line) for line in program.stdout.splitlines()]
    assert [death["died"] for death in deaths] == [True] * (len(deaths) - 1) + [False]
    assert len(deaths) > 10
    found = [death["found"] for death in deaths]
    assert found[0] == 0
    assert found[-1] == 1
    assert sorted(found, key=(0, None, 1).index) == found


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
)
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["name", "off", "1", "a b", "null", "12:30"]), plain, min_size=1))
def test_the_resolved_configuration_reads_back_as_it_was(scenario: dict) -> None:
    assert parse(config_yaml(scenario)).data == scenario


def test_results_import_neither_pandas_nor_scipy() -> None:
    check = "import sys, specsim.results.writer; assert not {'pandas', 'scipy', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, cwd=Path(__file__).parents[2])
