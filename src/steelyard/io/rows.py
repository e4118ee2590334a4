"""Rows of foreign files: JSON lines, a JSON array, Parquet, TSV, CSV, or a saved dataset; each with its place."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.errors import FileError, Place, RecordError
from steelyard.core.protocols import Row
from steelyard.io.atomic import atomic_write
from steelyard.io.delimited import is_delimited, read_delimited
from steelyard.io.lines import bounded_decoding, check_keys, check_readable, check_utf8, read_batches
from steelyard.io.tables import is_parquet, is_saved_dataset, read_table

_TOO_DEEP = "lists within lists, too deep to be read"


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file or saved dataset. A row of a JSON array is placed by its index, for want of a line."""
    if is_saved_dataset(path):
        yield from _placed(path, read_table(path))
        return
    check_readable(path)
    if is_parquet(path):
        yield from _placed(path, read_table(path))
    elif is_delimited(path):
        yield from read_delimited(path)
    elif is_array(path):
        yield from _array_rows(path)
    else:
        for batch in read_batches(path):
            for number, line in zip(batch.numbers, batch.lines, strict=True):
                yield _decoded(line, Place(batch.file, number))


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Writes rows as JSON lines (``.jsonl``), a JSON array (``.json``) or Parquet, and returns how many."""
    if path.suffix not in (".jsonl", ".json", ".parquet"):
        raise FileError(
            "cannot tell how to write this", where=str(path), allowed="a name ending in .jsonl, .json or .parquet"
        )
    if is_parquet(path):
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.Table.from_pylist(list(rows))
        with atomic_write(path) as file:
            pyarrow.parquet.write_table(table, file)
        return table.num_rows
    if path.suffix == ".json":
        everything = list(rows)
        with atomic_write(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(everything), indent=2) + b"\n")
        return len(everything)
    number = 0
    with atomic_write(path) as file:
        for row in rows:
            file.write(msgspec.json.encode(row) + b"\n")
            number += 1
    return number


def _placed(path: Path, rows: Iterable[dict[str, Any]]) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        yield Row(Place(str(path), number), row)


def is_array(path: Path) -> bool:
    """Whether the file is one JSON array rather than one object a line."""
    with path.open("rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _array_rows(path: Path) -> Iterator[Row]:
    place = Place(str(path))
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
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
        own = Place(f"{path}[{index}]")
        yield Row(own, _checked_row(row, own))


def _decoded(line: bytes, place: Place) -> Row:
    try:
        with bounded_decoding(len(line), place):
            row = msgspec.json.decode(line)
            check_keys(line, row, place)
        return Row(place, _checked_row(row, place))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        check_utf8(line, place)
        raise RecordError(
            f"the line is not JSON, or cut off ({error})", where=place, allowed="one JSON object a line"
        ) from error
    except RecursionError as error:
        raise RecordError(_TOO_DEEP, where=place) from error


def _checked_row(row: Any, place: Place) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise RecordError(f"a record that is {type(row).__name__}", where=place, allowed="an object with named fields")
    return row
