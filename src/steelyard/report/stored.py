"""What a report takes of large files: the key of each line is held, and a line is decoded again when it is wanted."""

import weakref
from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Generic, NamedTuple, TypeVar, overload

import msgspec

from steelyard.core.types import Case
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.progress import track
from steelyard.io.tables import is_parquet
from steelyard.report.items import Key, is_simulated

_BOM = b"\xef\xbb\xbf"
Value = TypeVar("Value")


class Stored(Sequence[Value], Generic[Value]):
    """The values of a file's lines, by position; ``keys`` has the key of each. The file must stay as it is."""

    def __init__(self, file: IO[bytes], keys: Sequence[Key], decode: Callable[[bytes], Value]) -> None:
        self.keys = keys
        self._file = file
        self._decode = decode
        self._starts = _line_starts(file)
        assert len(self._starts) == len(keys), "a key for each line"
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        self._file.seek(self._starts[index])
        return self._decode(self._file.readline())


class KnownCases(NamedTuple):
    """The cases of one file, and whether one of them says that it is simulated."""

    cases: Sequence[Case]
    is_simulated: bool


def known_cases(path: Path) -> KnownCases:
    """Read a case file through, which checks it, and keep its keys. Raises what `read_cases` raises."""
    keys: list[Key] = []
    has_simulated = False
    # The rows of a Parquet file cannot be read one by one: they are laid aside as lines.
    copy = TemporaryFile() if is_parquet(path) else None  # noqa: SIM115 (whoever reads the lines closes it)
    for case in track(read_cases(path), f"reading {path.name}"):
        keys.append(case.key)
        has_simulated = has_simulated or is_simulated(case)
        if copy is not None:
            copy.write(encode_case(case))
    decoder = msgspec.json.Decoder(Case)
    return KnownCases(Stored(copy or path.open("rb"), keys, decoder.decode), has_simulated)


def stored_lines(path: Path, keys: Iterable[Key], decode: Callable[[bytes], Value]) -> Sequence[Value]:
    """Return the values of a file of lines; ``keys`` come from whoever reads it through and checks it."""
    return Stored(path.open("rb"), list(keys), decode)


def _line_starts(file: IO[bytes]) -> Sequence[int]:
    """Where each line begins that is not blank."""
    starts = array("q")
    file.seek(0)
    start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(start)
    for line in file:
        if not line.isspace():
            starts.append(start)
        start += len(line)
    return starts
