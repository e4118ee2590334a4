import pytest

from recipe_files import SMALL, small_recipe
from steelyard.core.errors import FileError
from steelyard.recipes.plan import check_files, plan
from steelyard.recipes.recipes import read_recipe
from steelyard.recipes.run import run


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    path = small_recipe(folder)
    run(read_recipe(path), folder / "out")
    return path, folder / "out"


def states(path, out, settings=None, redone=()):
    return {one.step.name: one.state for one in plan(read_recipe(path, settings), out, redone)}


def test_nothing_has_run_in_a_new_folder(tmp_path):
    assert set(states(small_recipe(tmp_path), tmp_path / "out").values()) == {"to run"}
    assert not (tmp_path / "out").exists()


def test_what_is_finished_differs_or_waits(done):
    path, out = done
    assert set(states(path, out).values()) == {"finished"}
    found = plan(read_recipe(path, {"ranked": {"only": {"kind": ["human"]}}}), out)
    assert [(one.step.name, one.state, one.why) for one in found] == [
        ("made", "finished", ""),
        ("ranked", "differs", "other settings: only"),
        ("scored", "waits", "for ranked"),
        ("evaluated", "waits", "for ranked"),
    ]
    redone = states(path, out, redone=("scored",))
    assert redone == {"made": "finished", "ranked": "finished", "scored": "to run", "evaluated": "finished"}


def test_other_content_and_another_verb_differ(tmp_path):
    case_file = tmp_path / "mine.jsonl"
    text = '[stages.a]\nverb = "resolve"\ncases = "mine.jsonl"\n'
    path = small_recipe(tmp_path, SMALL)
    run(read_recipe(path), tmp_path / "first")
    case_file.write_bytes((tmp_path / "first" / "made" / "cases.jsonl").read_bytes())
    own = small_recipe(tmp_path, text)
    run(read_recipe(own), tmp_path / "out")
    lines = case_file.read_text("utf-8").splitlines(keepends=True)
    case_file.write_text("".join(lines[1:]), encoding="utf-8")
    (one,) = plan(read_recipe(own), tmp_path / "out")
    assert (one.state, one.why) == ("differs", "another content of cases: mine.jsonl")
    (other,) = plan(read_recipe(small_recipe(tmp_path, "[stages.a]\nverb = 'simulate'\n")), tmp_path / "out")
    assert (other.state, other.why) == ("differs", "the folder holds a run of resolve")


def test_a_file_that_moved_is_named_before_anything_runs(tmp_path):
    path = small_recipe(tmp_path, SMALL + '[stages.more]\nverb = "resolve"\ncases = "gone/cases.jsonl"\n')
    with pytest.raises(FileError, match=r"small\.toml at stages\.more\.cases: there is no file 'gone/cases\.jsonl'"):
        check_files(read_recipe(path), tmp_path / "out")
    with pytest.raises(FileError):
        run(read_recipe(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()
