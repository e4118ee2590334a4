"""Reading benchmark files: case files as they are, raw foreign rows through their format, told apart by content."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from steelyard.core.errors import FileError, KindError, RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Case
from steelyard.io.cases import read_cases
from steelyard.io.rows import is_array, read_rows
from steelyard.io.tables import is_parquet


class BenchCases:
    """The cases of a bench's files, placed in their subsets by the bench; read anew whenever they are gone through.

    ``warnings`` holds what the last reading of foreign rows counted. Raises RecordError for a key in two files.
    """

    def __init__(self, files: Sequence[Path], bench: Any) -> None:
        self.warnings: dict[str, int] = {}
        self._files = tuple(files)
        self._bench = bench
        self._size: int | None = None

    def __iter__(self) -> Iterator[Case]:
        warnings: Counter[str] = Counter()
        # A digest a case: a table of all keys would outgrow the columns that the measures need.
        seen: set[bytes] = set()
        for path in self._files:
            for read in _cases_of(path, self._bench, warnings):
                case = self._bench.normalize(read, path.name)
                digest = _digest(case)
                if digest in seen:
                    raise self._repeated(case, path)
                seen.add(digest)
                yield case
        self.warnings = dict(warnings)
        self._size = len(seen)

    def __len__(self) -> int:
        if self._size is None:
            deque(self, maxlen=0)
        assert self._size is not None, "counted by going through all"
        return self._size

    @property
    def line_files(self) -> tuple[Path, ...] | None:
        """The files, where every line of each is a case as it stands; None where some hold foreign rows or Parquet."""
        are_lines = all(not is_parquet(path) and _is_case_file(path) and not is_array(path) for path in self._files)
        return self._files if are_lines else None

    def _repeated(self, case: Case, path: Path) -> RecordError:
        earlier = next(
            file for file in self._files for one in _cases_of(file, self._bench, Counter()) if one.key == case.key
        )
        return RecordError(
            f"prompt id {case.prompt.id!r}, language {case.prompt.language!r}, stands in {earlier} too",
            where=str(path),
            do="give each case its own id: a line of scores could not tell the two apart",
        )


def _digest(case: Case) -> bytes:
    key = f"{case.prompt.id}\x1f{case.prompt.language or ''}"
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _cases_of(path: Path, bench: Any, warnings: Counter[str]) -> Iterator[Case]:
    if _is_case_file(path):
        return read_cases(path)
    if bench.source_format is None:
        raise KindError(
            "not a case file",
            where=str(path),
            do="name the benchmark (--bench cheemsbench=FILE), or make a case file with `steelyard convert`",
        )
    return build("formats", bench.source_format).read(read_rows(path), warnings)


def _is_case_file(path: Path) -> bool:
    first = next(iter(read_rows(path)), None)
    if first is None:
        raise FileError("the file holds no record", where=str(path))
    return "format" in first.value or isinstance(first.value.get("prompt"), dict)
