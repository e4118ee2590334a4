"""Rows of foreign files with their places: JSON lines, a JSON array, TSV, CSV, Parquet, a saved dataset, or text.

Files may be compressed (`open_unpacked`). A CSV file is quoted as in RFC 4180, with commas, or with semicolons or
tabs where these divide its header into more cells, or where Excel's first line ``sep=;`` says so. A cell of turns is a
list. `_TsvQuotes` decides whether the quotation marks of a TSV file enclose its cells, unless `TextForm` does. A
``.json`` file may also be one object around a list of rows, whose other texts and numbers belong to each row. A
``.txt`` file that does not begin with a JSON object has a prompt in each line, or is a TSV file if a header says so:
spreadsheets save "Unicode text" under this name.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.errors import FileError, Place, RecordError, listed, repeated
from steelyard.core.protocols import Row
from steelyard.core.text import number_of
from steelyard.core.types import JsonObject
from steelyard.io.atomic import atomic_write
from steelyard.io.compression import data_suffix
from steelyard.io.encodings import BYTE_ORDER_MARK, check_utf8, open_text
from steelyard.io.json_text import decode_json, decode_list
from steelyard.io.lines import MAX_LINE_BYTES, check_text, numbered_lines, read_lines, read_whole
from steelyard.io.tables import is_parquet, is_saved_dataset, read_table

_TEXT_SUFFIX = ".txt"
_DELIMITERS = {".tsv": "\t", ".csv": ","}
_TABS = (".tsv", _TEXT_SUFFIX)
_ROW_LISTS = ("data", "rows", "items", "examples", "records", "instances")
_MARK = '"'
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""The first line by which a file tells Excel what divides its cells."""
_ROLES = {"role", "from"}
"""The keys of a turn's sender."""
QUOTES_AS_TEXT = "cells read with the quotation marks around them (quotes=cells removes them)"
"""The counter of cells of a TSV file that begin and end with a mark, in a file without evidence of quoting."""
Quotes = Literal["cells", "literal"]
ROW_SUFFIXES = (".jsonl", ".json", ".parquet", *_DELIMITERS)
"""The endings of files that `read_rows` reads, compressed or not."""


class TextForm(NamedTuple):
    """The form of text files.

    ``quotes`` tells whether marks enclose the cells of a TSV file, or are text; null decides by its content.
    ``encoding`` is that of `open_text`: null stands for UTF-8, or for that of a byte order mark.
    """

    quotes: Quotes | None = None
    encoding: str | None = None


UTF8 = TextForm()


def read_rows(path: Path, form: TextForm = UTF8, *, warnings: Counter[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a file or saved dataset. A row of a JSON array is placed by its index.

    Cells of a TSV file with doubtful quotation marks are counted in ``warnings``.
    """
    if is_saved_dataset(path) or is_parquet(path):
        for number, row in enumerate(read_table(path), 1):
            yield Row(Place(str(path), number), row)
        return
    encoding = form.encoding
    check_text(path, encoding)
    suffix = data_suffix(path)
    if suffix in _DELIMITERS or (suffix == _TEXT_SUFFIX and _has_header(path, encoding)):
        yield from _delimited_rows(path, form, Counter() if warnings is None else warnings)
    elif is_array(path, encoding):
        for index, row in enumerate(decode_json(read_whole(path, encoding), Place(str(path)), list)):
            yield _checked_row(row, Place(f"{path}[{index}]"))
    elif suffix == _TEXT_SUFFIX and not _begins_with_object(path, encoding):
        for place, line in read_lines(path, encoding):
            yield Row(place, {"prompt": check_utf8(line, place).rstrip("\r\n")})
    elif suffix == ".json" and (not _begins_with_object(path, encoding) or _is_wrapped(path, encoding)):
        yield from _wrapped_rows(path, encoding)
    else:
        for place, line in read_lines(path, encoding):
            yield _checked_row(decode_json(line, place), place)


def write_rows(path: Path, rows: Iterable[JsonObject]) -> int:
    """Write rows as JSON lines (``.jsonl``), a JSON array (``.json``) or Parquet; return their number."""
    if path.suffix.lower() not in (".jsonl", ".json", ".parquet"):
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
    if path.suffix.lower() == ".json":
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


def is_array(path: Path, encoding: str | None = None) -> bool:
    """Return whether the file is one JSON array rather than one object a line."""
    with open_text(path, encoding) as file:
        return file.read(64).removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"["


def _begins_with_object(path: Path, encoding: str | None) -> bool:
    """Return whether the first line is a JSON object, whole or cut off; false for one that goes on in further lines."""
    _, line = next(read_lines(path, encoding))
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A cut line is broken inside; the first line of an indented object is one bracket and at most one field.
        return line.count(b'":') > 1


def _has_header(path: Path, encoding: str | None) -> bool:
    """Return whether a text begins with different names between tabs, and a row of as many cells."""
    lines = [line.rstrip(b"\r\n") for _, line in islice(read_lines(path, encoding), 2)]
    names = [name.strip() for name in lines[0].split(b"\t")]
    is_row = len(lines) > 1 and (lines[1].count(b"\t") == len(names) - 1 or lines[1].count(_MARK.encode()) % 2 == 1)
    return len(names) > 1 and all(names) and len(set(names)) == len(names) and is_row


def _is_wrapped(path: Path, encoding: str | None) -> bool:
    """Return whether a file is one line: an object with a list of rows under a usual name, and texts around it."""
    (_, line), *others = islice(read_lines(path, encoding), 2)
    if others:
        return False
    try:
        fields = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    lists = [key for key, value in fields.items() if not isinstance(value, str | int | float | None)]
    return len(lists) == 1 and lists[0] in _ROW_LISTS and isinstance(fields[lists[0]], list)


def _wrapped_rows(path: Path, encoding: str | None) -> Iterator[Row]:
    """Yield the rows of the one list in an object over several lines, each with the texts and numbers around it."""
    place = Place(str(path))
    whole = decode_json(read_whole(path, encoding), place)
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


def _checked_row(row: Any, place: Place) -> Row:
    if not isinstance(row, dict):
        raise RecordError(f"a record that is {type(row).__name__}", where=place, allowed="an object with named fields")
    return Row(place, row)


def _delimited_rows(path: Path, form: TextForm, warnings: Counter[str]) -> Iterator[Row]:
    """Yield the rows of a table, each placed by its first line. A last column whose name begins with # is a remark.

    Raises RecordError for a row whose cells do not match the header, FileError for a header with a repeated name.
    """
    is_literal, encoding = False, form.encoding
    if data_suffix(path) in _TABS:
        evidence = _tsv_quotes(path, encoding)
        is_literal = form.quotes == "literal" or (form.quotes is None and evidence.is_literal())
        if is_literal and form.quotes is None and evidence.num_wrapped:
            warnings[QUOTES_AS_TEXT] += evidence.num_wrapped
    cells = _used_cells(_literal_cells(path, encoding) if is_literal else _quoted_cells(path, encoding))
    place, names = next(cells, (Place(str(path)), ()))
    if not names:
        raise FileError("the table has no header", where=place, allowed="a first line of names")
    names = names[:-1] if names[-1].startswith("#") else names
    if len(set(names)) < len(names):
        problem = f"the header has {repeated(names)!r} twice"
        # Merged cells of a spreadsheet are one name and empty ones.
        do = None if repeated(names) else "give each column a name in one line, without merged cells"
        raise FileError(problem, where=place, allowed="names that are unique", do=do)
    has_rows = False
    for where, values in cells:
        has_rows = True
        if len(values) != len(names):
            raise _wrong_length(values, names, where)
        if any("\0" in value for value in values):
            raise RecordError("a cell has a NUL character", where=where, do="write the table again as plain UTF-8")
        yield Row(where, dict(zip(names, map(_cell, values), strict=True)))
    if not has_rows:
        raise FileError("the table has a header and no rows", where=place)


def _wrong_length(values: Sequence[str], names: Sequence[str], where: Place) -> RecordError:
    """Return the error of a row with more or fewer cells than the header; titles and notes have one cell."""
    do = None
    if len(names) == 1:
        do = "begin with the line of names, if that is a title above it"
    elif len(names) > 2 and sum(map(bool, values)) == 1:
        do = "leave out this line, if it is a note"
    problem = f"a row of {number_of(len(values), 'cell')} under a header of {len(names)}"
    return RecordError(problem, where=where, allowed=f"{number_of(len(names), 'cell')}: {listed(names)}", do=do)


def _used_cells(rows: Iterable[tuple[Place, Sequence[str]]]) -> Iterator[tuple[Place, Sequence[str]]]:
    """Yield the rows with a text, without empty columns at the end: spreadsheets save cells that were in use once."""
    width = num_named = 0
    for place, values in rows:
        if any(values):
            if not width:
                width = len(values)
                num_named = max(number for number, name in enumerate(values, 1) if name)
            # A single column without a name may hold remarks.
            is_unused = len(values) == width > num_named + 1 and not any(values[num_named:])
            yield place, values[:num_named] if is_unused else values


def _cell(text: str) -> Any:
    """Return the turns that a cell holds as a list, any other cell as its text."""
    turns = decode_list(text) if text.lstrip().startswith("[") and "{" in text else None
    return turns if turns and all(isinstance(turn, dict) and turn.keys() & _ROLES for turn in turns) else text


class _TsvQuotes(NamedTuple):
    """The evidence of a TSV file for its quotation marks: around cells, or part of their text.

    ``has_quoted_header``: a name in marks. ``num_doubled`` counts cells in marks with doubled marks inside, as quoting
    writes them; ``num_lone`` cells that quoting could not write (``"a" and "b"``); ``num_wrapped`` other cells in
    marks. ``is_regular``: each line has a cell for each name, so that no cell can hold a tab or a line feed.
    """

    has_quoted_header: bool
    is_regular: bool
    num_doubled: int
    num_lone: int
    num_wrapped: int

    def is_literal(self) -> bool:
        """Return whether the marks are text."""
        return self.is_regular and not self.has_quoted_header and (self.num_lone > 0 or not self.num_doubled)


def _tsv_quotes(path: Path, encoding: str | None) -> _TsvQuotes:
    lines = (line.rstrip(b"\r\n") for _, line in read_lines(path, encoding))
    header = next(lines).split(b"\t")
    num_tabs = len(header) - 1 - header[-1].startswith(b"#")
    is_regular, counts, mark = not any(b"\r" in name for name in header), Counter[str](), _MARK.encode()
    for line in lines:
        is_regular = is_regular and line.count(b"\t") == num_tabs and b"\r" not in line
        for cell in line.split(b"\t") if mark in line else ():
            if cell.startswith(mark):
                inside = cell[1:-1] if len(cell) > 1 and cell.endswith(mark) else mark
                is_lone = mark in inside.replace(mark * 2, b"")
                counts["lone" if is_lone else "doubled" if mark in inside else "wrapped"] += 1
    is_quoted = any(len(name) > 1 and name.startswith(mark) and name.endswith(mark) for name in header)
    return _TsvQuotes(is_quoted, is_regular, counts["doubled"], counts["lone"], counts["wrapped"])


def _literal_cells(path: Path, encoding: str | None) -> Iterator[tuple[Place, Sequence[str]]]:
    for place, line in read_lines(path, encoding):
        yield place, check_utf8(line, place).removesuffix("\n").removesuffix("\r").split("\t")


def _quoted_cells(path: Path, encoding: str | None) -> Iterator[tuple[Place, Sequence[str]]]:
    lines = _text_lines(path, encoding)
    first, num_before = next(lines, ""), 0
    delimiter = "\t" if data_suffix(path) in _TABS else ","
    if delimiter == "," and (separator := _SEPARATOR.fullmatch(first)):
        delimiter, first, num_before = separator[1], next(lines, ""), 1
    elif delimiter == ",":
        # Marks that stand in quotation marks divide nothing.
        unquoted = re.sub(r'"[^"]*"', "", first)
        delimiter = max(",;\t", key=unquoted.count)
    # 131,072 characters by default: a long response is longer. The limit is one of the process.
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    number = 1 + num_before
    try:
        for values in reader:
            if values:
                yield Place(str(path), number), values
            number = reader.line_num + 1 + num_before
    except csv.Error as error:
        raise FileError(
            f"the table cannot be read ({error})",
            where=Place(str(path), number),
            do='close the quoted cell of this row; a quote within a cell is written twice: ""',
        ) from error


def _text_lines(path: Path, encoding: str | None) -> Iterator[str]:
    """Yield every line with its end, which may also be a carriage return alone."""
    for number, line in numbered_lines(path, encoding=encoding):
        # Not `splitlines`, which would also end lines at U+2028.
        yield from io.StringIO(check_utf8(line, Place(str(path), number)), newline="")
