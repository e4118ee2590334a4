"""Tables of delimited text (``.tsv``, ``.csv``): a header, then a row a line, every value a text.

A CSV file is quoted as RFC 4180 has it. A TSV file is read as it stands, quotation marks being text like any other,
if each of its lines has a cell for each name of the header; else it is quoted like CSV.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from steelyard.core.errors import FileError, Place, RecordError, listed, repeated
from steelyard.core.protocols import Row
from steelyard.io.lines import check_text, check_utf8, read_batches

_DELIMITERS = {".tsv": "\t", ".csv": ","}


def is_delimited(path: Path) -> bool:
    """Whether the name is that of a TSV or CSV file."""
    return path.suffix in _DELIMITERS


def read_delimited(path: Path) -> Iterator[Row]:
    """The rows of the file, each placed by its first line. A last name that begins with ``#`` is a remark, and no cell.

    Raises RecordError for a row of another number of cells than the header, FileError for a header with a name twice.
    """
    is_plain = path.suffix == ".tsv" and _is_plain(path)
    cells = _plain_cells(path) if is_plain else _quoted_cells(path)
    place, names = next(cells, (Place(str(path)), ()))
    if not names:
        raise FileError("the table has no header", where=place, allowed="a first line of names")
    names = names[:-1] if names[-1].startswith("#") else names
    if len(set(names)) < len(names):
        raise FileError(f"the header has {repeated(names)!r} twice", where=place, allowed="names that are unique")
    for where, values in cells:
        if len(values) != len(names):
            found = f"a row of {len(values)} cells under a header of {len(names)}"
            raise RecordError(found, where=where, allowed=f"{len(names)} cells: {listed(names)}")
        if any("\0" in value for value in values):
            raise RecordError("a cell has a NUL character", where=where, do="write the table anew as plain UTF-8")
        yield Row(where, dict(zip(names, values, strict=True)))


def _is_plain(path: Path) -> bool:
    lines = (line for batch in read_batches(path) for line in batch.lines)
    header = next(lines).rstrip(b"\r\n").split(b"\t")
    num_tabs = len(header) - 1 - header[-1].startswith(b"#")
    return all(line.count(b"\t") == num_tabs for line in lines)


def _plain_cells(path: Path) -> Iterator[tuple[Place, Sequence[str]]]:
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            place = Place(batch.file, number)
            yield place, check_utf8(line, place).removesuffix("\n").removesuffix("\r").split("\t")


def _quoted_cells(path: Path) -> Iterator[tuple[Place, Sequence[str]]]:
    check_text(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=_DELIMITERS[path.suffix], strict=True)
        number = 1
        try:
            for values in reader:
                if values:
                    yield Place(str(path), number), values
                number = reader.line_num + 1
        except (csv.Error, UnicodeDecodeError) as error:
            raise FileError(f"the table cannot be read ({error})", where=Place(str(path), number)) from error
