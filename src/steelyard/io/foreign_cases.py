"""Cases of any format on disk: the files of a source, their rows read as cases, and cases written as rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from steelyard.core.errors import FileError, OutputError
from steelyard.core.protocols import Format, WrittenFormat
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.types import Case, JsonObject
from steelyard.curation.conversion import (
    ConversionTally,
    count_annotators,
    count_blanks,
    count_pictures,
    count_unranked,
    refuse_empty,
)
from steelyard.curation.format_support import has_pair_rows
from steelyard.curation.merge import split_rows
from steelyard.curation.uniform_columns import UniformColumns, with_uniform_columns
from steelyard.io.cases import CASE_SUFFIXES, read_case_files
from steelyard.io.compression import data_suffix
from steelyard.io.data_files import case_roles, expand_inputs
from steelyard.io.encodings import EncodingError, check_encoding
from steelyard.io.lineage import check_dataset_name
from steelyard.io.rows import ROW_SUFFIXES, TextForm, is_array, read_rows, write_rows
from steelyard.io.tables import is_parquet


def source_files(sources: Sequence[Path], *, dataset_name: str | None, encoding: str | None) -> dict[str, Path]:
    """Return the data files of files, folders and patterns, by role. Raises ConfigError for a name or an encoding."""
    check_dataset_name(dataset_name, where="dataset_name")
    check_encoding(encoding, where="encoding")
    # A text file is read where it is named: in a folder it could be a licence or a note.
    files = expand_inputs(sources, ROW_SUFFIXES, what="data file", do="check the path and the names")
    return case_roles(files, "source")


@contextmanager
def encoding_as_setting() -> Iterator[None]:
    """Name the setting ``encoding`` in the error for a file of another encoding: no other verb has it."""
    try:
        yield
    except EncodingError as error:
        if error.encoding is None:
            raise
        encoding = Remedy("encoding", error.encoding)
        do = Advice(f"say its encoding, here {error.encoding}, and check the texts: ", encoding)
        raise FileError(error.problem, where=error.where, do=do) from error


def read_foreign_cases(
    files: Sequence[Path],
    form: TextForm,
    *,
    reader: Format,
    is_own: bool,
    warnings: Counter[str],
    tally: ConversionTally,
) -> Iterator[Case]:
    """Return the cases of files of one format; blank responses and rows with pictures are counted.

    ``is_own``: they are case files.
    """
    are_lines = all(data_suffix(file) in CASE_SUFFIXES and not is_json_array(file, form) for file in files)
    if is_own and form.encoding is None and are_lines:
        return count_blanks(read_case_files(files), warnings)
    read = chain.from_iterable(read_rows(file, form, warnings=warnings) for file in files)
    rows = count_pictures(tally.rows(read, reader.keys), warnings)
    if has_pair_rows(reader.supports):
        rows = count_annotators(rows, reader.keys, warnings)
    return count_blanks(reader.read(rows, warnings), warnings)


def is_json_array(file: Path, form: TextForm) -> bool:
    """Return whether the input is one JSON array; a dataset saved to disk is none."""
    return file.is_file() and not is_parquet(file) and is_array(file, form.encoding)


def write_foreign_cases(
    out: Path,
    cases: Iterable[Case],
    writer: WrittenFormat,
    kind: str,
    *,
    dropped: Counter[str],
    taken: Counter[str],
    ranked_by: Advice,
) -> int:
    """Write cases in a format and return the number of rows; parts that it cannot hold are counted.

    ``taken`` counts the cases that were yielded. Raises EvidenceError where they leave no row, with ``ranked_by`` where
    they have judgments to rank them by.
    """
    cases = count_unranked(cases, taken)
    rows = chain.from_iterable(map(split_rows, cases)) if has_pair_rows(writer.supports) else cases
    return _write_rows(out, refuse_empty(writer.write(rows, dropped), kind, dropped, taken, ranked_by=ranked_by))


def ranking_advice(files: Sequence[Path], *, is_own: bool) -> Advice:
    """Return the commands that rank the cases of files by their judgments; other formats become case files first."""
    names = tuple(map(str, files))
    made = Command("convert", (*names, "cases.jsonl"))
    resolved = Command("resolve", names if is_own else ("cases.jsonl",), (Remedy("out", "resolved"),))
    steps = (resolved,) if is_own else (made, " && ", resolved)
    return Advice("make rankings from judgments: ", *steps, ", then convert resolved/cases.jsonl")


def _write_rows(out: Path, rows: Iterable[JsonObject]) -> int:
    """Write the rows with columns of one type; a file whose columns differ is written a second time."""
    if not is_parquet(out):
        columns = UniformColumns()
        num_written = write_rows(out, columns.watch(rows))
        return (
            write_rows(out, (columns.uniform(row.value) for row in read_rows(out))) if columns.differ else num_written
        )
    import pyarrow

    try:
        return write_rows(out, with_uniform_columns(rows))
    except pyarrow.ArrowException as error:
        problem = f"these rows do not fit into columns of one type each ({error})"
        raise OutputError(problem, where=str(out), do="name a .jsonl file") from error
