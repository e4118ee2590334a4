"""Rows of foreign files: JSON, delimited text, tables; each with its place."""

import subprocess

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


def delimited_rows(path, content):
    path.write_bytes(content.encode())
    return [(row.place.line, row.value) for row in read_rows(path)]


def test_a_plain_tsv_keeps_its_quotation_marks(tmp_path):
    content = 'a\tb\n"x" y\t"\n שלום\t中文\n'
    assert delimited_rows(tmp_path / "t.tsv", content) == [
        (2, {"a": '"x" y', "b": '"'}),
        (3, {"a": " שלום", "b": "中文"}),
    ]


def test_a_quoted_tsv_may_have_lines_and_tabs_in_its_cells(tmp_path):
    content = 'a\tb\n"one\ntwo ""three"""\t1\nx\t"p\tq"\n'
    assert delimited_rows(tmp_path / "t.tsv", content) == [
        (2, {"a": 'one\ntwo "three"', "b": "1"}),
        (4, {"a": "x", "b": "p\tq"}),
    ]


def test_csv_with_a_mark_of_its_byte_order(tmp_path):
    assert delimited_rows(tmp_path / "t.csv", '\ufeffa,b\r\n"你,好",\r\n') == [(2, {"a": "你,好", "b": ""})]


def test_a_remark_at_the_end_of_the_header_is_no_cell(tmp_path):
    assert delimited_rows(tmp_path / "t.tsv", "a\tb\t# see the README\n1\t2\n") == [(2, {"a": "1", "b": "2"})]


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("t.tsv", "a\tb\n1\t2\t3\n", r"t\.tsv:2: a row of 3 cells under a header of 2"),
        ("t.csv", "a,b\n1,2\n3\n", r"t\.csv:3: a row of 1 cells under a header of 2"),
    ],
)
def test_a_row_of_other_cells_is_named(tmp_path, name, content, found):
    with pytest.raises(RecordError, match=found):
        delimited_rows(tmp_path / name, content)


def test_a_broken_table_is_refused(tmp_path):
    with pytest.raises(FileError, match="the header has 'a' twice"):
        delimited_rows(tmp_path / "t.tsv", "a\ta\n1\t2\n")
    with pytest.raises(FileError, match=r"t\.csv:2: the table cannot be read"):
        delimited_rows(tmp_path / "t.csv", 'a,b\n"1,2\n')
    (tmp_path / "u.tsv").write_bytes(b"a\tb\n\xff\t2\n")
    with pytest.raises(FileError, match=r"u\.tsv:2: byte 1 is not UTF-8"):
        list(read_rows(tmp_path / "u.tsv"))
    (tmp_path / "u.csv").write_bytes(b"a,b\n\xff,2\n")
    with pytest.raises(FileError, match="the table is not UTF-8"):
        list(read_rows(tmp_path / "u.csv"))
    with pytest.raises(FileError, match="the file is empty"):
        delimited_rows(tmp_path / "e.tsv", "")


def test_a_csv_may_have_semicolons_where_its_header_has_no_comma(tmp_path):
    content = 'a;b\n"1;2";3,4\n'
    assert delimited_rows(tmp_path / "t.csv", content) == [(2, {"a": "1;2", "b": "3,4"})]
    assert delimited_rows(tmp_path / "u.csv", "a,b;c\n1,2;3\n") == [(2, {"a": "1", "b;c": "2;3"})]


def test_a_table_of_a_header_alone_is_an_error(tmp_path):
    for name, content in (("t.csv", "a,b\n"), ("t.tsv", "a\tb\n")):
        with pytest.raises(FileError, match="has a header and no rows"):
            delimited_rows(tmp_path / name, content)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "caf\u00e9"),
        ("latin-1", "na\u00efve \u00fcber Stra\u00dfe"),
        ("gb18030", "\u6746\u79e4\u662f\u4ec0\u4e48"),
    ],
)
def test_the_remedy_for_another_encoding_works_when_pasted(tmp_path, encoding, text):
    source = tmp_path / "von mir.csv"
    source.write_bytes(f"a,b\n{text},2\n".encode(encoding))
    with pytest.raises(FileError, match="is not UTF-8") as caught:
        list(read_rows(source))
    command = (caught.value.do or "").partition(": ")[2]
    assert command.startswith("iconv ")
    subprocess.run(["sh", "-c", command], check=True)
    assert [row.value for row in read_rows(tmp_path / "von mir-utf8.csv")] == [{"a": text, "b": "2"}]
