"""Names that a record or a recipe gives stay inside their folder: a foreign ``run.json`` removes nothing else."""

import json
import shutil

import pytest

from steelyard.core.config import Config
from steelyard.core.errors import FileError, UserError
from steelyard.io.run_folder import path_inside, read_run, result_folder

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
