import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from steelyard.core.errors import FileError
from steelyard.io.hashing import file_hash, hashed_ahead

LARGE = bytes(range(256)) * 2**17  # several blocks


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    return folder


CONTENT = {"b.safetensors": LARGE, "a.json": b"{}", "inner/empty": b"", "inner/\u65e5.txt": b"1"}
OF_MODEL = sha256("".join(f"{name}\x1f{sha256(CONTENT[name])}\n" for name in sorted(CONTENT)).encode())


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "large").write_bytes(LARGE)
    assert file_hash(tmp_path / "large") == sha256(LARGE)


def test_a_folder_s_hash_depends_on_names_and_content(model):
    assert file_hash(model) == OF_MODEL
    (model / "inner" / "empty").rename(model / "inner" / "void")
    assert file_hash(model) != OF_MODEL


def test_hashes_ahead_are_the_same_and_nothing_is_read_twice(model, tmp_path):
    (tmp_path / "cases").write_text("before")
    with hashed_ahead([model, tmp_path / "cases"]):
        assert file_hash(model) == OF_MODEL
        assert file_hash(tmp_path / "cases") == sha256(b"before")
        (tmp_path / "cases").write_text("after")
        assert file_hash(tmp_path / "cases") == sha256(b"before")
        assert file_hash(model / "a.json") == sha256(b"{}")  # any other file is read when it is needed
    assert file_hash(tmp_path / "cases") == sha256(b"after")


def test_a_fault_ahead_is_raised_where_the_hash_is_needed_and_spoils_no_other(model, tmp_path):
    (tmp_path / "model" / "a.json").unlink()
    (tmp_path / "model" / "a.json").symlink_to("/dev/zero")
    (tmp_path / "cases").write_bytes(LARGE)
    with hashed_ahead([model, tmp_path / "absent", tmp_path / "cases"]):
        for path, problem in ((tmp_path / "absent", "no such file"), (model, r"a\.json: this is a device")):
            for _ in range(2):
                with pytest.raises(FileError, match=problem):
                    file_hash(path)
        assert file_hash(tmp_path / "cases") == sha256(LARGE)


def test_the_end_of_the_block_stops_hashes_that_nobody_waits_for(tmp_path):
    with (tmp_path / "endless").open("wb") as file:
        file.truncate(2**40)  # a hole of a terabyte: ten minutes of hashing

    def leave():
        with hashed_ahead([tmp_path / "endless"]):
            raise KeyboardInterrupt

    with ThreadPoolExecutor() as threads, pytest.raises(KeyboardInterrupt):
        threads.submit(leave).result(timeout=60)
