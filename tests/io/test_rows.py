"""Rows of foreign files: JSON, delimited text, tables; each with its place."""

import bz2
import csv
import gzip
import json
import lzma
import subprocess
from collections import Counter

import pyarrow
import pytest

from steelyard.core.errors import FileError, RecordError
from steelyard.io.json_text import decode_list
from steelyard.io.rows import QUOTES_AS_TEXT, TextForm, read_rows, write_rows

ROWS = [{"prompt": "你好", "n": 1}, {"prompt": "שלום", "n": 2}]


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.parquet"])
def test_rows_come_back_by_suffix(tmp_path, name):
    assert write_rows(tmp_path / name, ROWS) == 2
    rows = list(read_rows(tmp_path / name))
    assert [row.value for row in rows] == ROWS
    assert str(tmp_path / name) in str(rows[0].place)


@pytest.mark.parametrize("name", ["R.JSONL", "R.Json", "R.PARQUET"])
def test_the_kind_of_a_file_follows_from_its_ending_in_letters_of_any_case(tmp_path, name):
    write_rows(tmp_path / name, ROWS)
    assert [row.value for row in read_rows(tmp_path / name)] == ROWS


def test_delimited_text_is_read_under_endings_in_capitals(tmp_path):
    (tmp_path / "R.CSV").write_text("prompt,n\n你好,1\n", encoding="utf-8")
    (tmp_path / "R.TSV.GZ").write_bytes(gzip.compress("prompt\tn\n你好\t1\n".encode()))
    for name in ("R.CSV", "R.TSV.GZ"):
        assert [row.value for row in read_rows(tmp_path / name)] == [{"prompt": "你好", "n": "1"}], name


def test_rows_know_their_lines(tmp_path):
    write_rows(tmp_path / "r.jsonl", ROWS)
    assert [row.place.line for row in read_rows(tmp_path / "r.jsonl")] == [1, 2]
    write_rows(tmp_path / "r.json", ROWS)
    assert str(list(read_rows(tmp_path / "r.json"))[1].place._replace(path="n")).endswith("r.json[1] at n")


def test_broken_rows_are_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": ')
    with pytest.raises(RecordError, match=r"r\.jsonl:2: the line is cut off"):
        list(read_rows(path))
    path.write_bytes(b'{"a": 1}\n3\n')
    with pytest.raises(RecordError, match=r"r\.jsonl:2: a record that is int"):
        list(read_rows(path))
    path.write_bytes(b'{"a": "\xff"}\n')
    with pytest.raises(FileError, match=r"r\.jsonl:1: byte 8 is not UTF-8"):
        list(read_rows(path))
    path.write_bytes(b'[{"a": 1}, {"a"')
    with pytest.raises(RecordError, match=r"r\.jsonl:1: the file is cut off"):
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
        ("t.csv", "a,b\n1,2\n3\n", r"t\.csv:3: a row of 1 cell under a header of 2"),
    ],
)
def test_a_row_of_other_cells_is_named(tmp_path, name, content, found):
    with pytest.raises(RecordError, match=found):
        delimited_rows(tmp_path / name, content)


def test_a_long_response_is_a_cell_and_marks_within_a_named_column_divide_nothing(tmp_path):
    """Python's reader of tables refuses more than 131,072 characters unless it is told otherwise."""
    response = "長い返事 " * 40_000
    (tmp_path / "t.csv").write_text(f'"a;b;c",d\n1,{response}\n', encoding="utf-8")
    assert [row.value for row in read_rows(tmp_path / "t.csv")] == [{"a;b;c": "1", "d": response}]


def test_a_broken_table_is_refused(tmp_path):
    with pytest.raises(FileError, match="the header has 'a' twice"):
        delimited_rows(tmp_path / "t.tsv", "a\ta\n1\t2\n")
    with pytest.raises(FileError, match=r"t\.csv:2: the table cannot be read"):
        delimited_rows(tmp_path / "t.csv", 'a,b\n"1,2\n')
    (tmp_path / "u.tsv").write_bytes(b"a\tb\n\xff\t2\n")
    with pytest.raises(FileError, match=r"u\.tsv:2: byte 1 is not UTF-8"):
        list(read_rows(tmp_path / "u.tsv"))
    (tmp_path / "u.csv").write_bytes(b"a,b\n\xff,2\n")
    with pytest.raises(FileError, match=r"u\.csv:2: byte 1 is not UTF-8"):
        list(read_rows(tmp_path / "u.csv"))
    with pytest.raises(FileError, match="the file is empty"):
        delimited_rows(tmp_path / "e.tsv", "")


def test_a_csv_may_have_semicolons_where_its_header_has_no_comma(tmp_path):
    content = 'a;b\n"1;2";3,4\n'
    assert delimited_rows(tmp_path / "t.csv", content) == [(2, {"a": "1;2", "b": "3,4"})]
    assert delimited_rows(tmp_path / "u.csv", "a,b;c\n1,2;3\n") == [(2, {"a": "1", "b;c": "2;3"})]


@pytest.mark.parametrize(
    "content",
    [
        "sep=;\nq;a\n1, 2;x\n",
        '"sep=;"\r\nq;a\r\n1, 2;x\r\n',
        "\ufeffSEP=\t\nq\ta\n1, 2\tx\n",
        'q,a,,,\n,,,,\n"1, 2",x,,,\n,,,,\n',
        ";\nq;a\n1, 2;x\n;\n",
    ],
)
def test_a_csv_as_a_spreadsheet_saves_it(tmp_path, content):
    (tmp_path / "rows.csv").write_text(content, "utf-8", newline="")
    assert [row.value for row in read_rows(tmp_path / "rows.csv")] == [{"q": "1, 2", "a": "x"}]


def test_the_mark_that_divides_a_header_into_most_cells_divides_a_csv(tmp_path):
    (tmp_path / "rows.csv").write_text('q;"a; or b";c,d\nWas?;ja;nein\n', "utf-8")
    (row,) = read_rows(tmp_path / "rows.csv")
    assert row.value == {"q": "Was?", "a; or b": "ja", "c,d": "nein"}


def test_an_error_below_the_line_of_a_separator_has_its_line(tmp_path):
    (tmp_path / "rows.csv").write_text("sep=;\nq;a\n1;x\n2\n", "utf-8")
    with pytest.raises(RecordError, match=r"rows\.csv:4: a row of 1 cell under a header of 2"):
        list(read_rows(tmp_path / "rows.csv"))


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
        ("big5", "\u9019\u500b\u554f\u984c\u7684\u7b54\u6848\u662f\u4ec0\u9ebc"),
        ("cp932", "\u65e5\u672c\u306e\u9996\u90fd\u306f\u3069\u3053\u3067\u3059\u304b"),
        ("cp949", "\ud55c\uad6d\uc758 \uc218\ub3c4\ub294 \uc5b4\ub514\uc785\ub2c8\uae4c"),
        ("cp1251", "\u041a\u0430\u043a\u0430\u044f \u0441\u0442\u043e\u043b\u0438\u0446\u0430"),
        ("cp1256", "\u0645\u0627 \u0647\u064a \u0639\u0627\u0635\u0645\u0629 \u0645\u0635\u0631"),
        ("utf-16-le", "\u6746\u79e4"),
    ],
)
def test_the_remedy_for_another_encoding_works_when_pasted(tmp_path, encoding, text):
    source = tmp_path / "von mir.csv"
    source.write_bytes(f"a,b\n{text},2\n".encode(encoding))
    with pytest.raises(FileError, match=r"not (text in )?UTF-8") as caught:
        list(read_rows(source))
    command = (caught.value.do or "").partition(": ")[2]
    assert command.startswith("iconv ")
    subprocess.run(["sh", "-c", command], check=True)
    assert [row.value for row in read_rows(tmp_path / "von mir-utf8.csv")] == [{"a": text, "b": "2"}]


def test_a_broken_byte_in_utf8_is_no_other_encoding(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes('{"a": "杆秤是什么"}\n'.encode() * 9 + b'{"a": "\xff"}\n')
    with pytest.raises(FileError, match=r"r\.jsonl:10: byte 8 is not UTF-8") as caught:
        list(read_rows(path))
    command = (caught.value.do or "").partition(": ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    assert [row.value["a"] for row in read_rows(tmp_path / "r-utf8.jsonl")] == ["杆秤是什么"] * 9 + [""]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress])
def test_a_byte_order_mark_names_the_encoding(tmp_path, encoding, pack):
    table, lines, array = (tmp_path / name for name in ("t.tsv", "r.jsonl", "r.json"))
    table.write_bytes(pack("a\tb\r\n杆秤\tقبان\r\n".encode(encoding)))
    lines.write_bytes(pack('{"a": "杆秤\u2028"}\n\n{"a": "𠀀"}'.encode(encoding)))
    array.write_bytes(pack('[\n{"a": "杆秤"}]'.encode(encoding)))
    assert [row.value for row in read_rows(table)] == [{"a": "杆秤", "b": "قبان"}]
    assert [(row.place.line, row.value["a"]) for row in read_rows(lines)] == [(1, "杆秤\u2028"), (3, "𠀀")]
    assert [row.value["a"] for row in read_rows(array)] == ["杆秤"]


ENCODED = [
    ("gbk", "杆秤是什么"), ("gb18030", "𠀀杆秤"), ("big5", "桿秤是甚麼"), ("shift_jis", "秤とは何ですか"),
    ("euc-kr", "저울은 무엇입니까"), ("windows-1256", "ما هو القبان؟"), ("cp1252", "Wägung – naïve"),
    ("utf-16-le", "秤"),
]  # fmt: skip


@pytest.mark.parametrize(("encoding", "text"), ENCODED)
def test_text_is_read_from_an_encoding_that_is_named(tmp_path, encoding, text):
    form = TextForm(encoding=encoding)
    files = {
        "t.csv": f'a,b\n"{text}\n{text}",2\n', "t.tsv": f"a\tb\n{text}\t2\n", "r.jsonl": f'{{"a": "{text}"}}\n',
        "r.json": f'[{{"a": "{text}"}}]', "w.json": f'{{\n"rows": [{{"a": "{text}"}}]}}',
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode(encoding))
        (row,) = read_rows(tmp_path / name, form)
        assert row.value["a"] == (f"{text}\n{text}" if name == "t.csv" else text)


def test_a_long_file_is_read_from_its_encoding_across_chunks(tmp_path):
    path, texts = tmp_path / "r.jsonl", [f"{number}" + "秤𠀀" * (number % 7000) for number in range(0, 99000, 997)]
    path.write_bytes("\n".join(f'{{"a": "{text}"}}' for text in texts).encode("gb18030"))
    assert [row.value["a"] for row in read_rows(path, TextForm(encoding="gb18030"))] == texts


@pytest.mark.parametrize("name", ["r.jsonl", "t.csv"])
def test_bytes_that_the_named_encoding_lacks_are_an_error_with_their_line(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b'{"a": 1}\n' * 9 + '{"a": "杆秤是什么？杆秤是什么？"}\n'.encode("gb18030"))
    with pytest.raises(FileError, match=rf"{name}:10: this is not utf-8 \(0xb8\)(.|\n)*encoding=GB18030"):
        list(read_rows(path, TextForm(encoding="utf-8")))
    with pytest.raises(FileError, match=rf"{name}:10: this is not ascii \(0xb8\)(.|\n)*encoding=GB18030"):
        list(read_rows(path, TextForm(encoding="ascii")))


DEFECTS = {
    rb'{"a": "\ud83d"}': r"the escape \\ud83d is half of a character",
    rb'{"a": "\ud83d \ude00"}': r"the escape \\ud83d is half of a character",
    rb'{"a": "\ud83d\ude00 \ude00"}': r"the escape \\ude00 is half of a character",
    rb'{"a": "\\ud83d': "is cut off",
    rb'{"a": "\ud83d\ud': "is cut off",
    b'{"a": 1': "is cut off",
    b'{"a": NaN}': "NaN is no number of JSON",
    b'{"a": [1, -Infinity]}': "Infinity is no number of JSON",
    b'{"a": 1e999}': "a number out of range",
    b'{"a": None}': "None is Python's word for null",
    b"{'a': 1}": "single quotation marks",
    b'{"a": 1,}': "a comma before the closing bracket",
    b'{"a": "b\x00"}': "a NUL byte",
    b'{"a": "b\tc"}': "a control character",
    b'{"a": 1}{"a": 2}': "a second object after the first",
    b'{"a": 1}\r{"a": 2}': "a second object after the first",
    b'{"a": 1},': "a comma after the object",
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_what_is_not_json_is_described_with_its_line(tmp_path, defect):
    lines, array, wrapped = (tmp_path / name for name in ("r.jsonl", "r.json", "w.json"))
    lines.write_bytes(b'{"a": "\xe5\xa5\xbd"}\r\n\n' + defect)
    with pytest.raises(RecordError, match=rf"r\.jsonl:3: .*{DEFECTS[defect]}"):
        list(read_rows(lines))
    if defect.startswith(b"{") and "after" not in DEFECTS[defect] and "out of range" not in DEFECTS[defect]:
        array.write_bytes(b'[{"a": 0},\n' + defect)
        with pytest.raises(RecordError, match=rf"r\.json:2: .*{DEFECTS[defect]}"):
            list(read_rows(array))
        wrapped.write_bytes(b'{\n"rows": [\n' + defect)
        with pytest.raises(RecordError, match=rf"w\.json:3: .*{DEFECTS[defect]}"):
            list(read_rows(wrapped))


def test_a_json_file_of_another_encoding_is_described(tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes('{"a": "杆秤是什么"}'.encode("gb18030"))
    with pytest.raises(FileError, match=r"r\.json:1: byte 8 is not UTF-8(.|\n)*GB18030"):
        list(read_rows(path))


PACK = {
    ".gz": lambda content: gzip.compress(content[:9]) + gzip.compress(content[9:]),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pyarrow.Codec("zstd").compress(content, asbytes=True),
}


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.jsonl", '\ufeff{"a": "好"}\n{"a": "שלום"}\n'),
        ("r.json", '[{"a": "好"},\n {"a": "שלום"}]'),
        ("w.json", '{\n"rows": [{"a": "好"}, {"a": "שלום"}]}'),
        ("r.csv", 'a\r\n"好"\r\nשלום\r\n'),
        ("r.tsv", "a\n好\nשלום\n"),
    ],
)
def test_compressed_files_are_read_by_their_content(tmp_path, name, content, ending):
    for path in (tmp_path / f"{name}{ending}", tmp_path / name):
        path.write_bytes(PACK[ending](content.encode()))
        assert [row.value for row in read_rows(path)] == [{"a": "好"}, {"a": "שלום"}]
    plain = tmp_path / f"plain-{name}{ending}"
    plain.write_text(content, encoding="utf-8")
    assert len(list(read_rows(plain))) == 2


@pytest.mark.parametrize("ending", PACK)
def test_a_broken_archive_is_an_error(tmp_path, ending):
    path = tmp_path / f"r.jsonl{ending}"
    packed = PACK[ending](b"".join(b'{"a": %d}\n' % number**3 for number in range(50_000)))
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FileError, match=r"file is cut off\n  do: copy or download"):
        list(read_rows(path))
    path.write_bytes(packed[:1000] + bytes(9) + packed[1009:])
    with pytest.raises((FileError, RecordError)):
        list(read_rows(path))


def test_an_archive_within_an_archive_is_named(tmp_path):
    path = tmp_path / "r.tar.gz"
    path.write_bytes(gzip.compress(bytes(257) + b"ustar" + bytes(250)))
    with pytest.raises(FileError, match=r"this is a tar archive(.|\n)*tar xf"):
        list(read_rows(path))


def test_a_bomb_is_refused(tmp_path):
    path = tmp_path / "r.jsonl.zst"
    path.write_bytes(PACK[".zst"](b" " * (2**20 - 1) + b"\n") * 300)
    with pytest.raises(FileError, match=r"r\.jsonl\.zst: the zstd file unpacks to over 500 times its size"):
        list(read_rows(path))


TSV_QUOTES = [
    ('"a"\t"b"\n"x ""y"""\t"z"\n', [{"a": 'x "y"', "b": "z"}], 0),
    ('"a"\tb\n"x"\tz\n', [{"a": "x", "b": "z"}], 0),
    ('a\tb\n"Il dit : ""bonjour"""\tz\n"x"\ty\n', [{"a": 'Il dit : "bonjour"', "b": "z"}, {"a": "x", "b": "y"}], 0),
    ('a\tb\n"x"\tz\n', [{"a": '"x"', "b": "z"}], 1),
    ('a\tb\n"x" and "y"\tz ""\n', [{"a": '"x" and "y"', "b": 'z ""'}], 0),
    ('a\tb\n"x ""y"""\t"z" or "w"\n', [{"a": '"x ""y"""', "b": '"z" or "w"'}], 0),
    ('a\tb\n"\t""\n', [{"a": '"', "b": '""'}], 1),
    ("a\tb\rx\ty\r", [{"a": "x", "b": "y"}], 0),
]


@pytest.mark.parametrize(("content", "rows", "num_doubtful"), TSV_QUOTES)
def test_the_marks_of_a_tsv_file_are_decided_by_its_content(tmp_path, content, rows, num_doubtful):
    path, warnings = tmp_path / "t.tsv", Counter()
    path.write_text(content, encoding="utf-8", newline="")
    assert [row.value for row in read_rows(path, warnings=warnings)] == rows
    assert warnings[QUOTES_AS_TEXT] == num_doubtful


def test_the_marks_of_a_tsv_file_can_be_set(tmp_path):
    path, warnings = tmp_path / "t.tsv", Counter()
    path.write_text('a\tb\n"x"\t"y ""z"""\n', encoding="utf-8")
    assert next(read_rows(path, TextForm("cells"), warnings=warnings)).value == {"a": "x", "b": 'y "z"'}
    assert next(read_rows(path, TextForm("literal"), warnings=warnings)).value == {"a": '"x"', "b": '"y ""z"""'}
    assert not warnings


TURNS = [{"role": "user", "content": 'it\'s a "test"\n第二行'}, {"role": "assistant", "content": "ok}\n {"}]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (json.dumps(TURNS), TURNS),
        (str(TURNS), TURNS),
        # NumPy, as pandas writes a Parquet column to CSV, has line feeds for commas.
        ("[" + "\n ".join(map(str, TURNS)) + "]", TURNS),
        ("[{'from': 'human', 'value': 'q'}]", [{"from": "human", "value": "q"}]),
        ("[{'a': 1}]", "[{'a': 1}]"),
        ("[1] and [2]", "[1] and [2]"),
        ("[{'role': open('x')}]", "[{'role': open('x')}]"),
        ("[{'role': 'user'", "[{'role': 'user'"),
        ("[" * 10000 + "{" + "]" * 10000, "[" * 10000 + "{" + "]" * 10000),
    ],
)
def test_a_cell_of_turns_is_a_list_and_any_other_a_text(tmp_path, cell, value):
    path = tmp_path / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["a", "b"], [cell, "x"]])
    assert [row.value for row in read_rows(path)] == [{"a": value, "b": "x"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a' 'b c'\n 'd']", ["a", "b c", "d"]),
        ("[1. 0. -2.]", [1.0, 0.0, -2.0]),
        ("['a', \"it's\", None]", ["a", "it's", None]),
        ('["a", null]', ["a", None]),
        ("['a' ... 'b']", None),
        ("{1: 2}", None),
    ],
)
def test_a_list_is_json_or_printed_by_python_or_numpy(text, value):
    assert decode_list(text) == value


def test_a_csv_may_have_tabs_where_its_header_has_no_comma(tmp_path):
    content = 'prompt\tchosen\n"a, b"\tc\n'
    assert delimited_rows(tmp_path / "t.csv", content) == [(2, {"prompt": "a, b", "chosen": "c"})]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ('{"data": [{"a": 1}, {"a": 2}], "version": "1"}', [{"version": "1", "a": 1}, {"version": "1", "a": 2}]),
        ('{"id": 1, "data": {"q": "x"}, "annotations": []}', [{"id": 1, "data": {"q": "x"}, "annotations": []}]),
        ('{"conversations": [{"from": "human"}], "id": 1}', [{"conversations": [{"from": "human"}], "id": 1}]),
        ('{"data": [1]}\n{"data": [2]}', [{"data": [1]}, {"data": [2]}]),
    ],
)
def test_a_json_file_of_one_line_may_hold_a_list_of_rows(tmp_path, content, rows):
    (tmp_path / "w.json").write_text(content, encoding="utf-8")
    assert [row.value for row in read_rows(tmp_path / "w.json")] == rows


@pytest.mark.parametrize("row", ["ما هذا؟\tجوابٌ\tالأول", '"ما\r\nهذا؟"\tجوابٌ\tالأول', 'ما "هذا"؟\tجوابٌ\tالأول'])
def test_a_table_that_a_spreadsheet_saved_as_unicode_text_is_a_table(tmp_path, row):
    path = tmp_path / "آراء.txt"
    path.write_bytes(f"السؤال\tالرد\tالأفضل\r\n{row}\r\n".encode("utf-16"))
    (read,) = read_rows(path)
    assert list(read.value) == ["السؤال", "الرد", "الأفضل"]
    assert list(read.value.values())[1:] == ["جوابٌ", "الأول"]


@pytest.mark.parametrize(
    "text", ["what\tis this?\n", "a\tb\nwhy?\n", "if x:\n\treturn\n", "\tone\n\ttwo\n", "a\ta\nb\tb\n"]
)
def test_prompts_with_a_tab_somewhere_are_prompts(tmp_path, text):
    (tmp_path / "prompts.txt").write_text(text, encoding="utf-8")
    assert [row.value["prompt"] for row in read_rows(tmp_path / "prompts.txt")] == text.splitlines()
