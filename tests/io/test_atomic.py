import errno
import stat

import pytest

from steelyard.core.errors import OutputError
from steelyard.io.atomic import atomic_write, write_folder_once, write_text


def test_the_file_appears_whole(tmp_path):
    write_text(tmp_path / "new" / "f.txt", "杆秤")
    assert (tmp_path / "new" / "f.txt").read_text(encoding="utf-8") == "杆秤"
    assert [item.name for item in (tmp_path / "new").iterdir()] == ["f.txt"]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.write("half of it is no bytes")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["f.txt"]


def test_the_file_has_ordinary_permissions(tmp_path):
    write_text(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "b").stat().st_mode)


def test_a_full_disk_is_said_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")
    with pytest.raises(OutputError, match="the disk is full; the previous file is unchanged"), atomic_write(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["f.txt"]


def test_a_file_over_the_limit_is_named(tmp_path):
    with pytest.raises(OutputError, match="the file is larger than allowed") as caught, atomic_write(tmp_path / "f"):
        raise OSError(errno.EFBIG, "File too large")
    assert caught.value.where == str(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_speak_of_a_previous_file_where_there_was_none(tmp_path):
    with pytest.raises(OutputError) as caught, atomic_write(tmp_path / "f.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.problem == "the disk is full"
    assert list(tmp_path.iterdir()) == []


def write_two(folder):
    write_text(folder / "a.txt", "杆秤")
    write_text(folder / "inside" / "b.txt", "b")


def test_a_folder_with_equal_content_stays(tmp_path):
    out = tmp_path / "out"
    assert write_folder_once(out, write_two) == (None, True)
    before = (out / "inside" / "b.txt").stat()
    assert write_folder_once(out, write_two) == (None, False)
    after = (out / "inside" / "b.txt").stat()
    # Reading it for the comparison may have moved the time of the last access.
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    assert write_folder_once(tmp_path / "out", write_two) == (None, True)
    assert (tmp_path / "out" / "a.txt").read_text(encoding="utf-8") == "杆秤"


@pytest.mark.parametrize("change", ["other bytes", "a file more", "a file less", "a folder for a file"])
def test_a_folder_that_holds_something_else_stays_as_it_is(tmp_path, change):
    out = tmp_path / "out"
    write_folder_once(out, write_two)
    if change == "a file more":
        (out / "mine.txt").write_text("mine")
    elif change == "other bytes":
        (out / "a.txt").write_text("mine")
    else:
        (out / "a.txt").unlink()
        if change == "a folder for a file":
            (out / "a.txt").mkdir()
    before = sorted(out.rglob("*"))
    with pytest.raises(OutputError, match="it holds something else"):
        write_folder_once(out, write_two)
    assert sorted(out.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_fails_half_way_leaves_nothing(tmp_path):
    def fail(folder):
        write_two(folder)
        raise ValueError("half of it")

    with pytest.raises(ValueError, match="half of it"):
        write_folder_once(tmp_path / "out", fail)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputError, match="is a file"):
        write_folder_once(tmp_path / "out", write_two)
