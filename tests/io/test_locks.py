"""One process at a time writes to a folder; what a killed one left is told from what a living one writes."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from many_processes import alone
from steelyard.core.config import Config
from steelyard.core.errors import FileError, OutputError
from steelyard.io.atomic import atomic_write, only_writer, part_folder, sweep_parts
from steelyard.io.run_folder import read_run, result_folder

HOLD = """
import sys
from pathlib import Path
from steelyard.core.config import Config
from steelyard.io.run_folder import result_folder
with result_folder(Path(sys.argv[1]), "stage", config=Config(), inputs={}):
    print("held", flush=True)
    sys.stdin.read()
"""
"""Holds the folder until it is killed, or the test process ends."""


def holder(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        env=alone(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_refused_with_the_process_and_a_kill_leaves_no_lock(tmp_path):
    out = tmp_path / "out"
    process = holder(out)
    try:
        with (
            pytest.raises(OutputError, match=rf"another run is writing here \(process {process.pid}\)"),
            result_folder(out, "stage", config=Config(), inputs={}, force=True),
        ):
            pytest.fail("two runs in one folder")
    finally:
        process.kill()
        process.communicate()
    with result_folder(out, "stage", config=Config(), inputs={}):
        pass
    assert sorted(item.name for item in out.iterdir()) == ["run.json"]
    assert read_run(out).stage == "stage"


def test_within_one_process_a_folder_has_one_writer_too(tmp_path):
    with (
        only_writer(tmp_path / "out"),
        pytest.raises(OutputError, match=f"process {os.getpid()}"),
        only_writer(tmp_path / "out"),
    ):
        pytest.fail("two writers")


def test_a_folder_that_nothing_was_written_into_goes_with_its_parents(tmp_path):
    with only_writer(tmp_path / "a" / "b" / "out"):
        assert (tmp_path / "a" / "b" / "out" / ".lock").is_file()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_is_a_link_is_not_written_through(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").write_text("text")
    (tmp_path / "out" / ".lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic"), only_writer(tmp_path / "out"):
        pytest.fail("the link was followed")
    assert (tmp_path / "mine").read_text() == "text"


def test_what_a_killed_process_was_writing_is_swept_and_what_a_living_one_writes_stays(tmp_path):
    target = tmp_path / "cases[1].jsonl"
    stale = tmp_path / ".cases[1].jsonl.abc.part"
    stale.write_text("half of it")
    other = tmp_path / ".cases1.jsonl.abc.part"
    other.write_text("another file's")
    with atomic_write(target) as file:
        file.write(b"whole")
        sweep_parts(target)
        assert not stale.exists()
    assert target.read_bytes() == b"whole"
    assert other.exists()


def write_file(target, number):
    with atomic_write(target) as file:
        file.write(b"%d" % number)
    return number


def fill_folder(target, number):
    with part_folder(target) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "number").write_text(f"{number}")
        return int((folder / "inner" / "number").read_text())


@pytest.mark.parametrize("write", [write_file, fill_folder])
def test_writers_and_sweepers_at_the_same_moment_leave_each_others_files(write, tmp_path):
    """A sweeper took the file or folder of a writer that had made it, and not yet locked it, for a leftover."""
    target = tmp_path / "target"

    def sweep_and_write(number):
        sweep_parts(target)
        return write(target, number)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(sweep_and_write, range(400))) == list(range(400))
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("content", ["", "{", '{"stage": 3}', "[" * 2000, "\udc80"], ids=range(5))
def test_a_broken_record_of_unfinished_work_is_told_and_force_begins_anew(content, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "started.json").write_text(content, errors="surrogateescape")
    with (
        pytest.raises(FileError, match=r"started\.json: not the record of an unfinished run"),
        result_folder(out, "stage", config=Config(), inputs={}),
    ):
        pytest.fail("the folder was claimed")
    with result_folder(out, "stage", config=Config(), inputs={}, force=True):
        pass
    assert read_run(out).stage == "stage"


WORK = """
import os, sys, time
from steelyard.plugins.engines.local import LocalEngine
def main():
    for pid in LocalEngine(2).map(eval, ["(__import__('os').getpid(), __import__('time').sleep(0.2))[0]"] * 1000):
        print(pid, flush=True)
if __name__ == "__main__":
    main()
"""


def test_workers_end_with_a_parent_that_was_killed(tmp_path):
    (tmp_path / "work.py").write_text(WORK)
    process = subprocess.Popen(
        [sys.executable, "work.py"], cwd=tmp_path, env=alone(), stdout=subprocess.PIPE, text=True
    )
    workers = {int(process.stdout.readline()) for _ in range(4)}
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 300
    while time.monotonic() < end and any(map(is_alive, workers)):
        time.sleep(0.05)
    assert not [pid for pid in workers if is_alive(pid)]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
