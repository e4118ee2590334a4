"""The sources of a report: finished runs with their summaries, curves, items and cases.

Of a large file the keys are in memory, and a line is decoded again when it is needed.
"""

import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Generic, NamedTuple, TypeVar, overload

import msgspec

from steelyard.core.errors import FileError, Place, RecordError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case, Run
from steelyard.evaluation.items import ScoredItem
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.compression import compression_of
from steelyard.io.hashing import file_hash
from steelyard.io.json_text import json_error
from steelyard.io.lineage import RECORD_SUFFIX, record_folder
from steelyard.io.lines import read_lines
from steelyard.io.progress import track
from steelyard.io.run_folder import RUN_FILE, STARTED_FILE, read_run
from steelyard.io.tables import is_parquet
from steelyard.report.items import Key, is_simulated
from steelyard.report.training_curves import CurvePoint

_READERS = ("evaluate", "audit")
"""The stages whose case files are those that they read."""
_BOM = b"\xef\xbb\xbf"
Part = TypeVar("Part", bound=msgspec.Struct)
Value = TypeVar("Value")


class FinishedRun(NamedTuple):
    """One run: its name on the page, its folder and its record."""

    name: str
    folder: Path
    run: Run


class RunCaseFile(NamedTuple):
    """A case file that a run wrote or read, and the stage of that run."""

    path: Path
    stage: str
    sha256: str


class StoredLines(Sequence[Value], Generic[Value]):
    """The values of a file's lines, decoded on access; ``keys`` has the key of each. The file must not change."""

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
    """The cases of one file, and whether one of them is marked as simulated."""

    cases: Sequence[Case]
    is_simulated: bool


def read_sources(folders: Sequence[Path]) -> tuple[FinishedRun, ...]:
    """Return the finished runs in these folders, or those of these files that have a record.

    Raises FileError for an unfinished run and for one named twice.
    """
    sources: list[FinishedRun] = []
    for path in folders:
        folder = record_folder(path) if path.is_file() and (record_folder(path) / RUN_FILE).is_file() else path
        if (folder / STARTED_FILE).is_file():
            raise FileError("this run did not finish", where=str(folder), do="run the same again: it goes on")
        run = read_run(folder)
        if any(folder.resolve() == source.folder.resolve() for source in sources):
            raise FileError("this run is given twice", where=str(folder), do="name each folder once")
        sources.append(FinishedRun(_name(folder, sources), folder, run))
    return tuple(sources)


def of_stage(sources: Sequence[FinishedRun], stage: str) -> tuple[FinishedRun, ...]:
    """Return the runs of one stage, in their order."""
    return tuple(source for source in sources if source.run.stage == stage)


def summary_of(source: FinishedRun, kind: type[Part]) -> Part:
    """Return the summary of a run as a value of ``kind``. Raises RecordError if it is of another kind."""
    try:
        return msgspec.convert(source.run.summary, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _misfit(error, Place(str(source.folder / "run.json"), path="summary")) from error


def items_of(source: FinishedRun) -> Sequence[ScoredItem]:
    """Return the results by item of an evaluation, read on access; empty where the run wrote none."""
    keys = [item.key for item in read_records(source, "items.jsonl", ScoredItem)]
    if not keys:
        return ()
    decode = partial(msgspec.json.decode, type=ScoredItem)
    return StoredLines((source.folder / "items.jsonl").open("rb"), keys, decode)


def curve_of(source: FinishedRun) -> tuple[CurvePoint, ...]:
    """Return the curve of a training; empty where the run wrote none."""
    return tuple(read_records(source, "curve.jsonl", CurvePoint))


def case_files(sources: Sequence[FinishedRun]) -> tuple[RunCaseFile, ...]:
    """Return the case files with texts, judgments and rankings, each content once.

    They are files that stages before an evaluation wrote, and those that evaluations and audits read if unchanged.
    """
    files: dict[str, RunCaseFile] = {}
    for source in sources:
        for path, sha256 in _candidates(source):
            if sha256 not in files and path.is_file() and path.stat().st_size and file_hash(path) == sha256:
                files[sha256] = RunCaseFile(path, source.run.stage, sha256)
    return tuple(files.values())


def read_known_cases(files: Sequence[RunCaseFile]) -> dict[str, KnownCases]:
    """Return the cases by the name of their file, read on access.

    A bench file of another format is passed over: the page then has ids.
    """
    known: dict[str, KnownCases] = {}
    for file in files:
        try:
            cases = _known_cases(file.path)
        except RecordError:
            if file.stage != "evaluate":
                raise
            continue
        name = file.stage if file.stage not in known else f"{file.stage} {len(known) + 1}"
        known[name] = cases
    return known


def _known_cases(path: Path) -> KnownCases:
    """Read a case file, which checks it, and remember its keys. Raises the errors of `read_cases`."""
    keys: list[Key] = []
    has_simulated = False
    # The rows of a Parquet or compressed file cannot be read one by one: they are stored as lines.
    copy = TemporaryFile() if is_parquet(path) or compression_of(path) else None  # noqa: SIM115 (StoredLines closes it)
    for case in track(read_cases(path), f"reading {path.name}"):
        keys.append(case.key)
        has_simulated = has_simulated or is_simulated(case)
        if copy is not None:
            copy.write(encode_case(case))
    decoder = msgspec.json.Decoder(Case)
    return KnownCases(StoredLines(copy or path.open("rb"), keys, decoder.decode), has_simulated)


def _line_starts(file: IO[bytes]) -> Sequence[int]:
    """Return where each line begins that is not blank."""
    starts = array("q")
    file.seek(0)
    start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(start)
    for line in file:
        if not line.isspace():
            starts.append(start)
        start += len(line)
    return starts


def _candidates(source: FinishedRun) -> Iterator[tuple[Path, str]]:
    run = source.run
    if run.stage in _READERS:
        for role, file in run.inputs.items():
            if role.split(".")[0] in ("bench", "cases"):
                yield Path(file.path), file.sha256
                yield source.folder.parent / Path(file.path).parent.name / Path(file.path).name, file.sha256
        return
    for name, sha256 in run.outputs.items():
        if name in ("cases.jsonl", "cases.parquet"):
            yield source.folder / name, sha256


def _name(folder: Path, sources: Sequence[FinishedRun]) -> str:
    name = folder.resolve().name.removesuffix(RECORD_SUFFIX)
    taken = {source.name for source in sources}
    return name if name not in taken else f"{folder.resolve().parent.name}/{name}"


def read_records(source: FinishedRun, name: str, kind: type[Part]) -> Iterator[Part]:
    """Yield the lines of a file of the run; nothing if the run wrote none. Raises RecordError for a broken line."""
    path = source.folder / name
    if name not in source.run.outputs and not path.is_file():
        return
    if not path.is_file():
        do = Advice(f"run steelyard {source.run.stage.replace('_', '-')} again with ", Remedy("force", value=True))
        raise FileError("the run wrote this file, and it is gone", where=str(path), do=do)
    if not path.stat().st_size:
        return
    decoder = msgspec.json.Decoder(kind, strict=False)
    for place, line in read_lines(path):
        try:
            yield decoder.decode(line)
        except msgspec.ValidationError as error:
            raise _misfit(error, place) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise json_error(line, place, error) from error


def _misfit(error: msgspec.ValidationError, place: Place) -> RecordError:
    return RecordError(f"the report cannot read this record: {error}", where=place)
