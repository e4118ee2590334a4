import pytest

from steelyard.core.errors import FileError, RecordError
from steelyard.io.rows import read_rows, write_rows

ROWS = [{"prompt": "你好", "n": 1}, {"prompt": "שלום", "n": 2}]


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.parquet"])
def test_rows_come_back_by_suffix(tmp_path, name):
    assert write_rows(tmp_path / name, ROWS) == 2
    rows = list(read_rows(tmp_path / name))
    assert [row.value for row in rows] == ROWS
    assert str(tmp_path / name) in str(rows[0].place)


def test_rows_know_their_lines(tmp_path):
    write_rows(tmp_path / "r.jsonl", ROWS)
    assert [row.place.line for row in read_rows(tmp_path / "r.jsonl")] == [1, 2]
    write_rows(tmp_path / "r.json", ROWS)
    assert str(list(read_rows(tmp_path / "r.json"))[1].place._replace(path="n")).endswith("r.json[1] at n")


def test_broken_rows_are_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": ')
    with pytest.raises(RecordError, match=r"r\.jsonl:2: the line is not JSON, or cut off"):
        list(read_rows(path))
    path.write_bytes(b'{"a": 1}\n3\n')
    with pytest.raises(RecordError, match=r"r\.jsonl:2: a record that is int"):
        list(read_rows(path))
    path.write_bytes(b'{"a": "\xff"}\n')
    with pytest.raises(FileError, match=r"r\.jsonl:1: byte 8 is not UTF-8"):
        list(read_rows(path))
    path.write_bytes(b'[{"a": 1}, {"a"')
    with pytest.raises(FileError, match="broken or cut off"):
        list(read_rows(path))


@pytest.mark.parametrize("content", ['{"a": DEEP}', "DEEP"])
def test_what_is_nested_too_deeply_is_refused(tmp_path, content):
    path = tmp_path / "r.jsonl"
    path.write_text(content.replace("DEEP", "[" * 100_000 + "]" * 100_000))
    with pytest.raises((FileError, RecordError), match="too deep to be read"):
        list(read_rows(path))


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(FileError, match="cannot tell how to write"):
        write_rows(tmp_path / "r.csv", ROWS)
