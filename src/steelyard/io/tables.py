"""Cases as Arrow tables and Parquet files, and foreign tables: Parquet files and Hugging Face datasets saved to disk.

In a table of cases every ``meta`` and ``spans`` is JSON text: Arrow has no column type for free-form keys. A value
that JSON cannot represent (NaN, bytes, dates) is an error; otherwise it would be read as null.
"""

from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import msgspec

from steelyard.core.errors import FileError, Place, RecordError
from steelyard.core.iteration import batched
from steelyard.core.types import Case, JsonObject
from steelyard.io.atomic import atomic_write
from steelyard.io.compression import open_unpacked
from steelyard.io.file_types import DATA_FORMATS, START_BYTES, is_binary, type_of
from steelyard.io.lines import bounded_memory, check_readable
from steelyard.io.run_folder import path_inside

if TYPE_CHECKING:
    from pyarrow import Table

_ROWS_AT_A_TIME = 1024
_MAX_BATCH_BYTES = 2 * 2**30
_JSON_COLUMNS = ("meta", "spans")


def is_parquet(path: Path) -> bool:
    """Return whether the file name ends in ``.parquet``, in letters of any case."""
    return path.suffix.lower() == ".parquet"


def is_saved_dataset(path: Path) -> bool:
    """Return whether the folder was written by ``datasets.Dataset.save_to_disk``."""
    return path.is_dir() and (path / "state.json").is_file() and any(path.glob("*.arrow"))


def read_table(path: Path) -> Iterator[JsonObject]:
    """Yield the rows of a foreign Parquet file or of a dataset saved to disk. Raises FileError if it is broken."""
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    if not is_saved_dataset(path):
        check_readable(path)
    try:
        if is_saved_dataset(path):
            for name in _shards(path):
                with pyarrow.memory_map(str(path_inside(path, name))) as source:
                    yield from _bounded_rows(pyarrow.ipc.open_stream(source), path)
        else:
            with pyarrow.parquet.ParquetFile(path) as file:
                yield from _bounded_rows(file.iter_batches(_ROWS_AT_A_TIME), path)
    except (pyarrow.ArrowException, OSError) as error:
        if path.is_file():
            _check_parquet(path)
        do = "copy or download it again"
        raise FileError(f"not a readable table ({error})", where=str(path), do=do) from error


def _check_parquet(path: Path) -> None:
    """Raise FileError that names what a file is that has another content than its name says."""
    with open_unpacked(path) as file:
        start = file.read(START_BYTES)
    kind = type_of(path, start)
    if kind is not None and kind.name != "Parquet":
        raise FileError(f"this is {kind.name}, not Parquet", where=str(path), do=kind.do)
    if kind is None and is_binary(start):
        raise FileError("this is binary, not Parquet", where=str(path), do=DATA_FORMATS)
    if kind is None:
        do = "give it the ending of its kind: .jsonl, .json, .csv or .tsv"
        raise FileError("this is text, not Parquet", where=str(path), do=do)


def _bounded_rows(batches: Iterable[Any], path: Path) -> Iterator[JsonObject]:
    """Yield the rows of batches. Raises FileError for a batch that takes more than 2 GiB when decoded."""
    remaining, num_before = iter(batches), 0
    while True:
        with bounded_memory(str(path), limit=_MAX_BATCH_BYTES):
            batch = next(remaining, None)
            try:
                rows = None if batch is None else batch.to_pylist()
            except UnicodeDecodeError as error:
                raise _not_utf8(batch, Place(str(path), num_before + 1)) from error
        if rows is None:
            return
        yield from rows
        num_before += len(rows)


def _not_utf8(batch: Any, first: Place) -> FileError:
    """Return the error for the first text of a batch that is not UTF-8; ``first`` is the place of its first row."""
    for number in range(batch.num_rows):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column[number].as_py()
            except UnicodeDecodeError as error:
                where = first._replace(line=(first.line or 1) + number, path=name)
                problem = f"byte {error.start + 1} of a text is not UTF-8 (0x{error.object[error.start]:02x})"
                return FileError(problem, where=where, do="write the table again with texts in UTF-8")
    raise AssertionError("a text of the batch is not UTF-8")


def read_parquet(path: Path) -> Iterator[JsonObject]:
    """Yield the rows of a Parquet case file with JSON columns decoded and nulls left out.

    Raises RecordError, with the row and the column, for a value that a case cannot hold.
    """
    yield from case_rows(read_table(path), str(path))


def _checked_row(row: JsonObject, place: Place) -> JsonObject:
    try:
        return _unpacked(row)
    except (msgspec.DecodeError, _UnfitError) as error:
        raise next(_unfit(row, place, "")) from error


def write_parquet(path: Path, rows: Iterable[JsonObject]) -> int:
    """Write cases as a Parquet case file; return their number."""
    import pyarrow.parquet

    schema, number = _case_schema(), 0
    with atomic_write(path) as file, pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for chunk in batched(rows, _ROWS_AT_A_TIME):
            writer.write_table(case_table(chunk))
            number += len(chunk)
    return number


def case_table(rows: Iterable[JsonObject]) -> "Table":
    """Return cases as an Arrow table with the columns of a Parquet case file."""
    import pyarrow

    return pyarrow.Table.from_pylist([_packed(row) for row in rows], schema=_case_schema())


def case_rows(rows: Iterable[JsonObject], name: str) -> Iterator[JsonObject]:
    """Yield rows of a table in memory as `read_parquet` yields those of a file; ``name`` is the table in errors."""
    for number, row in enumerate(rows, 1):
        yield _checked_row(row, Place(name, number))


def _case_schema() -> Any:
    import pyarrow

    return pyarrow.schema(_columns(Case))


class _Shard(msgspec.Struct):
    filename: str


class _State(msgspec.Struct):
    """The list of data files in ``state.json`` of a saved dataset."""

    shards: list[_Shard] = msgspec.field(name="_data_files")


def _shards(path: Path) -> list[str]:
    state = path / "state.json"
    check_readable(state)
    try:
        return [shard.filename for shard in msgspec.json.decode(state.read_bytes(), type=_State).shards]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(f"not the state of a saved dataset ({error})", where=str(state)) from error


def _packed(value: Any, key: str = "") -> Any:
    if key in _JSON_COLUMNS and value is not None:
        return msgspec.json.encode(value).decode()
    if isinstance(value, dict):
        return {name: _packed(inner, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(inner) for inner in value]
    return value


class _UnfitError(Exception):
    """A value that JSON cannot represent."""


def _unpacked(value: Any, key: str = "") -> Any:
    if isinstance(value, str):
        return msgspec.json.decode(value) if key in _JSON_COLUMNS else value
    if isinstance(value, dict):
        return {name: _unpacked(inner, name) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_unpacked(inner) for inner in value]
    if value is None or isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return value
    raise _UnfitError


def _unfit(value: Any, row: Place, path: str, key: str = "") -> Iterator[RecordError]:
    """Yield an error for each value of a row that a case cannot hold, with its column."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _unfit(inner, row, f"{path}.{name}".lstrip("."), name)
        return
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unfit(inner, row, f"{path}[{index}]")
        return
    try:
        _unpacked(value, key)
    except msgspec.DecodeError as error:
        yield RecordError(f"no JSON text ({error})", where=row._replace(path=path), allowed="JSON text, or null")
    except _UnfitError:
        is_number = isinstance(value, float)
        problem = f"the value is {value}" if is_number else f"a value of type {type(value).__name__}"
        allowed = "a finite number, or null" if is_number else "texts, numbers and lists, as in a .jsonl case file"
        yield RecordError(problem, where=row._replace(path=path), allowed=allowed)


def _columns(record: type[msgspec.Struct]) -> list[tuple[str, Any]]:
    """Derive the Arrow columns of a record from its type, so that the two cannot diverge."""
    fields = msgspec.structs.fields(record)
    return [(field.encode_name, _arrow_type(field.type, field.encode_name)) for field in fields]


def _arrow_type(annotation: Any, name: str) -> Any:
    import pyarrow

    arguments = [inner for inner in get_args(annotation) if inner is not type(None)]
    if name in _JSON_COLUMNS:
        return pyarrow.string()
    if get_origin(annotation) in (UnionType, Union):
        return _arrow_type(arguments[0], name)
    if get_origin(annotation) is tuple:
        return pyarrow.list_(_arrow_type(arguments[0], name))
    if get_origin(annotation) is Literal:
        return pyarrow.int64() if isinstance(arguments[0], int) else pyarrow.string()
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return pyarrow.struct(_columns(annotation))
    return {str: pyarrow.string(), float: pyarrow.float64()}[annotation]
