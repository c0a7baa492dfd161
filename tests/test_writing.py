"""Whole files: links are followed, pipes written into, and nothing is left behind where writing fails."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from specsim.errors import ConfigError
from specsim.writing import write_faults, write_whole


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    write_whole(tmp_path / "a", "nëw")
    assert (tmp_path / "a").read_bytes() == "nëw".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_link_points_to_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, "x")
    reader.join()
    assert read == [b"x"]
    assert pipe.is_fifo()


def test_a_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be written: Is a directory$"), write_faults(tmp_path):
        write_whole(tmp_path, "x")
