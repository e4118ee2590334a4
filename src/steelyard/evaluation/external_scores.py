"""Scores and cases in files with the same order of lines, read in parallel batches by worker processes.

In any other order a single process joins them by key (`JoinedScores`) and reports the first error.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.core.errors import Place
from steelyard.core.types import Scores
from steelyard.io.cases import checked_line, decode_case, decode_line
from steelyard.io.lines import MAX_BATCH_BYTES, LineRange, LineRanges
from steelyard.io.scored_cases import ScoredCase

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
        name = Path(self.cases.file).name
        scored: list[ScoredCase] = []
        num_without_language = 0
        lines = zip(*self.cases.read()[1:], *self.scores.read()[1:], strict=True)
        for number, case_line, score_number, score_line in lines:
            case = bench.normalize(decode_case(case_line, Place(self.cases.file, number)), name)
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
