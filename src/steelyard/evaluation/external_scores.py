"""Scores from a file, one line per case, joined to the cases of a bench by id and language.

Two files with the same order of lines are read in parallel batches by worker processes. Otherwise a single process
joins them by key and reports the first error.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from steelyard.core.errors import Place, RecordError, choices
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Prompt, Response, Scores
from steelyard.io.cases import ScoredCase, checked_line, decode_case, decode_line, placed_lines
from steelyard.io.lines import MAX_BATCH_BYTES, LineRange, LineRanges

_CASES_AT_A_TIME = 1024
_Key = tuple[str, str | None]


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


def join_external_scores(cases: Iterable[Case], path: Path) -> Iterator[ScoredCase]:
    """Yield each case with its line of the scores file, in the order of the cases.

    Lines in another order are held in memory until their case. A line may omit the language if the prompt id is unique
    among the cases. An error reads ``cases`` a second time. Raises RecordError, with file and line, for an id that is
    unknown, repeated or missing, and for a score that is not a finite number.
    """
    lines = placed_lines(path, Scores)
    waiting: dict[_Key, tuple[Place, Scores]] = {}
    joined_without_language: set[str] = set()
    for case in cases:
        identifier = case.prompt.id
        while case.key not in waiting and (identifier, None) not in waiting:
            placed = next(lines, None)
            if placed is None or (placed[1].prompt, placed[1].language) in waiting:
                _refuse(path, cases)
            waiting[placed[1].prompt, placed[1].language] = placed
        if identifier in joined_without_language:
            _refuse(path, cases)
        key = case.key if case.key in waiting else (identifier, None)
        if key != case.key:
            joined_without_language.add(identifier)
        place, line = waiting.pop(key)
        yield ScoredCase(case, checked_line(case, line, place))
    if waiting or next(lines, None) is not None:
        _refuse(path, cases)


def _refuse(path: Path, cases: Iterable[Case]) -> NoReturn:
    """Raise the error of the first invalid line, or of the first case without a line."""
    keys = [_without_texts(case) for case in cases]
    places_of_id: dict[str, list[int]] = defaultdict(list)
    for index, case in enumerate(keys):
        places_of_id[case.prompt.id].append(index)
    line_of: dict[int, Place] = {}
    for place, line in placed_lines(path, Scores):
        index = _case_of(line, keys, places_of_id, place)
        if index in line_of:
            raise RecordError(f"prompt id {line.prompt!r} has its scores at {line_of[index]} already", where=place)
        line_of[index] = place
        checked_line(keys[index], line, place)
    missing = [case for index, case in enumerate(keys) if index not in line_of]
    assert missing, "every line fits and every case has one"
    raise RecordError(
        f"no line for prompt id {missing[0].prompt.id!r}, language {missing[0].prompt.language!r} "
        f"({len(missing)} of {number_of(len(keys), 'case')} {verb_for(len(missing), 'has', 'have')} none)",
        where=Place(str(path)),
        do="add a line for every case; a missing score is null, with its reason under `unscored`",
    )


def _without_texts(case: Case) -> Case:
    prompt = Prompt(id=case.prompt.id, language=case.prompt.language, messages=())
    return Case(prompt=prompt, responses=tuple(Response(id=response.id, text="") for response in case.responses))


def _case_of(line: Scores, cases: Sequence[Case], places_of_id: dict[str, list[int]], place: Place) -> int:
    places = places_of_id.get(line.prompt)
    if places is None:
        raise RecordError(
            f"unknown prompt id {line.prompt!r}", where=place, do=_nearest(line.prompt, list(places_of_id))
        )
    if line.language is None and len(places) == 1:
        return places[0]
    languages = {cases[index].prompt.language: index for index in places}
    if line.language not in languages:
        raise RecordError(
            f"prompt id {line.prompt!r} has no item of language {line.language!r}",
            where=place,
            allowed=", ".join(sorted(str(language) for language in languages)),
        )
    return languages[line.language]


def _nearest(name: str, known: list[str]) -> str:
    hint, mark, _ = choices(name, known).partition("? ")
    return f"{hint}? the ids are those of the bench's cases" if mark else "the ids are those of the bench's cases"
