"""What a report is made of: finished runs, read and told apart, with their curves, items and cases."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from steelyard.core.errors import FileError, Place, RecordError
from steelyard.core.types import Run
from steelyard.evaluation.comparison import ComparisonSummary
from steelyard.evaluation.languages import LanguagesSummary
from steelyard.evaluation.leaderboard import LeaderboardSummary
from steelyard.evaluation.measures.accuracy import Named
from steelyard.io.lines import read_batches
from steelyard.io.run_folder import STARTED_FILE, file_hash, read_run
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.measured_contents import MoreMeasured
from steelyard.report.stored import KnownCases, known_cases, stored_lines
from steelyard.report.summary_readers import (
    CurvePoint,
    Evaluation,
    Item,
    Training,
    model_name,
)

Part = TypeVar("Part", bound=msgspec.Struct)


class Source(NamedTuple):
    """One run: the name that the page gives it, its folder and its record."""

    name: str
    folder: Path
    run: Run


class CaseFile(NamedTuple):
    """A case file that a run wrote or read, and the stage that did."""

    path: Path
    stage: str
    sha256: str


def read_sources(folders: Sequence[Path]) -> tuple[Source, ...]:
    """The finished runs in these folders. Raises FileError for one that is not finished, or given twice."""
    found: list[Source] = []
    for folder in folders:
        if (folder / STARTED_FILE).is_file():
            raise FileError("this run did not finish", where=str(folder), do="run the same command again: it goes on")
        run = read_run(folder)
        if any(folder.resolve() == source.folder.resolve() for source in found):
            raise FileError("this run is given twice", where=str(folder), do="name each folder once")
        found.append(Source(_name(folder, found), folder, run))
    return tuple(found)


def of_stage(sources: Sequence[Source], stage: str) -> tuple[Source, ...]:
    """The runs of one stage, in the order given."""
    return tuple(source for source in sources if source.run.stage == stage)


def evaluation_of(source: Source) -> Named:
    """The summary of an evaluation, under its model's name. Raises RecordError if it is none."""
    evaluation = _summary(source, Evaluation)
    return Named(model_name(evaluation.model) or source.name, evaluation)


def comparison_of(source: Source) -> ComparisonSummary:
    """The summary of a run of ``compare``. Raises RecordError if it is none."""
    return _summary(source, ComparisonSummary)


def leaderboard_of(source: Source) -> LeaderboardSummary:
    """The summary of a run of ``leaderboard``. Raises RecordError if it is none."""
    return _summary(source, LeaderboardSummary)


def languages_of(source: Source) -> LanguagesSummary:
    """The summary of a run of ``languages``. Raises RecordError if it is none."""
    return _summary(source, LanguagesSummary)


def measures_of(source: Source) -> MoreMeasured:
    """What an evaluation measured beside its headline; nothing of one that did not. Raises RecordError if broken."""
    return _summary(source, MoreMeasured)


def resolution_of(source: Source) -> ResolveSummary:
    """The summary of a run of ``resolve``. Raises RecordError if it is none."""
    return _summary(source, ResolveSummary)


def training_of(source: Source) -> Training:
    """The summary of a run of ``train``. Raises RecordError if it is none."""
    return _summary(source, Training)


def items_of(source: Source) -> Sequence[Item]:
    """The per-item results of an evaluation, read when they are wanted; nothing where the run wrote none."""
    keys = [item.key for item in _lines(source, "items.jsonl", Item)]
    if not keys:
        return ()
    return stored_lines(source.folder / "items.jsonl", keys, partial(msgspec.json.decode, type=Item, strict=False))


def curve_of(source: Source) -> tuple[CurvePoint, ...]:
    """The curve of a training; nothing where the run wrote none."""
    return tuple(_lines(source, "curve.jsonl", CurvePoint))


def case_files(sources: Sequence[Source]) -> tuple[CaseFile, ...]:
    """The case files to take texts, judgments and rankings from, each content once.

    These are what stages before an evaluation wrote, and what evaluations read, where it still is what they read.
    """
    found: dict[str, CaseFile] = {}
    for source in sources:
        for path, sha256 in _candidates(source):
            if sha256 not in found and path.is_file() and file_hash(path) == sha256:
                found[sha256] = CaseFile(path, source.run.stage, sha256)
    return tuple(found.values())


def read_known_cases(files: Sequence[CaseFile]) -> dict[str, KnownCases]:
    """The cases by the name of their file, read when they are wanted.

    A bench file of another format is passed over: the page then has ids.
    """
    found: dict[str, KnownCases] = {}
    for file in files:
        try:
            cases = known_cases(file.path)
        except RecordError:
            if file.stage != "evaluate":
                raise
            continue
        name = file.stage if file.stage not in found else f"{file.stage} {len(found) + 1}"
        found[name] = cases
    return found


def _candidates(source: Source) -> Iterator[tuple[Path, str]]:
    run = source.run
    if run.stage == "evaluate":
        for role, given in run.inputs.items():
            if role.split(".")[0] in ("bench", "cases"):
                yield Path(given.path), given.sha256
                yield source.folder.parent / Path(given.path).parent.name / Path(given.path).name, given.sha256
        return
    for name, sha256 in run.outputs.items():
        if name in ("cases.jsonl", "cases.parquet"):
            yield source.folder / name, sha256


def _name(folder: Path, found: Sequence[Source]) -> str:
    name = folder.resolve().name
    taken = {source.name for source in found}
    return name if name not in taken else f"{folder.resolve().parent.name}/{name}"


def _summary(source: Source, kind: type[Part]) -> Part:
    place = Place(str(source.folder / "run.json"), path="summary")
    return _converted(source.run.summary, kind, place)


def _lines(source: Source, name: str, kind: type[Part]) -> Iterator[Part]:
    path = source.folder / name
    if name not in source.run.outputs and not path.is_file():
        return
    decoder = msgspec.json.Decoder(kind, strict=False)
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            place = Place(str(path), number)
            try:
                yield decoder.decode(line)
            except msgspec.ValidationError as error:
                raise _misfit(error, place) from error
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise RecordError(f"the line is not JSON, or cut off ({error})", where=place) from error


def _converted(value: object, kind: type[Part], place: Place) -> Part:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _misfit(error, place) from error


def _misfit(error: msgspec.ValidationError, place: Place) -> RecordError:
    return RecordError(f"not what the report reads there: {error}", where=place)
