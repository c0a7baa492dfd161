"""Outcomes on disk: whole or absent, and only those that would come out the same again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import ConfigError
from specsim.results.reading import Caveat
from specsim.sweep.outcome import Outcome
from specsim.sweep.store import Store
from specsim.writing import is_alive

KEY = "0" * 64
FIGURES = st.dictionaries(
    st.text(max_size=8),
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False),
)


@given(FIGURES, st.text(max_size=20), st.floats(0, 1e6))
def test_what_is_read_is_what_was_put(
    tmp_path_factory: pytest.TempPathFactory, figures: dict, error: str, time_s: float
) -> None:
    store = Store(tmp_path_factory.mktemp("store") / "new")
    caveats = (Caveat("Recorded on {}.", ("a pair",)), Caveat("Rough.", is_of_prompts=True))
    outcome = Outcome(KEY, error, True, time_s, figures, caveats)
    store.put(outcome)
    assert store.get(KEY) == outcome
    assert [path.name for path in store.folder.iterdir()] == [f"{KEY}.json"]


def test_an_unknown_key_has_no_outcome(tmp_path: Path) -> None:
    assert Store(tmp_path / "nowhere").get(KEY) is None


def test_a_failure_that_a_rerun_may_mend_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(Outcome.failed(KEY, "worker died", is_lasting=False))
    assert store.get(KEY) is None
    store.put(Outcome.failed(KEY, "does not fit", is_lasting=True))
    assert store.get(KEY) is not None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": "other"}', '{"nosuch": 1}'])
def test_a_damaged_file_counts_as_absent(tmp_path: Path, content: str) -> None:
    (tmp_path / f"{KEY}.json").write_text(content)
    assert Store(tmp_path).get(KEY) is None


def test_what_a_dead_process_was_writing_is_removed(tmp_path: Path) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    (tmp_path / f".{KEY}.{int(dead.stdout)}").write_text("{")
    (tmp_path / f".{KEY}.{os.getpid()}").write_text("{")
    Store(tmp_path).clean()
    assert [path.name for path in tmp_path.iterdir()] == [f".{KEY}.{os.getpid()}"]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        Store(tmp_path / "file").put(Outcome(KEY, "", True, 0.0, {}, ()))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_that_died_and_was_not_waited_for_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_alive(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process.pid)
