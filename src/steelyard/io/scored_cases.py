"""Cases with their lines of a score file, joined by id and language: the one reader of scores for all stages.

Score files are JSON lines, as `steelyard score` writes them, or tables of other tools with a row a response: CSV, TSV,
Parquet, or JSON.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple, NoReturn

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError, UserError, choices
from steelyard.core.names import name_key
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Input, InputFinding, Prompt, Response, Scores
from steelyard.io.cases import checked_line, placed_lines
from steelyard.io.compression import data_suffix
from steelyard.io.rows import read_rows
from steelyard.io.run_folder import Result, run_beside

_Key = tuple[str, str | None]
_COLUMNS = {"prompts": ("prompt_id", "id", "prompt"), "responses": ("response_id", "response")}
_COLUMNS |= {"scores": ("score", "reward"), "languages": ("language", "lang")}
"""The names of the columns of a table; of several, the first one counts."""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_ABSENT = ("", "nan", "null", "none", "na", "n/a", "-")
NO_NUMBER, NO_ROW = "no number in the table", "no row in the table"
"""The reasons of responses that a table of scores leaves without one."""
_ROLES = ("cases", "bench", "calibration_cases", "judged")
"""The inputs of a run whose texts are scored."""


class ScoredCase(NamedTuple):
    """A case and its line of scores, which was checked against it."""

    case: Case
    scores: Scores


class HashCoverage:
    """Count the lines that do not say which texts were scored."""

    def __init__(self, lines: Iterable[Scores] = ()) -> None:
        self.num_lines = self.num_without = 0
        for line in lines:
            self.add(line)

    def add(self, line: Scores) -> None:
        """Count one line."""
        self.num_lines += 1
        self.num_without += not line.hashes

    def join(self, other: "HashCoverage") -> None:
        """Add the counts of another batch."""
        self.num_lines += other.num_lines
        self.num_without += other.num_without

    def findings(self, scores: Input, cases: Sequence[Input]) -> tuple[InputFinding, ...]:
        """Return a finding if some lines have no hashes, so that scores of other texts would go unseen.

        The record beside the scores, if it is theirs, names the files that were scored: there is none for equal files.
        """
        if not self.num_without:
            return ()
        run = run_beside(Path(scores.path))
        inputs = run.inputs if run is not None and scores.sha256 in run.outputs.values() else {}
        scored = {file.sha256 for role, file in inputs.items() if role.split(".")[0] in _ROLES}
        is_comparable = bool(scored and cases)
        if is_comparable and all(file.sha256 in scored for file in cases):
            return ()
        check = "scores_of_other_files" if is_comparable else "scores_without_hashes"
        details = {"file": Path(scores.path).name}
        return (InputFinding(check=check, count=self.num_without, total=self.num_lines, details=details),)


class JoinedScores:
    """Each case with its line of a score file, in the order of the cases; every iteration reads both again.

    Lines in another order are held in memory until their case. A line may omit the language if the prompt id is unique
    among the cases. An error reads ``cases`` a second time. Iterating raises RecordError, with file and line, for an id
    that is unknown, repeated or missing, for a score that is not a finite number, and for scores of other texts than
    those of the case. ``coverage`` counts the lines of the last iteration. Responses without a row of a table have no
    score.
    """

    def __init__(self, cases: Iterable[Case], path: Path, *, left_out: Set[str] = frozenset()) -> None:
        self._cases = cases
        self._file = _ScoresFile(path, left_out)
        self.coverage = HashCoverage()

    def __iter__(self) -> Iterator[ScoredCase]:
        self.coverage = HashCoverage()
        for scored in _joined(self._cases, self._file):
            self.coverage.add(scored.scores)
            yield scored


def is_score_table(path: Path) -> bool:
    """Return whether the scores are a table with a row a response: by the ending of the file, for JSON by its rows."""
    if data_suffix(path) in (".csv", ".tsv", ".parquet"):
        return True
    try:
        first = next(read_rows(path), None)
    except UserError:
        return False  # the reader of lines names the place
    names = set() if first is None else set(map(name_key, first.value))
    return "scores" not in names and not names.isdisjoint(_COLUMNS["scores"])


def placed_scores(path: Path) -> Iterator[tuple[Place, Scores]]:
    """Yield the lines of scores with their places; the rows of a table by prompt, at the place of the first one.

    Raises RecordError for a broken line or row, and for a table without prompts, responses or scores.
    """
    if not is_score_table(path):
        yield from placed_lines(path, Scores)
        return
    lines: dict[_Key, tuple[Place, dict[str, float | None]]] = {}
    columns: dict[str, str] = {}
    for row in read_rows(path):
        columns = columns or _columns(tuple(row.value), row.place)
        values = {kind: row.value.get(column) for kind, column in columns.items()}
        cells = {kind: "" if value is None else str(value).strip() for kind, value in values.items()}
        prompt, response = cells["prompts"], cells["responses"]
        if absent := next((kind for kind in ("prompts", "responses") if values[kind] is None), None):
            raise RecordError("the row has no value here", where=row.at(columns[absent]), allowed="an id")
        _, scores = lines.setdefault((prompt, cells.get("languages") or None), (row.place, {}))
        if response in scores:
            problem = f"response {response!r} of prompt {prompt!r} has a score above"
            raise RecordError(problem, where=row.place, allowed="one row a response")
        scores[response] = _number(cells["scores"], row.at(columns["scores"]))
    for (prompt, language), (place, scores) in lines.items():
        unscored = {name: NO_NUMBER for name, score in scores.items() if score is None}
        yield place, Scores(prompt=prompt, language=language, scores=scores, unscored=unscored)


def _columns(header: Sequence[str], place: Place) -> dict[str, str]:
    """Return the name of the column of each kind; languages may be absent."""
    by_key = {name_key(name): name for name in header}
    columns = {kind: next((by_key[name] for name in names if name in by_key), None) for kind, names in _COLUMNS.items()}
    for kind, column in columns.items():
        if column is None and kind != "languages":
            allowed = f"a column {' or '.join(map(repr, _COLUMNS[kind]))}; there are {', '.join(map(repr, header))}"
            raise RecordError(f"no column has the {kind}", where=place._replace(line=1), allowed=allowed)
    return {kind: column for kind, column in columns.items() if column is not None}


def _number(cell: str, place: Place) -> float | None:
    """Return the number of a cell, null where it stands for none. Raises RecordError for another text."""
    text = cell.replace("\N{MINUS SIGN}", "-")
    if text.casefold() in _ABSENT:
        return None
    if _NUMBER.fullmatch(text) is None:
        has_comma = _DECIMAL_COMMA.fullmatch(text) is not None
        allowed = "a decimal point" if has_comma else "a number, or an empty cell for a missing score"
        raise RecordError(f"the score is {cell[:40]!r}", where=place, allowed=allowed)
    return float(text)


def with_every_response(case: Case, line: Scores) -> Scores:
    """Return the line of a table with a null for each response without a row."""
    absent = [response.id for response in case.responses if response.id not in line.scores]
    unscored = {**line.unscored, **dict.fromkeys(absent, NO_ROW)}
    return replace(line, scores={**line.scores, **dict.fromkeys(absent)}, unscored=unscored)


class _ScoresFile(NamedTuple):
    """A file of scores, and the ids of prompts whose lines are not read: those that a bench leaves out."""

    path: Path
    left_out: Set[str]

    def lines(self) -> Iterator[tuple[Place, Scores]]:
        """Yield the lines to join with their places."""
        return (placed for placed in placed_scores(self.path) if placed[1].prompt not in self.left_out)


def _joined(cases: Iterable[Case], file: _ScoresFile) -> Iterator[ScoredCase]:
    lines, is_table = file.lines(), is_score_table(file.path)
    waiting: dict[_Key, tuple[Place, Scores]] = {}
    joined_without_language: set[str] = set()
    for case in cases:
        identifier = case.prompt.id
        while case.key not in waiting and (identifier, None) not in waiting:
            placed = next(lines, None)
            if placed is None or (placed[1].prompt, placed[1].language) in waiting:
                _refuse(file, cases)
            waiting[placed[1].prompt, placed[1].language] = placed
        if identifier in joined_without_language:
            _refuse(file, cases)
        key = case.key if case.key in waiting else (identifier, None)
        if key != case.key:
            joined_without_language.add(identifier)
        place, line = waiting.pop(key)
        yield ScoredCase(case, checked_line(case, with_every_response(case, line) if is_table else line, place))
    if waiting or next(lines, None) is not None:
        _refuse(file, cases)


def _refuse(file: _ScoresFile, cases: Iterable[Case]) -> NoReturn:
    """Raise the error of the first invalid line, or of the first case without a line."""
    keys = [_without_texts(case) for case in cases]
    places_of_id: dict[str, list[int]] = defaultdict(list)
    for index, case in enumerate(keys):
        places_of_id[case.prompt.id].append(index)
    line_of: dict[int, Place] = {}
    is_table = is_score_table(file.path)
    for place, line in file.lines():
        if line.prompt not in places_of_id:
            raise _unknown_prompt(line.prompt, place, file, places_of_id)
        index = _case_of(line, keys, places_of_id[line.prompt], place)
        if index in line_of:
            raise RecordError(f"prompt id {line.prompt!r} has its scores at {line_of[index]} already", where=place)
        line_of[index] = place
        unhashed = replace(line, hashes={})
        checked_line(keys[index], with_every_response(keys[index], unhashed) if is_table else unhashed, place)
    missing = [case for index, case in enumerate(keys) if index not in line_of]
    assert missing, "every line fits and every case has one"
    raise RecordError(
        f"no line for prompt id {missing[0].prompt.id!r}, language {missing[0].prompt.language!r} "
        f"({len(missing)} of {number_of(len(keys), 'case')} {verb_for(len(missing), 'has', 'have')} none)",
        where=Place(str(file.path)),
        do="add the rows of every case; a missing score is an empty cell"
        if is_table
        else "add a line for every case; a missing score is null, with its reason under `unscored`",
    )


def _without_texts(case: Case) -> Case:
    prompt = Prompt(id=case.prompt.id, language=case.prompt.language, messages=())
    return Case(prompt=prompt, responses=tuple(Response(id=response.id, text="") for response in case.responses))


def _unknown_prompt(prompt: str, place: Place, file: _ScoresFile, known: Collection[str]) -> RecordError:
    """Return the error of scores of a prompt that no case has, with the number of such prompts in the file.

    Only a prompt without scores can be the one meant. Where every case has its own, the scores are those of more cases.
    """
    scored = {line.prompt for _, line in file.lines()}
    num_unknown = len(scored.difference(known))
    verb = verb_for(num_unknown, "is", "are")
    problem = f"unknown prompt id {prompt!r} ({num_unknown:,} of {number_of(len(scored), 'prompt')} {verb} of no case)"
    without = [identifier for identifier in known if identifier not in scored]
    if without:
        hint, mark, _ = choices(prompt, without).partition("? ")
        do = f"{hint + mark if mark else ''}the ids are those of the bench's cases"
    else:
        them = verb_for(num_unknown, "it", "them")
        do = f"every case has its scores, so those are of more cases: leave {them} out, or give all the cases"
    return RecordError(problem, where=place, do=do)


def _case_of(line: Scores, cases: Sequence[Case], places: Sequence[int], place: Place) -> int:
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


def hash_findings(coverage: HashCoverage, result: Result) -> tuple[InputFinding, ...]:
    """Return the findings about hashes of texts that scores carry; the bench of a run has its files by role."""
    inputs = result.request.inputs
    scored = "judged" if any(role.startswith("judged.") for role in inputs) else "bench"
    return coverage.findings(inputs["scores"], [file for role, file in inputs.items() if role.split(".")[0] == scored])
