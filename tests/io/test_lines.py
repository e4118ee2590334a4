import gzip
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from steelyard.core.errors import FileError, Place
from steelyard.io.encodings import check_utf8
from steelyard.io.file_types import is_binary
from steelyard.io.lines import LineRanges, check_readable, check_text, read_batches


def test_batches_keep_line_numbers_and_skip_blank_lines(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\xef\xbb\xbfone\n\n  \ntwo\nthree")
    batches = list(read_batches(path, size=2))
    assert [batch.numbers for batch in batches] == [(1, 4), (5,)]
    assert [batch.lines for batch in batches] == [(b"one\n", b"two\n"), (b"three",)]


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfone\n\n  \ntwo\nthree\r\nfour\rfive", b"\xef\xbb\xbf\n\n1\n2\n", b"\n \nlast", b"\xef\xbb\xbf"],
)
@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("is_packed", [False, True])
def test_ranges_read_apart_are_the_lines_of_the_file_with_their_numbers(tmp_path, content, size, is_packed):
    path = tmp_path / "f.jsonl"
    path.write_bytes(gzip.compress(content) if is_packed else content)
    ranges, parts = LineRanges(path), []
    while (part := ranges.take(size)).num_lines:
        parts.append(part)
    read = [(number, line) for part in parts for number, line in zip(*part.read()[1:], strict=True)]
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert [(number, line.rstrip(b"\n")) for number, line in read] == [
        (number, line) for number, line in enumerate(lines, 1) if line.strip()
    ]
    assert all(part.num_lines <= size for part in parts)


def test_a_range_ends_early_where_its_lines_are_long(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"x" * 9 + b"\n" + b"y\n" * 3)
    ranges = LineRanges(path)
    assert [ranges.take(9, max_bytes=6).num_lines for _ in range(3)] == [1, 3, 0]


def test_an_absent_file_an_empty_file_a_folder(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        check_readable(tmp_path / "nothing.jsonl")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(FileError, match="empty"):
        check_readable(tmp_path / "empty.jsonl")
    with pytest.raises(FileError, match="folder"):
        check_readable(tmp_path)


def test_a_git_lfs_pointer_is_never_read_as_data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    with pytest.raises(FileError, match="git-LFS pointer"):
        list(read_batches(path))


def test_a_line_over_the_limit_is_refused_with_its_number(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"short\n" + b"x" * 2**20 + b"\n")
    with pytest.raises(FileError, match=r"f\.jsonl:2: the line is longer than 0 MiB"):
        list(read_batches(path, max_line_bytes=2**16))


def test_the_first_bad_byte_is_named():
    assert check_utf8("杆秤".encode(), Place("f")) == "杆秤"
    with pytest.raises(FileError, match=r"f:3: byte 4 is not UTF-8 \(0xff\)"):
        check_utf8(b"abc\xff", Place("f", 3))


_SOUND = np.random.default_rng(1).bytes(200)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("{\n}".encode("utf-16-le"), "UTF-16LE"),
        (b"PAR1", "Parquet"),
        (b"PK\x03\x04", "a zip archive"),
        (gzip.compress(b"PK\x03\x04", mtime=0), "a zip archive"),
        (b'\x48\x01\0\0\0\0\0\0{"weight":{"dtype":"F32"', r"weights of a model \(safetensors\)"),
        (b"\x89PNG\r\n\x1a\n", r"a picture \(PNG\)"),
        (b"%PDF-1.7\n", "PDF"),
        (b"\x80\x04\x95\x10", "a pickle of Python"),
        (b"\x93NUMPY\x01\0", "an array of NumPy"),
        (b"text\0\x01\x02", "binary"),
        (b"\xff\xfe\x90\x64" + _SOUND, "binary"),
        (gzip.compress(b"\xfe\xff" + _SOUND, mtime=0), "binary"),
        (b"\xff\xfe\0\0" + _SOUND, "binary"),
        (_SOUND.replace(b"\0", b""), "binary"),
    ],
    ids=[
        *("utf-16", "parquet", "zip", "zip in gzip", "safetensors", "png", "pdf", "pickle", "numpy", "others"),
        *("as utf-16", "as utf-16be in gzip", "as utf-32", "without zeros"),
    ],
)
def test_a_file_that_is_no_text_is_named_for_what_it_is(tmp_path, content, found):
    path = tmp_path / "f.jsonl"
    path.write_bytes(content)
    check_readable(path)  # a model's weights may begin with any bytes
    with pytest.raises(FileError, match=rf"f\.jsonl: this is {found}.*, not text in UTF-8\n  do: "):
        list(read_batches(path))


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("السؤال;الجواب\n\x02ما هذا؟;كتاب\n", "cp1256"),
        ("问题\t答案\n\x0b" * 40, "utf-16"),
        ("𝔘𝔫𝔦\x02" + " ﷺ 한글 🙂\n" * 40, "utf-32"),
        ("\x02" + "日本語の質問と答え、とても長い文章\n" * 40, "shift_jis"),
    ],
)
def test_a_text_with_a_control_character_is_not_taken_for_binary(text, encoding):
    assert not is_binary(text.encode(encoding)[:1023])


@pytest.mark.parametrize("start", ["<!DOCTYPE html>\n", "\n <HTML lang='en'>"])
def test_a_page_of_the_web_is_named_where_data_are_expected(tmp_path, start):
    for name in ("f.jsonl", "f.csv"):
        (tmp_path / name).write_text(f"{start}<body>Log in</body></html>\n", encoding="utf-8")
        with pytest.raises(FileError, match=r"this is a page of the web \(HTML\), not data\n  do: download"):
            check_text(tmp_path / name)
    (tmp_path / "prompts.txt").write_text(f"{start} why is this page blank?\n", encoding="utf-8")
    check_text(tmp_path / "prompts.txt")


@pytest.mark.parametrize("value", [[{"a": 1}], {"a": [1]}, ("a", 1), {"x"}, OrderedDict(a=1), np.ones(3)])
def test_a_pickle_that_is_text_is_named_as_one(tmp_path, value):
    path = tmp_path / "f.jsonl"
    path.write_bytes(pickle.dumps(value, protocol=0))
    with pytest.raises(FileError, match=r"f\.jsonl: this is a pickle of Python.*\n  do: it is not opened"):
        list(read_batches(path))


@pytest.mark.parametrize("text", ["category\nnews\npolitics\n", "(Version)\nprompt\n", "(dp)\n", "cat\ndog\nq (2)\n"])
def test_a_table_whose_words_resemble_a_pickle_is_read(tmp_path, text):
    path = tmp_path / "f.csv"
    path.write_text(text, encoding="utf-8")
    assert b"".join(next(read_batches(path)).lines) == text.encode()


@pytest.mark.parametrize("name", ["model.pt", "model.PTH", "model.bin"])
def test_weights_of_pytorch_are_not_taken_for_a_spreadsheet(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(FileError, match=r"this is weights of PyTorch, .*\n  do: .*the folder that holds its weights"):
        list(read_batches(path))


@pytest.mark.parametrize("content", [b"\n", b" \n\r\n\t\n", b"\xef\xbb\xbf"])
def test_a_file_of_blank_lines_is_as_good_as_empty(tmp_path, content):
    path = tmp_path / "f.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"f\.jsonl: the file has blank lines only"):
        list(read_batches(path))
