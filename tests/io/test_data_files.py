import os
import shutil

import pytest

from steelyard.core.errors import ConfigError, FileError
from steelyard.io.data_files import expand_inputs

SUFFIXES = (".jsonl", ".json")


def expand(*paths):
    return expand_inputs(paths, SUFFIXES, what="benchmark file", do="check the path")


def names(folder, *paths):
    return [str(path.relative_to(folder)) for path in expand(*paths)]


@pytest.fixture
def folder(tmp_path):
    for name in (
        "b.jsonl", "a.json", "notes.md", "table.xlsx", ".hidden.json", "run.json", "deep/deeper/c.json",
        "deep/a b 问题.jsonl", ".git/config.json", "results/run.json", "results/cases.jsonl",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    return tmp_path


def test_a_folder_means_its_data_files_in_order(folder):
    assert names(folder, folder) == ["a.json", "b.jsonl", "deep/a b 问题.jsonl", "deep/deeper/c.json"]


def test_other_files_are_counted(folder, capsys):
    expand(folder)
    left_out = "other files, left out: 3 (notes.md, run.json, table.xlsx)"
    assert capsys.readouterr().err == f"{folder}: data files: 4; {left_out}\n"


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*.json", ["a.json"]),
        ("*", ["a.json", "b.jsonl"]),
        ("**/*.json", ["a.json", "deep/deeper/c.json"]),
        ("**", ["a.json", "b.jsonl", "deep/a b 问题.jsonl", "deep/deeper/c.json"]),
        ("**/deep*/**/*.json*", ["deep/a b 问题.jsonl", "deep/deeper/c.json"]),
        ("deep/*/?.json", ["deep/deeper/c.json"]),
        ("deep/*问题.jsonl", ["deep/a b 问题.jsonl"]),
        ("[ab].json*", ["a.json", "b.jsonl"]),
        (".hid*", [".hidden.json"]),
        ("res*/*.jsonl", ["results/cases.jsonl"]),
    ],
)
def test_patterns(folder, pattern, matches):
    assert names(folder, folder / pattern) == matches


def test_a_result_is_read_where_it_is_named(folder):
    assert names(folder, folder / "results") == ["results/cases.jsonl"]


def test_files_keep_their_order_and_need_no_known_ending(folder):
    assert names(folder, folder / "notes.md", folder / "absent.txt", folder / "deep/deeper") == [
        "notes.md", "absent.txt", "deep/deeper/c.json",
    ]  # fmt: skip


def test_a_name_with_the_signs_of_a_pattern_is_itself(folder):
    for name in ("data[1].json", "data1.json"):
        (folder / name).write_text("{}")
    assert names(folder, folder / "data[1].json") == ["data[1].json"]
    (folder / "data[1].json").unlink()
    assert names(folder, folder / "data[1].json") == ["data1.json"]


@pytest.mark.parametrize("pattern", ["", "**/*.json", "*/*/*/*.json"])
def test_a_loop_of_links_ends(folder, pattern):
    shutil.rmtree(folder / "results")
    (folder / "deep" / "loop").symlink_to(folder)
    (folder / "deep" / "again").symlink_to(folder / "deep")
    assert {path.name for path in expand(folder / pattern)} <= {"a.json", "b.jsonl", "c.json", "a b 问题.jsonl"}
    files = [os.path.realpath(path) for path in expand(folder / pattern)]
    assert len(files) == len(set(files)) > 0


def test_a_linked_folder_is_found_by_its_own_name(folder):
    (folder / "link").symlink_to(folder / "deep")
    assert names(folder, folder / "link/*/*.json") == ["link/deeper/c.json"]
    assert names(folder, folder / "**/link/**/*.json") == ["link/deeper/c.json"]


@pytest.mark.parametrize("target", ["gone.json", "dangling.json"])
def test_a_link_to_nothing_is_an_error(folder, target):
    (folder / "deep" / "dangling.json").symlink_to(folder / "deep" / target)
    with pytest.raises(FileError, match=r"dangling\.json: a link to a missing file"):
        expand(folder)


def test_no_match_says_what_was_searched(folder):
    (folder / "empty").mkdir()
    cases = {
        "empty": "empty: no file is found below this folder",
        "deep/*.txt": r"deep/\*\.txt: no file is found by this pattern",
        "nowhere/*.json": "no file is found by this pattern",
        "*.[mx]*": r"no data file is found by this pattern; other files: \.md 1, \.xlsx 1",
    }
    for path, problem in cases.items():
        with pytest.raises(FileError, match=problem) as caught:
            expand(folder / path)
        assert caught.value.allowed == "names in .jsonl, .json"
        assert caught.value.do == "check the path"


def test_a_file_named_twice_is_refused(folder):
    (folder / "link.json").symlink_to(folder / "a.json")
    for paths in ([folder / "a.json", folder], [folder / "*.json", folder / "a.json"], [folder / "a.json"] * 2):
        with pytest.raises(ConfigError, match=r"a\.json: the benchmark file is found twice: by .* and by .*\n.*do: "):
            expand(*paths)
    with pytest.raises(ConfigError, match=r"link\.json: .*, the same file as .*a\.json"):
        expand(folder / "a.json", folder / "link.json")


def test_a_dataset_saved_to_disk_is_one_input(folder):
    saved = folder / "saved"
    saved.mkdir()
    for name in ("state.json", "dataset_info.json", "data-0.arrow"):
        (saved / name).write_text("{}")
    assert expand(saved) == (saved,)
    assert names(folder, folder)[-1] == "saved"
    assert names(folder, folder / "s*") == ["saved"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_without_rights_is_an_error(folder):
    (folder / "deep").chmod(0)
    try:
        with pytest.raises(FileError, match="deep: this folder may not be read"):
            expand(folder)
    finally:
        (folder / "deep").chmod(0o755)
