"""`Cases`: an immutable list of checked cases, made from values, rows and tables in memory, and written as these.

Tables are exchanged through the Arrow PyCapsule interface, so that polars, pandas, DuckDB and pyarrow all work and none
is needed. A Hugging Face dataset is read through its own Arrow format.
"""

import html
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, overload, runtime_checkable

import msgspec
import numpy as np

from steelyard.api.arguments import check_value
from steelyard.api.wording import in_python
from steelyard.core.checks import check_case
from steelyard.core.errors import ConfigError, EvidenceError, MissingPartError, Place, RecordError, UserError
from steelyard.core.text import number_of, response_text, verb_for
from steelyard.core.types import Case, JsonObject
from steelyard.io.cases import decode_case, read_cases, write_cases
from steelyard.ranking.pairs import pairs_of

if TYPE_CHECKING:
    import pyarrow

_NAME = "cases"
"""The name of cases in memory in errors, where a file would have its path."""
_SHOWN, _MOST_CHARACTERS = 5, 160


@runtime_checkable
class ArrowStream(Protocol):
    """A table of another library: pyarrow, polars, pandas, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as a PyCapsule of an Arrow stream."""
        ...


@runtime_checkable
class ArrowDataset(Protocol):
    """A Hugging Face ``datasets.Dataset``."""

    def with_format(self, type: str) -> Any:  # noqa: A002  the name is of that library
        """Return the dataset with rows of this type."""
        ...


@runtime_checkable
class HoldsCases(Protocol):
    """The result of a verb, which stands for the cases that it wrote."""

    def __cases__(self) -> "Cases":
        """Return the cases."""
        ...


TableLike: TypeAlias = ArrowStream | ArrowDataset | Iterable[Mapping[str, object]]
CasesLike: TypeAlias = str | PathLike[str] | Iterable[Case] | HoldsCases | TableLike
"""The path of a case file, cases in memory, a result that holds cases, rows, or a table of any known format."""


class SourceFile(NamedTuple):
    """The file that cases were read from; ``size`` and ``changed`` tell whether it still holds them.

    ``owner`` keeps a temporary file alive; null for a file of the user.
    """

    path: Path
    size: int
    changed: int
    owner: object

    def is_current(self) -> bool:
        """Return whether the file was not changed since."""
        return self == file_state(self.path, self.owner)


def file_state(path: Path, owner: object = None) -> SourceFile | None:
    """Return the present state of a file; null if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return SourceFile(path, stat.st_size, stat.st_mtime_ns, owner)


class Cases:
    """An immutable list of cases: with an index, slices, an Arrow table, and a view in notebooks.

    ``source`` is anything that holds cases: a path, an iterable of `Case`, rows (dictionaries), or a table: pyarrow,
    polars, pandas, DuckDB, or ``datasets.Dataset``. Rows with the columns of a case file are read as they are; others
    (``prompt``, ``chosen``, ``rejected``, …) are recognised by their columns as in `convert`, and the rows of one
    prompt become one case. Raises RecordError for an inconsistent case and KindError for columns of no known format.

    >>> cases = sy.Cases([{"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}])
    >>> cases
    Cases(1 prompt, 2 responses)
    >>> [response.text for response in cases[0].responses]
    ['4', '5']
    """

    # Not a subclass of Sequence: polars reads those item by item, before it looks for an Arrow table.
    __slots__ = ("_cases", "_file")

    def __init__(self, source: CasesLike = ()) -> None:
        self._file: SourceFile | None = None
        if isinstance(source, HoldsCases):
            source = source.__cases__()
        if isinstance(source, Cases):
            self._cases, self._file = source._cases, source._file
        elif isinstance(source, str | PathLike):
            self._file = file_state(Path(source))
            self._cases = tuple(read_cases(Path(source)))
        elif isinstance(source, ArrowStream | ArrowDataset):
            self._cases = _cases_of_rows(rows_of(source))
        else:
            check_value("source", source, CasesLike, where="Cases")
            items = list(source)
            cases = [item for item in items if isinstance(item, Case)]
            self._cases = _checked(cases) if len(cases) == len(items) else _cases_of_rows(rows_of(items))

    @classmethod
    def of_file(cls, path: Path, owner: object) -> "Cases":
        """Read a case file; ``owner`` keeps it alive where it is temporary."""
        cases = cls(path)
        cases._file = file_state(path, owner)
        return cases

    @property
    def file(self) -> SourceFile | None:
        """The file that holds exactly these cases; null if there is none, or if it was changed."""
        return self._file if self._file is not None and self._file.is_current() else None

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> "Cases": ...
    def __getitem__(self, index: int | slice) -> "Case | Cases":
        """Return one case, or the cases of a slice."""
        return _unchecked(self._cases[index]) if isinstance(index, slice) else self._cases[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cases) and self._cases == other._cases

    __hash__ = None  # a case holds dictionaries

    def __repr__(self) -> str:
        numbers = {
            "prompt": len(self),
            "response": sum(len(case.responses) for case in self),
            "judgment": sum(len(case.judgments) for case in self),
            "rating": sum(len(case.ratings) for case in self),
        }
        parts = [f"{number:,} {name}{'' if number == 1 else 's'}" for name, number in numbers.items() if number]
        return f"Cases({', '.join(parts) or 'none'})"

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th>{name}</th>" for name in ("id", "language", "prompt", "responses, best first", "judgments")
        )
        rows = "".join(f"<tr>{''.join(map(_cell, _cells(case)))}</tr>" for case in self._cases[:_SHOWN])
        more = f"<p>… {len(self) - _SHOWN:,} more</p>" if len(self) > _SHOWN else ""
        title = html.escape(repr(self))
        return f"<p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"

    def filter(self, keeps: Callable[[Case], bool]) -> "Cases":
        """Return the cases for which the function is true.

        >>> cases.filter(lambda case: case.prompt.language == "zh")
        Cases(none)
        """
        return _unchecked(tuple(case for case in self._cases if keeps(case)))

    def find(self, prompt: str, language: str | None = None) -> Case:
        """Return the case of a prompt id. Raises EvidenceError if there is none, or one in several languages."""
        matches = [case for case in self if case.prompt.id == prompt and language in (None, case.prompt.language)]
        if len(matches) != 1:
            problem = (
                f"{number_of(len(matches), 'case')} {verb_for(len(matches), 'has', 'have')} the prompt id {prompt!r}"
            )
            raise EvidenceError(
                problem, do="name the language too" if matches else "look at [case.key for case in cases]"
            )
        return matches[0]

    def to_dicts(self) -> list[JsonObject]:
        """Return the cases as dictionaries, as they are in a case file."""
        return [msgspec.to_builtins(case) for case in self]

    def to_arrow(self) -> "pyarrow.Table":
        """Return a pyarrow Table with a row for each case; ``meta`` and ``spans`` are JSON text.

        polars and DuckDB read cases directly: ``pl.DataFrame(cases)``, ``duckdb.sql("from cases")``.
        """
        from steelyard.io.tables import case_table

        return case_table(self.to_dicts())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_datasets(self) -> Any:
        """Return a ``datasets.Dataset`` with a row for each case. Raises MissingPartError without that library."""
        try:
            import datasets
        except ImportError as error:
            raise MissingPartError.of_import(error, "datasets") from error
        return datasets.Dataset(self.to_arrow())

    def to_pairs(self, *, texts: bool = False) -> list[JsonObject]:
        """Return a row with ``prompt``, ``chosen`` and ``rejected`` for each pair, as TRL's trainers read them.

        A case that lists pairs has those; any other has every pair across the tiers of its ranking. All rows are lists
        of turns, which TRL writes with the model's chat template; with ``texts`` all are texts, without it. Raises
        ConfigError where texts cannot hold all turns.

        >>> cases.to_pairs(texts=True)
        [{'prompt': '2 + 2?', 'chosen': '4', 'rejected': '5'}]
        """
        from steelyard.core.plugins import build
        from steelyard.curation.merge import split_rows
        from steelyard.curation.uniform_columns import with_uniform_columns

        rows = (row for case in self if pairs_of(case) for row in split_rows(case))
        return with_uniform_columns(build("formats", "trl", {"texts": texts}).write(rows, Counter()))

    def save(self, path: str | PathLike[str]) -> int:
        """Write a case file, ``.jsonl`` or ``.parquet``, and return the number of cases."""
        return write_cases(Path(path), self)


def _unchecked(cases: tuple[Case, ...]) -> Cases:
    """Return cases that were checked before."""
    chosen = Cases()
    chosen._cases = cases
    return chosen


def _checked(cases: Iterable[Case]) -> tuple[Case, ...]:
    by_key: dict[tuple[str, str | None], Case] = {}
    for number, case in enumerate(cases, 1):
        place = Place(_NAME, number)
        try:
            check_case(case)
        except RecordError as error:
            raise error.at(place) from error
        if case.key in by_key:
            problem = f"prompt id {case.prompt.id!r}, language {case.prompt.language!r}, is there twice"
            raise RecordError(problem, where=place, do="give each case its own id, or use sy.merge")
        by_key[case.key] = case
    return tuple(by_key.values())


def rows_of(source: Iterable[object] | TableLike) -> list[JsonObject]:
    """Return the rows of a table or of an iterable. Raises RecordError for a value without named fields."""
    import pyarrow

    if isinstance(source, ArrowStream):
        try:
            items: Iterable[object] = pyarrow.table(source).to_pylist()
        except pyarrow.ArrowInvalid as error:
            problem = f"{type(source).__name__} holds no named columns"
            raise ConfigError(problem, where=_NAME, allowed="a table, not a column of one") from error
    elif isinstance(source, ArrowDataset):
        # The table of a dataset holds all of its rows, its Arrow format those that are selected.
        items = source.with_format("arrow")[:].to_pylist()
    else:
        items = source
    rows: list[JsonObject] = []
    for number, row in enumerate(items, 1):
        if not isinstance(row, Mapping):
            allowed = "cases, or rows with named fields"
            do = "give each file as a value of its own, not in a list" if isinstance(row, str | PathLike) else None
            problem = f"a value of type {type(row).__name__}"
            raise RecordError(problem, where=Place(_NAME, number), allowed=allowed, do=do)
        try:
            rows.append({str(key): _plain(value) for key, value in row.items()})
        except UnicodeEncodeError as error:
            half = f"half of a character (\\u{ord(error.object[error.start]):04x}, a surrogate without its pair)"
            raise RecordError(half, where=Place(_NAME, number), do="write the whole character, or remove it") from error
        except TypeError as error:
            allowed = "texts, numbers, lists, dictionaries, null"
            raise RecordError(str(error), where=Place(_NAME, number), allowed=allowed) from error
    return rows


def _plain(value: Any) -> Any:
    """Return a cell without values of numpy and without bytes of text.

    Raises UnicodeEncodeError for a surrogate, and TypeError for a value that JSON cannot hold.
    """
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, str):
        value.encode()
        return str.__str__(value)  # of a class of its own, such as a member of an enumeration
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    elif not isinstance(value, int | float | None):
        msgspec.json.encode(value)
    return value


def _cases_of_rows(rows: Sequence[JsonObject]) -> tuple[Case, ...]:
    """Return the cases of rows: of a case file, or of any other format, which is recognised by its fields."""
    from steelyard.io.tables import case_rows

    if all(isinstance(row.get("prompt"), Mapping) and "responses" in row for row in rows):
        lines = map(msgspec.json.encode, case_rows(map(_with_json, rows), _NAME))
        return _checked(decode_case(line, Place(_NAME, number)) for number, line in enumerate(lines, 1))
    from steelyard.io.rows import write_rows
    from steelyard.stages.convert import convert

    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        file = Path(folder) / "rows.jsonl"
        write_rows(file, rows)
        try:
            convert(file, Path(folder) / "cases.jsonl")
        except UserError as error:
            raise in_python(error, {str(file): _NAME}) from error
        return tuple(read_cases(Path(folder) / "cases.jsonl"))


def _with_json(value: Any, key: str = "") -> Any:
    """Return a row in which free-form fields are JSON text, as they are in a table of cases."""
    if key in ("meta", "spans") and value is not None and not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    if isinstance(value, Mapping):
        return {name: _with_json(inner, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_json(inner) for inner in value]
    return value


def _cells(case: Case) -> tuple[str, ...]:
    texts = {response.id: response_text(response) for response in case.responses}
    ranked = [" = ".join(map(_short, (texts[name] for name in tier))) for tier in case.ranking or ()]
    turns = "\n".join(message.content for message in case.prompt.messages)
    responses = " › ".join(ranked) if ranked else f"{len(texts)}, not ranked"
    return (case.prompt.id, case.prompt.language or "", _short(turns), responses, f"{len(case.judgments):,}")


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _cell(text: str) -> str:
    return f'<td dir="auto" style="text-align: start">{html.escape(text)}</td>'
