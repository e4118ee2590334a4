"""The list of runs of a folder: their states, what changes, and what is never followed."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from many_processes import alone
from report_runs import all_runs
from steelyard.core.config import Config
from steelyard.io.atomic import only_writer
from steelyard.io.run_folder import STARTED_FILE, result_folder
from steelyard.viewing import runs as module
from steelyard.viewing.runs import RunList

HOLD = """
import sys
from pathlib import Path
from steelyard.io.run_folder import result_folder
with result_folder(Path(sys.argv[1]), "score", config={"model": "models/小模型"}, inputs={}):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Search the folder at every question."""
    monkeypatch.setattr(module, "_MIN_SECONDS", -1.0)
    monkeypatch.setattr(module, "_PAUSE", -1.0)


def finished(folder, stage="convert", **more):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"stage": stage, "config": {}, **more}))
    return folder


def listed(runs):
    return {run.place: run for run in runs.changes(-1).runs}


def states(runs):
    return {place: run.state for place, run in listed(runs).items()}


def fail(folder):
    with result_folder(folder, "train", config=Config(), inputs={}) as result:
        result.path("half").write_text("")
        raise ValueError("too large")


def test_runs_of_any_depth_and_state_are_listed(tmp_path):
    finished(tmp_path / "a")
    finished(tmp_path / "实验" / "تجربة" / "ניסוי run", counts={"num_in": 7, "num_used": 5})
    finished(tmp_path / "a" / "inner")
    for name, file, text in (
        ("broken", "run.json", "{"),
        ("old", "started.json", '{"stage": "judge", "config": {}, "inputs": {}}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(text)
    with pytest.raises(ValueError, match="too large"):
        fail(tmp_path / "failed")
    runs = RunList(tmp_path)
    assert states(runs) == {
        "a": "finished", "a/inner": "finished", "实验/تجربة/ניסוי run": "finished", "broken": "unreadable",
        "old": "interrupted", "failed": "failed",
    }  # fmt: skip
    found = listed(runs)
    assert (found["实验/تجربة/ניסוי run"].name, found["实验/تجربة/ניסוי run"].parent) == ("ניסוי run", "实验/تجربة")
    assert found["failed"].problem == "too large"
    assert found["old"].stage == "judge"
    assert "run.json" in found["broken"].problem
    assert len({run.id for run in found.values()}) == 6


def test_a_run_is_followed_from_its_start_to_a_kill_and_to_its_end(tmp_path):
    out = tmp_path / "out"
    runs = RunList(tmp_path)
    assert states(runs) == {}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)],
        env=alone(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "held\n"
        assert states(runs) == {"out": "running"}
        assert (listed(runs)["out"].stage, listed(runs)["out"].headline.model) == ("score", "小模型")
        (out / ".running.json").unlink()
        assert states(runs) == {"out": "running"}, "the lock alone says so"
    finally:
        process.kill()
        process.communicate()
    assert states(runs) == {"out": "interrupted"}
    with result_folder(out, "score", config={"model": "models/小模型"}, inputs={}):
        assert states(runs) == {"out": "running"}
    assert states(runs) == {"out": "finished"}


def test_only_what_changed_is_reported(tmp_path):
    finished(tmp_path / "a")
    record = finished(tmp_path / "b") / "run.json"
    runs = RunList(tmp_path)
    first = runs.changes(-1)
    assert {run.place for run in first.runs} == {"a", "b"}
    assert runs.changes(first.version) == (first.version, (), ())
    (tmp_path / "a" / "run.json").write_text(json.dumps({"stage": "merge", "config": {}}))
    kept = record.rename(tmp_path / "kept")
    finished(tmp_path / "c")
    second = runs.changes(first.version)
    gone = next(run.id for run in first.runs if run.place == "b")
    assert ({run.place: run.stage for run in second.runs}, second.gone) == ({"a": "merge", "c": "convert"}, (gone,))
    kept.rename(record)
    third = runs.changes(second.version)
    assert ({run.place for run in third.runs}, third.gone) == ({"b"}, ())


def test_records_are_read_again_only_when_they_change(tmp_path, monkeypatch):
    for number in range(5):
        finished(tmp_path / f"r{number}")
    read = []
    headline_of = module.headline_of
    monkeypatch.setattr(module, "headline_of", lambda overview: read.append(overview.stage) or headline_of(overview))
    runs = RunList(tmp_path)
    for _ in range(3):
        runs.changes(-1)
    assert len(read) == 5


def test_questions_in_quick_succession_search_once(tmp_path, monkeypatch):
    searched = []
    places = module._places
    monkeypatch.setattr(module, "_places", lambda root: searched.append(root) or places(root))
    clock = [50.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(module, "_MIN_SECONDS", 1.0)
    runs = RunList(tmp_path)
    for _ in range(10):
        runs.changes(-1)
    assert len(searched) == 1
    clock[0] += 1.1
    runs.changes(-1)
    assert len(searched) == 2


def test_links_and_hidden_folders_are_not_followed(tmp_path):
    outside = finished(tmp_path / "outside" / "run")
    root = tmp_path / "root"
    finished(root / "own")
    finished(root / ".hidden")
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root)
    (root / "record").mkdir()
    (root / "record" / "run.json").symlink_to(outside / "run.json")
    assert set(states(RunList(root))) == {"own"}


def test_the_folder_may_be_a_link_a_run_or_vanish(tmp_path):
    finished(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    (run,) = listed(RunList(tmp_path / "link")).values()
    assert (run.name, run.place, run.parent) == ("run", "", "")
    runs = RunList(tmp_path / "run")
    assert len(runs.changes(-1).runs) == 1
    (tmp_path / "run" / "run.json").unlink()
    (tmp_path / "run").rmdir()
    assert runs.changes(-1).runs == ()


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", "unreadable"),
        ("[]", "unreadable"),
        ('{"stage": 3}', "unreadable"),
        ("\x00", "unreadable"),
        ('{"stage":' + "[" * 10_000, "unreadable"),
        ('{"stage": "evaluate", "summary": {"accuracy": 7}}', "finished"),
    ],
    ids=["empty", "list", "number", "nul", "deep", "foreign summary"],
)
def test_a_foreign_record_is_listed_and_stops_nothing(tmp_path, text, state):
    finished(tmp_path / "fine")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text(text)
    assert states(RunList(tmp_path)) == {"fine": "finished", "odd": state}


def test_a_name_that_is_not_utf_8_is_shown_with_escapes(tmp_path):
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)  # noqa: PTH102
    with open(folder + b"/run.json", "w") as file:  # noqa: PTH123
        file.write('{"stage": "merge", "config": {}}')
    (run,) = RunList(tmp_path).changes(-1).runs
    assert (run.place, run.name, run.state) == ("caf\\xe9", "caf\\xe9", "finished")


def test_a_run_that_starts_again_by_force_is_not_finished_meanwhile(tmp_path):
    finished(tmp_path / "out")
    (tmp_path / "out" / STARTED_FILE).write_text("{}")
    with only_writer(tmp_path / "out"):
        assert states(RunList(tmp_path)) == {"out": "running"}
    assert states(RunList(tmp_path)) == {"out": "interrupted"}


def test_every_run_of_a_report_has_a_headline(tmp_path):
    all_runs(tmp_path)
    runs = RunList(tmp_path).changes(-1).runs
    assert len(runs) == 3
    assert [run.place for run in runs if not (run.headline.value and run.headline.about)] == []


def test_runs_that_are_gone_are_forgotten(tmp_path):
    finished(tmp_path / "a")
    runs = RunList(tmp_path)
    assert states(runs) == {"a": "finished"}
    (tmp_path / "a" / "run.json").unlink()
    finished(tmp_path / "b")
    assert states(runs) == {"b": "finished"}
    assert list(runs._read) == [tmp_path / "b"]
