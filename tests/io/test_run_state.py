"""What a reader of a run's folder learns while the run works, and after it was stopped, refused or killed."""

import shlex
import subprocess
import sys
import time
from types import SimpleNamespace

import msgspec
import pytest

from many_processes import alone
from steelyard.cli.verb import typed_command
from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.io import atomic, run_state
from steelyard.io.atomic import is_held, lock, only_writer
from steelyard.io.progress import bar
from steelyard.io.run_folder import result_folder
from steelyard.io.run_state import STATE_FILE, read_state, started_by

WORK = """
import sys, time
from pathlib import Path
from steelyard.core.config import Config
from steelyard.io.progress import bar
from steelyard.io.run_folder import result_folder
with result_folder(Path(sys.argv[1]), "stage", config=Config(), inputs={}), bar("counting", 4) as shown:
    shown.advance(1, figures={"replies": 1})
    time.sleep(1.1)
    shown.advance(2, figures={"replies": 3})
    print("held", flush=True)
    sys.stdin.read()
"""


def stage(folder):
    return result_folder(folder, "stage", config=Config(), inputs={})


@pytest.fixture
def at_once(monkeypatch):
    for name in ("_SECONDS_BETWEEN_WRITES", "_SECONDS_BEFORE_NEXT_TASK"):
        monkeypatch.setattr(run_state, name, 0.0)


@pytest.mark.usefixtures("at_once")
def test_the_tasks_of_a_run_can_be_followed_and_nothing_stays(tmp_path):
    out = tmp_path / "运行"
    with stage(out):
        assert (read_state(out).state, read_state(out).tasks) == ("running", ())
        with bar("first", 2) as shown:
            shown.advance()
            with bar("a part of the first"):
                assert [task.title for task in read_state(out).tasks] == ["first"]
            shown.advance(figures={"replies": 2})
        with bar("second") as shown:
            shown.advance(3, note="loss 0.5", seconds_left=8)
            first, second = read_state(out).tasks
    assert (first.done, first.total, first.figures, first.seconds_left) == (2, 2, {"replies": 2}, None)
    assert (second.done, second.total, second.note, second.seconds_left) == (3, None, "loss 0.5", 8)
    assert [path.name for path in out.iterdir()] == ["run.json"]
    assert read_state(out) is None


def test_the_state_is_written_at_most_once_a_second(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(run_state, "time", SimpleNamespace(monotonic=lambda: clock[0], time=time.time))
    with stage(tmp_path / "out"):
        clock[0] += 5
        with bar("counting", 100) as shown:
            seen = []
            for _ in range(40):
                clock[0] += 0.1
                shown.advance()
                seen.append(read_state(tmp_path / "out").tasks[-1].done)
    # Four seconds: the state of the beginning, and three or four later ones.
    assert 4 <= len(set(seen)) <= 5


def test_the_time_left_follows_from_the_pace(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(run_state, "time", SimpleNamespace(monotonic=lambda: clock[0], time=time.time))
    with stage(tmp_path / "out"), bar("counting", 10) as shown:
        clock[0] += 6
        shown.advance(2)
        task = read_state(tmp_path / "out").tasks[-1]
    assert (task.seconds, task.seconds_left) == (6, 24)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("error", "state", "problem"),
    [(ValueError("no space"), "failed", "no space"), (KeyboardInterrupt(), "interrupted", "")],
)
def test_a_failure_is_stated_and_a_stop_is_none(tmp_path, error, state, problem):
    out = tmp_path / "out"
    with pytest.raises(type(error)):
        fail(out, error)
    assert (read_state(out).state, read_state(out).problem) == (state, problem)
    with stage(out):
        assert read_state(out).state == "running"
    assert read_state(out) is None


def fail(out, error):
    with stage(out):
        (out / "half").write_text("")
        raise error


def test_a_refused_run_that_wrote_nothing_leaves_nothing(tmp_path):
    with pytest.raises(ConfigError), stage(tmp_path / "out"):
        raise ConfigError("no")
    assert not (tmp_path / "out").exists()


def test_a_killed_run_is_interrupted(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, str(out)],
        env=alone(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "held\n"
        running = read_state(out)
        # A run elsewhere is known by its lock alone: no process here has its number.
        elsewhere = msgspec.structs.replace(running, host="elsewhere", updated=0.0)
        (out / STATE_FILE).write_bytes(msgspec.json.encode(elsewhere))
        assert read_state(out).state == "running"
    finally:
        process.kill()
        process.communicate()
    assert (running.state, running.process, running.command) == ("running", process.pid, None)
    assert [(task.title, task.done, task.total, task.figures) for task in running.tasks] == [
        ("counting", 3, 4, {"replies": 3})
    ]
    assert read_state(out).state == "interrupted"


def test_where_the_disk_has_no_locks_a_fresh_state_of_a_living_process_runs(tmp_path, monkeypatch):
    with stage(tmp_path / "out"):
        monkeypatch.setattr(run_state, "is_held", lambda path: False)
        assert read_state(tmp_path / "out").state == "running"
        monkeypatch.setattr(run_state, "_is_gone", lambda process: True)
        assert read_state(tmp_path / "out").state == "interrupted"


@pytest.mark.parametrize("num_looks", [1, 100])
def test_a_reader_that_looks_at_the_lock_does_not_keep_a_run_from_its_folder(tmp_path, monkeypatch, num_looks):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".lock").write_text("1\n")
    looking = (folder / ".lock").open()
    assert lock(looking.fileno(), is_shared=True)
    # Another reader sees no holder: both locks are shared.
    assert not is_held(folder / ".lock")
    looks = iter(range(1, 1000))
    # The reader is held up at the worst moment.
    monkeypatch.setattr(
        atomic, "time", SimpleNamespace(sleep=lambda seconds: next(looks) == num_looks and looking.close())
    )
    with only_writer(folder):
        assert is_held(folder / ".lock")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "running"}', "\xff", "[" * 100_000])
def test_a_broken_state_is_none(tmp_path, text):
    (tmp_path / STATE_FILE).write_text(text, encoding="latin-1")
    assert read_state(tmp_path) is None


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (
            ["/x/bin/steelyard", "judge", "我的 数据.jsonl", "--force", "--out", "a"],
            "/x/bin/steelyard judge '我的 数据.jsonl' --out a",
        ),
        (["/x/steelyard/__main__.py", "train"], f"{shlex.quote(sys.executable)} -m steelyard train"),
        (["notebook.py"], None),
    ],
)
def test_the_command_continues_the_run(tmp_path, monkeypatch, words, command):
    monkeypatch.setattr(sys, "argv", words)
    with started_by(typed_command()), stage(tmp_path / "out"):
        assert read_state(tmp_path / "out").command == command


def test_every_part_of_a_torchrun_is_started_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/steelyard/__main__.py", "train", "a b"])
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with started_by(typed_command()), stage(tmp_path / "out"):
        assert read_state(tmp_path / "out").command == "torchrun --nproc-per-node=2 -m steelyard train 'a b'"


@pytest.mark.usefixtures("at_once")
def test_a_state_that_cannot_be_written_stops_no_run(tmp_path):
    with stage(tmp_path / "out"), bar("counting") as shown, pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_state.tempfile, "mkstemp", _full)
        shown.advance(7)
        assert [task.done for task in read_state(tmp_path / "out").tasks] == [0]
    assert (tmp_path / "out" / "run.json").is_file()


@pytest.mark.usefixtures("at_once")
def test_a_state_that_is_written_in_part_leaves_no_file(tmp_path):
    with stage(tmp_path / "out"), bar("counting") as shown, pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_state.Path, "chmod", _full)
        for _ in range(3):
            shown.advance()
        assert not list((tmp_path / "out").glob("*.part"))


@pytest.mark.usefixtures("at_once")
def test_names_and_figures_that_a_state_cannot_hold_do_not_hide_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/bin/steelyard", "judge", "caf\udce9.jsonl"])

    def broken():
        with stage(tmp_path / "out"), bar("reading caf\udce9.jsonl") as shown:
            (tmp_path / "out" / "kept").touch()
            shown.advance(figures={"loss": float("nan"), "replies": 1.0})
            state = read_state(tmp_path / "out")
            assert (state.state, state.command) == ("running", None)
            assert (state.tasks[0].title, state.tasks[0].figures) == ("reading caf?.jsonl", {"replies": 1.0})
            raise ConfigError("broken: caf\udce9")

    with pytest.raises(ConfigError):
        broken()
    state = read_state(tmp_path / "out")
    assert (state.state, state.problem) == ("failed", "broken: caf?")
    assert not list((tmp_path / "out").glob("*.part"))


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be deleted there")
def test_a_working_folder_that_was_deleted_stops_no_run(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with stage(tmp_path / "out"):
        assert read_state(tmp_path / "out").state == "running"


def _full(*arguments, **named):
    raise OSError(28, "No space left on device")
