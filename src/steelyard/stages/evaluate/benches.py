"""Reading benchmark files: case files as they are, raw foreign rows through their format, told apart by content."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.core.errors import FileError, KindError, RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Case
from steelyard.files.cases import read_cases
from steelyard.files.rows import read_rows


class ReadBench(NamedTuple):
    """The cases of all files of a bench, and what reading foreign rows noted."""

    cases: tuple[Case, ...]
    noted: dict[str, int]


def read_benches(files: Sequence[Path], bench: Any) -> ReadBench:
    """The cases of every file, placed in their subsets by the bench. Raises RecordError for a key in two files."""
    noted: Counter[str] = Counter()
    seen: dict[tuple[str, str | None], Path] = {}
    cases: list[Case] = []
    for path in files:
        for given in _cases_of(path, bench, noted):
            case = bench.prepared(given, path.name)
            if case.key in seen:
                raise RecordError(
                    f"prompt id {case.prompt.id!r}, language {case.prompt.language!r}, stands in {seen[case.key]} too",
                    where=str(path),
                    do="give each case its own id: a line of scores could not tell the two apart",
                )
            seen[case.key] = path
            cases.append(case)
    return ReadBench(tuple(cases), dict(noted))


def _cases_of(path: Path, bench: Any, noted: Counter[str]) -> Iterator[Case]:
    if _is_case_file(path):
        return read_cases(path)
    if bench.foreign is None:
        raise KindError(
            "not a case file",
            where=str(path),
            do="name the benchmark (--bench cheemsbench=FILE), or make a case file with `steelyard convert`",
        )
    return build("formats", bench.foreign).read(read_rows(path), noted)


def _is_case_file(path: Path) -> bool:
    first = next(iter(read_rows(path)), None)
    if first is None:
        raise FileError("the file holds no record", where=str(path))
    return "format" in first.value or isinstance(first.value.get("prompt"), dict)
