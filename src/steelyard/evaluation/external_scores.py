"""A file of scores made elsewhere, evaluated line by line in worker processes, or joined to the cases by key."""

from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from steelyard.core.errors import Place
from steelyard.core.plugins import build
from steelyard.core.types import Scores
from steelyard.evaluation.batches import BatchResult, evaluate_batch, evaluate_scored, join_parts
from steelyard.evaluation.benches import BenchCases, item_identity, normalize_case
from steelyard.evaluation.config import TRAINED_BASELINE, Config, choose_baselines
from steelyard.evaluation.model_evaluation import FinishedEvaluation, ModelNames
from steelyard.evaluation.source import Source
from steelyard.io.cases import checked_line, decode_case, decode_line
from steelyard.io.lines import MAX_BATCH_BYTES, LineRange, LineRanges
from steelyard.io.progress import bar, track
from steelyard.io.run_folder import Result
from steelyard.io.scored_cases import HashCoverage, JoinedScores, ScoredCase, hash_findings, is_score_table
from steelyard.plugins.reward_models import build_model

_WORTH_PROCESSES_BYTES = 2**25

_CASES_AT_A_TIME = 1024


class AlignmentError(Exception):
    """The lines of the scores are not in the order of the cases."""


class CheckedScores(NamedTuple):
    """Cases with their scores, and the number of lines that omit the language of their case."""

    scored: list[ScoredCase]
    num_without_language: int


class SideBySide(NamedTuple):
    """A range of lines of a bench file and the same range of a scores file: the task of a worker."""

    cases: LineRange
    scores: LineRange

    def checked(self, bench: Any) -> CheckedScores:
        """Read, decode and normalise the cases, and check their scores.

        Raises AlignmentError if the keys of a case and its line differ.
        """
        scored: list[ScoredCase] = []
        num_without_language = 0
        lines = zip(*self.cases.read()[1:], *self.scores.read()[1:], strict=True)
        for number, case_line, score_number, score_line in lines:
            place = Place(self.cases.file, number)
            case = normalize_case(bench, decode_case(case_line, place), place)
            place = Place(self.scores.file, score_number)
            line = decode_line(score_line, place, Scores)
            if line.prompt != case.prompt.id or line.language not in (None, case.prompt.language):
                raise AlignmentError
            num_without_language += line.language != case.prompt.language
            scored.append(ScoredCase(case, checked_line(case, line, place)))
        return CheckedScores(scored, num_without_language)


def side_by_side(files: Sequence[Path], scores: Path) -> Iterator[SideBySide]:
    """Yield ranges of lines of the bench's files and the scores. Raises AlignmentError for unequal numbers of lines."""
    score_ranges = LineRanges(scores)
    for path in files:
        case_ranges = LineRanges(path)
        while (cases := case_ranges.take(_CASES_AT_A_TIME, max_bytes=MAX_BATCH_BYTES)).num_lines:
            lines = score_ranges.take(cases.num_lines)
            if lines.num_lines < cases.num_lines:
                raise AlignmentError
            yield SideBySide(cases, lines)
    if score_ranges.take(1).num_lines:
        raise AlignmentError


def evaluate_scores(
    source: Source, result: Result, scores: Path, train_cases: Path | None, workers: int | None
) -> FinishedEvaluation:
    """Evaluate a scores file: line by line in workers if the order matches the cases, else joined by key."""
    coverage = HashCoverage()
    try:
        evaluation = join_parts(source, result, _parts(source, scores, train_cases, workers, coverage))
    except AlignmentError:
        joined = JoinedScores(source.cases, scores, left_out=source.cases.left_out)
        evaluation = join_parts(source, result, evaluate_scored(source, track(joined, "evaluating")))
        coverage = joined.coverage
    result.findings += hash_findings(coverage, result)
    return FinishedEvaluation(evaluation, ModelNames.of_scores(scores))


def _parts(
    source: Source, scores: Path, train_cases: Path | None, workers: int | None, coverage: HashCoverage
) -> Iterator[BatchResult]:
    """Evaluate the lines of both files in parallel, with one process per core for large files."""
    files = source.cases.line_files
    if files is None or is_score_table(scores):
        raise AlignmentError
    if workers is None:
        is_large = sum(path.stat().st_size for path in files) > _WORTH_PROCESSES_BYTES
        # Every process would train the n-gram baseline again.
        workers = 0 if is_large and TRAINED_BASELINE not in source.baselines else 1
    function = partial(evaluate_lines, msgspec.json.encode(source.config), train_cases)
    parts = build("engines", "local", {"workers": workers}).map(function, side_by_side(files, scores))
    # Hashes detect repeated keys in little memory; at equal hashes one process joins by the keys themselves.
    keys, ids = array("q"), array("q")
    num_without_language = 0
    with bar("evaluating", None) as progress:
        for part in parts:
            keys.extend(map(hash, part.keys))
            ids.extend(hash(identifier) for identifier, _ in part.keys)
            num_without_language += part.num_without_language
            coverage.join(part.hashes)
            yield part
            progress.advance(len(part.columns.start))
    has_repeated_ids = len(np.unique(ids)) < len(ids)
    if has_repeated_ids and (num_without_language or len(np.unique(keys)) < len(keys)):
        raise AlignmentError


def evaluate_lines(config: bytes, train_cases: Path | None, lines: SideBySide) -> BatchResult:
    """Decode, check and evaluate one batch of lines in a worker. ``config`` is encoded as JSON."""
    source = _built(config, train_cases)
    checked = lines.checked(source.bench)
    part = evaluate_batch(source, checked.scored)
    keys = tuple(item_identity(case) for case, _ in checked.scored)
    return part._replace(keys=keys, num_without_language=checked.num_without_language)


@lru_cache(maxsize=1)
def _built(config: bytes, train_cases: Path | None) -> Source:
    """Build the bench and the baselines, once per process."""
    settings = msgspec.json.decode(config, type=Config)
    bench = build("benches", settings.bench_kind, settings.bench)
    baselines = {choice.name: build_model(choice) for choice in choose_baselines(settings, train_cases)}
    return Source(BenchCases((), bench), bench, settings, baselines)
