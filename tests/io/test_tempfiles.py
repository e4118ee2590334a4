"""Pipes are copied whole, once; stored lines come back by key; what has no end or no writer is refused."""

import fcntl
import os
import sqlite3
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_folder import invoke
from steelyard.core.errors import FileError, OutputError
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_cases
from steelyard.io.hashing import file_hash
from steelyard.io.lines import check_readable
from steelyard.io.tempfiles import StoredLine, copy_pipe, is_pipe, open_line_store

ROWS = "".join(f'{{"prompt": "q{n}{"x" * 300}", "chosen": "good {n}", "rejected": "bad {n}"}}\n' for n in range(400))
"""More than the 64 KiB that a pipe holds: a second opening would find the rest."""


def in_background(write):
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "rows.jsonl"
    os.mkfifo(path)
    return path


@pytest.fixture
def descriptor():
    """The path of a pipe that is open in this process, as a shell hands over ``<(command)``, and its other end."""
    reading, writing = os.pipe()
    yield Path(f"/dev/fd/{reading}"), writing
    os.close(reading)


def converted(source, out):
    result = invoke(["convert", str(source), str(out)])
    assert result.exit_code == 0, (result.output, result.exception)
    return [case.prompt.messages[0].content for case in read_cases(out)]


def test_every_row_of_a_named_pipe_arrives(fifo, tmp_path):
    writer = in_background(lambda: fifo.write_text(ROWS))
    assert [text[:4].rstrip("x") for text in converted(fifo, tmp_path / "a.jsonl")] == [f"q{n}" for n in range(400)]
    writer.join()


def test_every_row_of_a_process_substitution_arrives(descriptor, tmp_path):
    path, writing = descriptor

    def write():
        with os.fdopen(writing, "w") as file:
            for start in range(0, len(ROWS), 7000):
                file.write(ROWS[start : start + 7000])
                file.flush()

    writer = in_background(write)
    assert len(converted(path, tmp_path / "a.jsonl")) == 400
    writer.join()


def test_an_error_names_the_pipe_and_not_its_copy(descriptor, tmp_path):
    path, writing = descriptor
    os.write(writing, b'{"prompt": "a", "chosen": "b", "rejected": "c"}\n{"prompt"\n')
    os.close(writing)
    result = invoke(["convert", str(path), str(tmp_path / "a.jsonl")])
    assert f"{path}:2: the line is cut off" in str(result.exception)
    assert not (tmp_path / "a.jsonl").exists()


def test_the_file_of_a_bench_may_be_a_pipe(descriptor, tmp_path):
    path, writing = descriptor
    asked = '"prompt":{"id":"p","messages":[{"role":"user","content":"q"}]}'
    case = f'{{{asked},"responses":[{{"id":"a","text":"long"}},{{"id":"b","text":"x"}}],"ranking":[["a"],["b"]]}}\n'
    os.write(writing, case.encode())
    os.close(writing)
    words = ["evaluate", "--bench", f"cases={path}", "--model", "longer", "--out", str(tmp_path / "out")]
    result = invoke([*words, "--baselines", "none", "--set", "num_resamples=20"])
    assert result.exit_code == 0, (result.output, result.exception)


def test_a_pipe_without_a_writer_is_given_up_in_time(fifo, tmp_path):
    with pytest.raises(FileError, match="nobody has opened this pipe"):
        copy_pipe(fifo, tmp_path / "..", seconds_to_wait=0.3)


def test_a_writer_that_opens_late_is_waited_for(fifo, tmp_path):
    (tmp_path / "copy").mkdir()

    def write():
        time.sleep(0.2)
        fifo.write_bytes(b"whole")

    writer = in_background(write)
    assert copy_pipe(fifo, tmp_path / "copy", seconds_to_wait=300).read_bytes() == b"whole"
    writer.join()


def test_a_writer_may_pause_for_longer_than_its_opening_is_waited_for(fifo, tmp_path):
    (tmp_path / "copy").mkdir()
    # Open for reading and writing, a pipe opens at once and has its writer before it is read.
    pipe = os.open(fifo, os.O_RDWR)

    def write():
        for part in (b"first ", b"second"):
            time.sleep(0.2)
            os.write(pipe, part)
            while num_unread(pipe):
                time.sleep(0.01)
        os.close(pipe)

    writer = in_background(write)
    assert copy_pipe(fifo, tmp_path / "copy", seconds_to_wait=0).read_bytes() == b"first second"
    writer.join()


def num_unread(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_a_pipe_without_end_stops_when_the_disk_is_nearly_full(fifo, tmp_path):
    (tmp_path / "copy").mkdir()
    writer = in_background(lambda: fifo.write_text("x"))
    with pytest.raises(OutputError, match="more than the disk can take"):
        copy_pipe(fifo, tmp_path / "copy", bytes_left_free=2**62)
    writer.join()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_a_device_is_refused_wherever_a_file_is_read(device, tmp_path):
    assert not is_pipe(Path(device))
    for read in (check_readable, file_hash):
        with pytest.raises(FileError, match="this is a device"):
            read(Path(device))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").symlink_to(device)
    with pytest.raises(FileError, match=r"config\.json: this is a device"):
        file_hash(tmp_path / "model")


def test_a_pipe_inside_a_model_s_folder_is_refused_and_not_opened(fifo, tmp_path):
    with pytest.raises(FileError, match="this is a pipe"):
        file_hash(tmp_path)


READERS = [
    ["convert", "{}", "{out}.jsonl"], ["resolve", "{}"], ["split", "{}"], ["merge", "{}", "{}"], ["debias", "{}"],
    ["score", "{}", "--model", "longer"], ["judge", "{}", "--chat", "recorded"], ["inspect", "{}"],
    ["supervise", "{}", "--model", "longer"],
    ["evaluate", "--bench", "{}", "--model", "longer"],
    ["report", "{}"], ["compare", "{}", "{}"], ["leaderboard", "{}"],
    ["languages", "{}"], ["run", "{}"],
]  # fmt: skip


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_no_verb_reads_a_device_for_ever(words, tmp_path):
    out = tmp_path / "out"
    named = [word.replace("{out}", str(out)).replace("{}", "/dev/zero") for word in words]
    given = named if words[0] in ("convert", "inspect") else [*named, "--out", str(out)]
    result = invoke(given)
    assert result.exit_code != 0
    assert result.exception is not None
    assert "Error" in type(result.exception).__name__, (result.output, result.exception)
    assert not out.exists()


def test_what_is_no_file_is_not_replaced(fifo):
    with pytest.raises(OutputError, match="not a regular file, so it cannot be replaced"):
        write_text(fifo, "text")
    assert fifo.is_fifo()


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"\x00"]), st.integers(0, 9), st.binary(max_size=5))))
def test_lines_come_back_by_key_in_their_order(tmp_path_factory, kept):
    folder = tmp_path_factory.mktemp("spool")
    with open_line_store(folder) as store:
        for key, source, line in kept:
            store.add(key, source, line)
        store.index()
        for key in (b"a", b"b", b"\x00", b"absent"):
            assert store.lines(key) == [StoredLine(source, line) for own, source, line in kept if own == key]
    assert not list(folder.iterdir())


def test_what_a_kill_left_is_not_taken_up(tmp_path):
    (tmp_path / ".lines.sqlite.part").write_bytes(b"anything")
    with open_line_store(tmp_path) as store:
        store.add(b"a", 0, b"line")
        assert store.lines(b"a") == [StoredLine(0, b"line")]


def test_a_full_disk_is_said(tmp_path):
    with pytest.raises(OutputError, match=r"cannot be written \(database or disk is full\)"), open_line_store(tmp_path):
        raise sqlite3.OperationalError("database or disk is full")
    assert not list(tmp_path.iterdir())
