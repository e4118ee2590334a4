import json
import shutil
from contextlib import suppress

import pytest

from steelyard.core.config import Config
from steelyard.core.errors import FileError, OutputError, UserError
from steelyard.core.types import Counts
from steelyard.io.atomic import only_writer, write_text
from steelyard.io.hashing import file_hash
from steelyard.io.run_folder import path_inside, read_run, result_folder
from steelyard.report.sources import read_sources


class Settings(Config, frozen=True):
    depth: int = 1
    seed: int = 3
    allow_gaps: bool = False


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("x\n")
    return path


def stage(out, given, *, depth=1, force=False, text="made", allow_gaps=False):
    config = Settings(depth=depth, allow_gaps=allow_gaps)
    with result_folder(out, "stage", config=config, inputs={"cases": given}, force=force) as result:
        if not result.is_finished:
            write_text(result.path("out.txt"), text)
            result.counts = Counts(num_in=3, num_used=2, dropped={"rule": 1})
            result.summary = {"value": 0.5}
    return result


def test_the_record_holds_what_was_asked_and_what_came_of_it(tmp_path, given):
    stage(tmp_path / "out", given)
    run = read_run(tmp_path / "out")
    assert (run.stage, run.seed, run.summary) == ("stage", 3, {"value": 0.5})
    assert run.config == {"depth": 1, "seed": 3, "allow_gaps": False}
    assert run.inputs["cases"].sha256 == file_hash(given)
    assert run.outputs == {"out.txt": file_hash(tmp_path / "out" / "out.txt")}
    assert run.counts.dropped == {"rule": 1}
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == ["out.txt", "run.json"]


def test_an_equal_run_is_not_repeated_wherever_its_input_lies(tmp_path, given):
    stage(tmp_path / "out", given)
    moved = given.rename(tmp_path / "moved.jsonl")
    assert stage(tmp_path / "out", moved, text="again").is_finished
    assert (tmp_path / "out" / "out.txt").read_text() == "made"


def test_another_run_is_refused_and_replaced_only_by_force(tmp_path, given):
    stage(tmp_path / "out", given)
    with pytest.raises(OutputError, match="holds another run"):
        stage(tmp_path / "out", given, depth=2)
    given.write_text("y\n")
    with pytest.raises(OutputError, match="force=true"):
        stage(tmp_path / "out", given)
    (tmp_path / "out" / "mine.txt").write_text("a note of the user's")
    assert not stage(tmp_path / "out", given, depth=2, force=True, text="new").is_finished
    assert (tmp_path / "out" / "out.txt").read_text() == "new"
    assert (tmp_path / "out" / "mine.txt").exists()


def test_an_interrupted_run_goes_on_and_leaves_no_record(tmp_path, given):
    out = tmp_path / "out"
    with (
        pytest.raises(KeyboardInterrupt),
        result_folder(out, "stage", config=Settings(), inputs={"cases": given}),
    ):
        raise KeyboardInterrupt
    with pytest.raises(FileError, match="no finished run"):
        read_run(out)
    with pytest.raises(OutputError, match="unfinished run"):
        stage(out, given, depth=2)
    (out / ".cases.jsonl.x1.part").write_text("half of it")
    (out / ".saving-x1").mkdir()
    assert not stage(out, given).is_finished
    assert read_run(out).summary == {"value": 0.5}
    assert sorted(item.name for item in out.iterdir()) == ["out.txt", "run.json"]


def test_an_unfinished_run_goes_on_with_a_permission_and_a_finished_one_is_another(tmp_path, given):
    out = tmp_path / "out"
    with suppress(UserError), result_folder(out, "stage", config=Settings(), inputs={"cases": given}) as result:
        write_text(result.path("replies.txt"), "paid for")
        raise UserError("there are gaps")
    stage(out, given, allow_gaps=True)
    assert read_run(out).config["allow_gaps"]
    with pytest.raises(OutputError, match="holds another run"):
        stage(out, given)


def test_a_refused_call_leaves_no_trace(tmp_path, given):
    out = tmp_path / "out"
    with pytest.raises(OutputError), result_folder(out, "stage", config=Settings(), inputs={"cases": given}):
        raise OutputError("refused")
    assert not out.exists()


def test_a_run_never_replaces_what_it_reads(tmp_path, given):
    stage(tmp_path / "first", given)
    made = tmp_path / "first" / "out.txt"
    with pytest.raises(OutputError, match="out holds the cases that the run reads"):
        stage(tmp_path / "first", made, force=True)
    assert made.read_text() == "made"


def test_an_absent_input_is_named(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        stage(tmp_path / "out", tmp_path / "absent.jsonl")


def test_a_folder_of_something_else_and_a_file_are_refused(tmp_path, given):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="something else"):
        stage(tmp_path / "mine", given)
    with pytest.raises(OutputError, match="names a file"):
        stage(given, given)


def test_a_broken_record_is_named(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"stage": 3}))
    with pytest.raises(FileError, match="not the record of a run") as caught:
        read_run(tmp_path)
    assert caught.value.do == "delete the folder, and run the command that wrote it again"
    (tmp_path / "run.json").write_text(json.dumps({"stage": "s", "config": {}, "counts": {"num_in": 3, "num_used": 2}}))
    with pytest.raises(FileError, match="3 in, but 2 used"):
        read_run(tmp_path)


def test_a_folder_that_was_removed_meanwhile_is_said_and_the_same_call_goes_on(tmp_path, given):
    out = tmp_path / "out"

    def removed():
        with result_folder(out, "stage", config=Settings(), inputs={"cases": given}) as result:
            write_text(result.path("first.txt"), "made")
            shutil.rmtree(out)
            write_text(result.path("second.txt"), "made")

    with pytest.raises(OutputError, match=r"first\.txt was removed while the run was writing here"):
        removed()
    assert not (out / "run.json").exists()
    assert not stage(out, given).is_finished
    assert read_run(out).summary == {"value": 0.5}


def test_a_folder_that_was_removed_but_holds_everything_again_is_finished(tmp_path, given):
    out = tmp_path / "out"
    with result_folder(out, "stage", config=Settings(), inputs={"cases": given}) as result:
        shutil.rmtree(out)
        write_text(result.path("out.txt"), "made")
    assert sorted(item.name for item in out.iterdir()) == ["out.txt", "run.json"]


def test_force_removes_the_ledger_of_an_unfinished_run(tmp_path, given):
    def killed():
        with result_folder(tmp_path / "out", "stage", config=Settings(), inputs={"cases": given}) as result:
            for name in ("replies.sqlite", "replies.sqlite-wal"):
                result.path(name).write_text("damaged")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    stage(tmp_path / "out", given, force=True)
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == ["out.txt", "run.json"]


OUTSIDE = ["../victim", "/victim", "a/../../victim", "..", ".", "", "a/..", "link", "link/inner", "a\x00b"]


@pytest.fixture
def places(tmp_path):
    """A folder with a run in it, beside a folder that is none of its business."""
    for name in ("out/a", "victim/inner"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "victim" / "thesis.txt").write_text("years of work")
    (tmp_path / "out" / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "in.jsonl").write_text("x\n")
    return tmp_path


def foreign_record(places, name):
    stated = name.replace("/victim", str(places / "victim")) if name.startswith("/") else name
    record = {
        "stage": "stage", "config": {}, "seed": None, "inputs": {}, "outputs": {stated: "0"}, "versions": {},
        "counts": {"num_in": 0, "num_used": 0}, "summary": {}, "seconds": 0.0,
    }  # fmt: skip
    (places / "out" / "run.json").write_text(json.dumps(record))
    return stated


@pytest.mark.parametrize("name", OUTSIDE)
def test_force_never_removes_what_lies_outside(places, name):
    foreign_record(places, name)
    with (
        pytest.raises(FileError, match="outside"),
        result_folder(places / "out", "stage", config=Config(), inputs={"cases": places / "in.jsonl"}, force=True),
    ):
        pytest.fail("the folder was claimed")
    assert (places / "victim" / "thesis.txt").read_text() == "years of work"
    assert (places / "out" / "a").is_dir()


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_record_that_names_a_file_outside_is_not_read(places, name):
    foreign_record(places, name)
    with pytest.raises(FileError, match=r"run\.json.*outside"):
        read_run(places / "out")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leaves_its_folder_is_refused(places, name):
    with pytest.raises(FileError, match="outside"):
        path_inside(places / "out", name)


@pytest.mark.parametrize("name", ["a", "a/b", "a/../b", "b.jsonl", "中文", "..a"])
def test_a_name_that_stays_is_taken_as_it_is(places, name):
    assert path_inside(places / "out", name) == places / "out" / name


def test_a_folder_may_itself_be_a_link(places):
    (places / "linked").symlink_to(places / "out")
    assert path_inside(places / "linked", "a") == places / "linked" / "a"


@pytest.mark.parametrize("name", [".saving-x", ".cases.jsonl.x.part", "checkpoint.pt", "scores.a.part.jsonl"])
def test_a_link_where_unfinished_work_would_lie_is_removed_and_not_followed(places, name):
    shutil.rmtree(places / "out" / "a")
    (places / "out" / "link").unlink()
    (places / "out" / name).symlink_to(places / "victim")
    with result_folder(places / "out", "stage", config=Config(), inputs={"cases": places / "in.jsonl"}, force=True):
        pass
    assert not (places / "out" / name).exists()
    assert (places / "victim" / "thesis.txt").exists()


def test_a_stage_cannot_write_outside_its_folder(places):
    with (
        pytest.raises(UserError, match="outside"),
        result_folder(places / "new", "stage", config=Config(), inputs={"cases": places / "in.jsonl"}) as result,
    ):
        result.path("../victim/x.txt")


def test_a_run_that_was_killed_before_its_claim_is_claimed_by_the_next(tmp_path, given):
    """The kill came between the lock, the temporary file of ``started.json``, and its rename."""
    out = tmp_path / "out"
    out.mkdir()
    for name in (".lock", ".started.json.9g6aw_ua.part"):
        (out / name).write_text("1")
    assert not stage(out, given).is_finished
    assert sorted(item.name for item in out.iterdir()) == ["out.txt", "run.json"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".notes.9g6aw_ua.part").write_text("1")
    with pytest.raises(OutputError, match="something else"):
        stage(tmp_path / "other", given)


def test_a_run_that_was_killed_after_its_record_is_finished_by_the_same_call(tmp_path, given):
    """A report calls it unfinished, and its remedy is this call."""
    out = tmp_path / "out"
    stage(out, given)
    for name in ("started.json", ".running.json"):
        (out / name).write_text("{}")
    with pytest.raises(FileError, match="did not finish") as caught:
        read_sources([out])
    assert "run the same again" in str(caught.value)
    assert stage(out, given, text="again").is_finished
    assert sorted(item.name for item in out.iterdir()) == ["out.txt", "run.json"]
    assert len(read_sources([out])) == 1


def test_a_lock_that_a_killed_run_left_is_removed_by_the_same_call(tmp_path, given):
    out = tmp_path / "out"
    stage(out, given)
    (out / ".lock").write_text("1\n")
    assert stage(out, given, text="again").is_finished
    assert sorted(item.name for item in out.iterdir()) == ["out.txt", "run.json"]


def test_a_finished_run_of_which_another_process_writes_is_left_alone(tmp_path, given):
    out = tmp_path / "out"
    stage(out, given)
    (out / "started.json").write_text("{}")
    with only_writer(out):
        assert stage(out, given).is_finished
        assert (out / "started.json").exists()


def test_a_folder_of_runs_names_those_inside(tmp_path, given):
    with pytest.raises(FileError, match="this folder holds no finished run\n"):
        read_run(tmp_path)
    for name in ("b", "a run"):
        stage(tmp_path / name, given)
    with pytest.raises(FileError, match="this folder holds no finished run itself; 2 are inside") as caught:
        read_run(tmp_path)
    assert caught.value.do == f"name those that you mean: '{tmp_path / 'a run'}' {tmp_path / 'b'}"
