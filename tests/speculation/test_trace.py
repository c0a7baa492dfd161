"""The trace file: what goes in comes out, and what is broken is one clear line."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from specsim.errors import ConfigError
from specsim.speculation import array_file
from specsim.speculation.trace import Trace, TraceHeader
from tests.strategies import headers, random_trace


@pytest.mark.parametrize("with_scalars", [True, False])
def test_a_saved_trace_loads_equal_up_to_the_stated_rounding(tmp_path: Path, with_scalars: bool) -> None:
    trace = random_trace(1, [5, 9, 1], with_scalars=with_scalars)
    trace.save(tmp_path / "a.npz")
    loaded = Trace.load(tmp_path / "a.npz")
    assert loaded.header == trace.header
    for field in fields(Trace)[1:]:
        before, after = getattr(trace, field.name), getattr(loaded, field.name)
        if before is None:
            assert after is None
        elif field.name == "overlap":
            np.testing.assert_allclose(after, before, atol=8.2e-5)
        elif field.name == "draft_entropy_nats":
            np.testing.assert_allclose(after, before, atol=1 / 128)
        elif before.dtype == np.float32:
            np.testing.assert_allclose(after, before, rtol=1e-3)
        else:
            np.testing.assert_array_equal(after, before)


def test_saving_is_deterministic_and_a_loaded_trace_saves_to_the_same_bytes(tmp_path: Path) -> None:
    random_trace(2, [30, 20]).save(tmp_path / "a.npz")
    random_trace(2, [30, 20]).save(tmp_path / "b.npz")
    Trace.load(tmp_path / "a.npz").save(tmp_path / "c.npz")
    first = (tmp_path / "a.npz").read_bytes()
    assert (tmp_path / "b.npz").read_bytes() == first
    assert (tmp_path / "c.npz").read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz", "c.npz"]


def test_numpy_reads_the_file_without_this_package(tmp_path: Path) -> None:
    random_trace(3, [4]).save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert TraceHeader.model_validate_json(arrays["header"].tobytes()) == headers()


def test_a_rare_token_keeps_its_probability(tmp_path: Path) -> None:
    trace = random_trace(4, [3])
    assert trace.q_token is not None
    assert trace.draft_argmax is not None
    trace.p_token[1], trace.q_token[1] = 1e-9, 2e-9
    trace.draft_argmax[1] = (trace.token[1] + 1) % 64
    trace.save(tmp_path / "a.npz")
    assert Trace.load(tmp_path / "a.npz").p_token[1] == pytest.approx(1e-9, rel=1e-3)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("p_token", 0.0, "p_token: 0 at 2"),
        ("p_token", 1e-38, "p_token: 1e-38 at 2"),
        ("p_token", 1.5, "p_token: 1 values are not probabilities"),
        ("p_token", -0.1, "p_token: 1 values are not probabilities"),
        ("q_token", np.nan, "q_token: 1 values are not probabilities"),
        ("overlap", np.inf, "overlap: 1 values are not probabilities"),
        ("draft_entropy_nats", np.nan, "draft_entropy_nats: 1 values are not finite"),
        ("token", 64, "token: 1 values are not token ids from 0 to 63"),
        ("token", -1, "token: 1 values are not token ids"),
        ("overlap", 0.0, "overlap: below min"),
        ("draft_top_probability", 0.0, "q_token: above draft_top_probability"),
    ],
)
def test_a_broken_value_is_refused(column: str, value: float, message: str) -> None:
    trace = random_trace(5, [4, 4])
    trace.p_token[2] = 0.4
    trace.q_token[2] = 0.3  # type: ignore[index]
    trace.overlap[2] = 0.5  # type: ignore[index]
    trace.draft_top_probability[2] = 0.5  # type: ignore[index]
    trace.draft_argmax[2] = (trace.token[2] + 1) % 64  # type: ignore[index]
    trace.check()
    getattr(trace, column)[2] = value
    with pytest.raises(ConfigError, match=message):
        trace.check("file.npz")


@pytest.mark.parametrize("offsets", [[0, 5, 3, 8], [1, 4, 8], [0, 4, 4, 8], [0], [[0, 8]], [0.0, 8.0]])
def test_broken_offsets_are_refused(offsets: list[float]) -> None:
    trace = random_trace(6, [4, 4])
    trace.offsets = np.array(offsets)
    with pytest.raises(ConfigError, match="offsets"):
        trace.check()


def test_a_column_of_another_length_is_refused() -> None:
    trace = random_trace(6, [4, 4])
    trace.token = trace.token[:-1]
    with pytest.raises(ConfigError, match=r"token: shape \(7,\)"):
        trace.check()


def test_all_faults_are_told_at_once() -> None:
    trace = random_trace(7, [4])
    trace.token[0], trace.p_token[0] = -5, 7
    with pytest.raises(ConfigError) as caught:
        trace.check("x.npz")
    assert [fault.file for fault in caught.value.faults] == ["x.npz", "x.npz"]


def test_a_group_is_recorded_whole_or_not_at_all() -> None:
    trace = random_trace(8, [4])
    trace.overlap = None
    with pytest.raises(ConfigError, match="overlap: missing, while scalars are recorded"):
        trace.check()


def test_a_trace_that_says_nothing_of_the_draft_is_refused() -> None:
    trace = random_trace(8, [4], with_scalars=False)
    trace.proposal_token = trace.p_at_proposal = None
    with pytest.raises(ConfigError, match="nothing is recorded of the draft"):
        trace.check()


def test_a_proposal_below_a_missing_one_is_refused() -> None:
    trace = random_trace(9, [4], with_scalars=False)
    trace.proposal_token[0] = [-1, 3, -1, -1]  # type: ignore[index]
    with pytest.raises(ConfigError, match="proposal_token: a proposal below a missing one"):
        trace.check()


def test_an_unknown_ending_is_refused() -> None:
    with pytest.raises(ConfigError, match="ended_by: 'bored' is not one of eos"):
        random_trace(9, [4], ended_by="bored").check()


def _line(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Trace.load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert len(message) < 400
    return message


def _npz(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_what_is_not_a_trace_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("not an archive")
    (tmp_path / "empty.npz").write_bytes(b"")
    assert "not an npz file" in _line(tmp_path / "text.npz")
    assert "not an npz file" in _line(tmp_path / "empty.npz")
    assert "no such file" in _line(tmp_path / "missing.npz")
    assert "not a file" in _line(tmp_path)
    assert "not a file" in _line(Path("/dev/zero"))


def test_every_truncation_and_every_flipped_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    random_trace(10, [6]).save(tmp_path / "a.npz")
    whole = (tmp_path / "a.npz").read_bytes()
    broken = tmp_path / "b.npz"
    refused = 0
    for cut in range(0, len(whole), 97):
        broken.write_bytes(whole[:cut])
        assert "\n" not in _line(broken)
    for at in range(0, len(whole), 31):
        broken.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            Trace.load(broken)
        except ConfigError:
            refused += 1
    assert refused > 0.5 * len(whole) / 31


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    _npz(tmp_path / "a.npz", {"token.npy": stream.getvalue()})
    assert "not a plain array" in _line(tmp_path / "a.npz")


def test_an_array_that_claims_more_than_it_holds_is_refused_without_allocating(tmp_path: Path) -> None:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**14,)}
    np.lib.format.write_array_header_1_0(stream, header)
    _npz(tmp_path / "a.npz", {"token.npy": stream.getvalue() + b"12345678"})
    assert "holds 8 bytes" in _line(tmp_path / "a.npz")


def test_a_compression_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_file, "MAX_ARRAY_BYTES", 2**20)
    _npz(tmp_path / "a.npz", {f"{i}.npy": b"\0" * 2**18 for i in range(5)})
    assert "more than the limit" in _line(tmp_path / "a.npz")


def test_a_small_file_of_many_bytes_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_file, "SMALL_BYTES", 2**16)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("token.npy", b"\0" * 2**20)
    assert re.search(
        r"1048576 bytes of arrays, more than the limit of \d+ for a file", _line(tmp_path / "a.npz")
    )


def test_a_file_past_the_limit_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.npz").open("wb") as file:
        file.truncate(array_file.MAX_FILE_BYTES + 1)
    assert "more than the limit" in _line(tmp_path / "a.npz")


def test_missing_and_unknown_arrays_are_named(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.zeros(3))
    _npz(tmp_path / "a.npz", {"surprise.npy": stream.getvalue()})
    with pytest.raises(ConfigError) as caught:
        Trace.load(tmp_path / "a.npz")
    messages = [fault.message for fault in caught.value.faults]
    assert "unknown array 'surprise'" in messages
    assert "no array 'token'" in messages


@pytest.mark.parametrize("layout", [b"2", b"4"])
def test_a_header_of_another_layout_is_refused(tmp_path: Path, layout: bytes) -> None:
    random_trace(11, [4]).save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as arrays:
        kept = dict(arrays)
    kept["header"] = np.frombuffer(
        kept["header"].tobytes().replace(b'"schema": 3', b'"schema": ' + layout), dtype=np.uint8
    )
    np.savez(tmp_path / "b.npz", **kept)
    assert "header: schema" in _line(tmp_path / "b.npz")


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        random_trace(12, [4]).save(tmp_path / "missing" / "a.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        random_trace(12, [4]).save(tmp_path / "folder.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npz"]


def test_unions_and_tails_are_stored_beside_the_scalars(tmp_path: Path) -> None:
    trace = random_trace(13, [4, 3])
    trace.union_ids = np.tile(np.array([5, 9, -1], dtype=np.int32), (7, 1))
    trace.log_p = np.tile(np.array([-1, -2, -np.inf], dtype=np.float32), (7, 1))
    trace.log_q = np.tile(np.array([-2, -1, -np.inf], dtype=np.float32), (7, 1))
    trace.tail_p = trace.tail_q = trace.tail_overlap = np.full(7, 0.25, dtype=np.float32)
    trace.tail_token = np.tile(np.array([3, -1], dtype=np.int32), (7, 1))
    trace.tail_top_probability = np.full((7, 2), 0.5, dtype=np.float32)
    trace.tail_entropy_nats = np.full((7, 2), 1.5, dtype=np.float32)
    trace.save(tmp_path / "a.npz")
    loaded = Trace.load(tmp_path / "a.npz")
    for name in ("union_ids", "tail_token", "tail_entropy_nats", "log_p", "log_q"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(trace, name))
    for name in ("tail_overlap", "tail_top_probability"):
        np.testing.assert_allclose(getattr(loaded, name), getattr(trace, name), rtol=1e-3)


def test_logarithms_above_zero_and_tables_of_different_depths_are_refused() -> None:
    trace = random_trace(13, [4, 3])
    trace.tail_token = np.full((7, 2), -1, dtype=np.int32)
    trace.tail_top_probability = np.full((7, 3), 0.5, dtype=np.float32)
    trace.tail_entropy_nats = np.full((7, 2), 1.5, dtype=np.float32)
    with pytest.raises(ConfigError, match="tails: tables of different depths"):
        trace.check()
    trace.log_p = np.full((7, 3), 0.5, dtype=np.float32)
    with pytest.raises(ConfigError, match="log_p: 21 values are not logarithms"):
        trace.check()
