"""Rows of foreign files with their places: JSON lines, a JSON array, TSV, CSV, Parquet, a saved dataset, or text.

A CSV file is quoted as in RFC 4180, with commas, or with semicolons where its header has those alone. A TSV file is
read literally, quotation marks included, if each of its lines has a cell for each name of the header; otherwise it is
quoted like CSV. A ``.json`` file may also be one object around a list of rows, whose other texts and numbers belong to
each row. A ``.txt`` file that does not begin with a JSON object has a prompt in each line.
"""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from steelyard.core.errors import FileError, Place, RecordError, listed, repeated
from steelyard.core.protocols import Row
from steelyard.core.types import JsonObject
from steelyard.io.atomic import atomic_write
from steelyard.io.lines import (
    BYTE_ORDER_MARK,
    bounded_decoding,
    check_keys,
    check_readable,
    check_text,
    check_utf8,
    read_lines,
)
from steelyard.io.tables import is_parquet, is_saved_dataset, read_table

_TOO_DEEP = "lists within lists, too deep to be read"
_ENCODING_SAMPLE = 2**16
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_DELIMITERS = {".tsv": "\t", ".csv": ","}
_TEXT_SUFFIX = ".txt"
ROW_SUFFIXES = (".jsonl", ".json", ".parquet", *_DELIMITERS)
"""The endings of files that `read_rows` reads."""


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file or saved dataset. A row of a JSON array is placed by its index."""
    is_dataset = is_saved_dataset(path)
    if not is_dataset:
        check_readable(path)
    if is_dataset or is_parquet(path):
        for number, row in enumerate(read_table(path), 1):
            yield Row(Place(str(path), number), row)
    elif path.suffix in _DELIMITERS:
        yield from _delimited_rows(path)
    elif is_array(path):
        yield from _array_rows(path)
    elif path.suffix == _TEXT_SUFFIX and not _begins_with_object(path):
        for place, line in read_lines(path):
            yield Row(place, {"prompt": check_utf8(line, place).rstrip("\r\n")})
    elif path.suffix == ".json" and not _begins_with_object(path):
        yield from _wrapped_rows(path)
    else:
        for place, line in read_lines(path):
            yield _decode(line, place)


def write_rows(path: Path, rows: Iterable[JsonObject]) -> int:
    """Write rows as JSON lines (``.jsonl``), a JSON array (``.json``) or Parquet; return their number."""
    if path.suffix not in (".jsonl", ".json", ".parquet"):
        raise FileError(
            "cannot tell how to write this", where=str(path), allowed="a name ending in .jsonl, .json or .parquet"
        )
    if is_parquet(path):
        import pyarrow
        import pyarrow.parquet

        values = list(rows)
        # Without them, the columns would be those of the first row alone.
        names = dict.fromkeys(name for row in values for name in row)
        table = pyarrow.table({name: [row.get(name) for row in values] for name in names})
        with atomic_write(path) as file:
            pyarrow.parquet.write_table(table, file)
        return table.num_rows
    if path.suffix == ".json":
        array = list(rows)
        with atomic_write(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(array), indent=2) + b"\n")
        return len(array)
    number = 0
    with atomic_write(path) as file:
        for row in rows:
            file.write(msgspec.json.encode(row) + b"\n")
            number += 1
    return number


def is_array(path: Path) -> bool:
    """Return whether the file is one JSON array rather than one object a line."""
    with path.open("rb") as file:
        return file.read(64).removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"["


def _array_rows(path: Path) -> Iterator[Row]:
    place = Place(str(path))
    content = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    try:
        with bounded_decoding(len(content), place):
            rows = msgspec.json.decode(content, type=list)
            check_keys(content, rows, place)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        check_utf8(content, place)
        raise FileError(f"the JSON array is broken or cut off ({error})", where=place) from error
    except RecursionError as error:
        raise FileError(_TOO_DEEP, where=place) from error
    for index, row in enumerate(rows):
        yield _checked_row(row, Place(f"{path}[{index}]"))


def _begins_with_object(path: Path) -> bool:
    """Return whether the first line is a JSON object, whole or cut off; false for one that goes on in further lines."""
    _, line = next(read_lines(path))
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, RecursionError):
        # A cut line is broken inside; the first line of an indented object is one bracket and at most one field.
        return line.count(b'":') > 1


def _wrapped_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of the one list in an object over several lines, each with the texts and numbers around it."""
    place, content = Place(str(path)), path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    try:
        with bounded_decoding(len(content), place):
            whole = msgspec.json.decode(content)
            check_keys(content, whole, place)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        check_utf8(content, place)
        raise FileError(f"the JSON is broken or cut off ({error})", where=place) from error
    except RecursionError as error:
        raise FileError(_TOO_DEEP, where=place) from error
    fields = whole if isinstance(whole, dict) else {}
    lists = [key for key, value in fields.items() if isinstance(value, list)]
    if len(lists) != 1:
        if fields:
            yield Row(place, fields)
            return
        raise FileError("the file is neither rows nor one object with a list of rows", where=place)
    around = {key: value for key, value in fields.items() if isinstance(value, str | int | float)}
    for index, row in enumerate(fields[lists[0]]):
        where = Place(f"{path}:{lists[0]}[{index}]")
        yield Row(where, around | _checked_row(row, where).value)


def _decode(line: bytes, place: Place) -> Row:
    try:
        with bounded_decoding(len(line), place):
            row = msgspec.json.decode(line)
            check_keys(line, row, place)
        return _checked_row(row, place)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        check_utf8(line, place)
        raise RecordError(
            f"the line is not JSON, or cut off ({error})", where=place, allowed="one JSON object a line"
        ) from error
    except RecursionError as error:
        raise RecordError(_TOO_DEEP, where=place) from error


def _checked_row(row: Any, place: Place) -> Row:
    if not isinstance(row, dict):
        raise RecordError(f"a record that is {type(row).__name__}", where=place, allowed="an object with named fields")
    return Row(place, row)


def _delimited_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table, each placed by its first line. A last column whose name begins with # is a remark.

    Raises RecordError for a row whose cells do not match the header, FileError for a header with a repeated name.
    """
    is_literal = path.suffix == ".tsv" and _is_literal(path)
    cells = _literal_cells(path) if is_literal else _quoted_cells(path)
    place, names = next(cells, (Place(str(path)), ()))
    if not names:
        raise FileError("the table has no header", where=place, allowed="a first line of names")
    names = names[:-1] if names[-1].startswith("#") else names
    if len(set(names)) < len(names):
        raise FileError(f"the header has {repeated(names)!r} twice", where=place, allowed="names that are unique")
    has_rows = False
    for where, values in cells:
        has_rows = True
        if len(values) != len(names):
            problem = f"a row of {len(values)} cells under a header of {len(names)}"
            raise RecordError(problem, where=where, allowed=f"{len(names)} cells: {listed(names)}")
        if any("\0" in value for value in values):
            raise RecordError("a cell has a NUL character", where=where, do="write the table again as plain UTF-8")
        yield Row(where, dict(zip(names, values, strict=True)))
    if not has_rows:
        raise FileError("the table has a header and no rows", where=place)


def _is_literal(path: Path) -> bool:
    lines = (line for _, line in read_lines(path))
    header = next(lines).rstrip(b"\r\n").split(b"\t")
    num_tabs = len(header) - 1 - header[-1].startswith(b"#")
    return all(line.count(b"\t") == num_tabs for line in lines)


def _literal_cells(path: Path) -> Iterator[tuple[Place, Sequence[str]]]:
    for place, line in read_lines(path):
        yield place, check_utf8(line, place).removesuffix("\n").removesuffix("\r").split("\t")


def _quoted_cells(path: Path) -> Iterator[tuple[Place, Sequence[str]]]:
    check_text(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_delimiter(path), strict=True)
        number = 1
        try:
            for values in reader:
                if values:
                    yield Place(str(path), number), values
                number = reader.line_num + 1
        except UnicodeDecodeError as error:
            encoding = _likely_encoding(path)
            raise FileError(
                f"the table is not UTF-8 ({error.reason})",
                where=Place(str(path), number),
                do=f"convert it, here from {encoding}, and check the texts: iconv -f {encoding} -t UTF-8 "
                f"{quote(str(path))} > {quote(str(path.with_stem(f'{path.stem}-utf8')))}",
            ) from error
        except csv.Error as error:
            raise FileError(
                f"the table cannot be read ({error})",
                where=Place(str(path), number),
                do='close the quoted cell of this row; a quote within a cell is written twice: ""',
            ) from error


def _likely_encoding(path: Path) -> str:
    """Return GB18030 if the start of a file that is not UTF-8 reads as Chinese in it, else LATIN1 (any bytes).

    Accented Latin letters also decode as GB18030, but stand alone between ASCII letters: there, a character is Chinese
    by chance and swallows a letter. In Chinese text, most of the bytes above ASCII come in runs of two or more.
    """
    with path.open("rb") as file:
        start = file.read(_ENCODING_SAMPLE)
    runs = _HIGH_BYTES.findall(start)
    paired = sum(len(run) for run in runs if len(run) > 1)
    try:
        # The decoder holds back a character that the end of the sample cuts.
        codecs.getincrementaldecoder("gb18030")().decode(start)
    except UnicodeDecodeError:
        return "LATIN1"
    return "GB18030" if 2 * paired > sum(map(len, runs)) else "LATIN1"


def _delimiter(path: Path) -> str:
    """Return the delimiter of the file's suffix, for a .csv with semicolons alone in its first line a semicolon."""
    usual = _DELIMITERS[path.suffix]
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline()
    return ";" if usual == "," and "," not in header and ";" in header else usual
