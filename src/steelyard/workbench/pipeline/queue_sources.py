"""The files by which a queue is ordered, read against the cases of a project: scores of models, verdicts of judges.

Everything is checked before anything is ordered: an unknown case, a repeated one, another response or text, or a
number that is none is an error with file and line.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np

from steelyard.annotation.task_priority import MemberProbabilities, probabilities_of_margins, probabilities_of_verdicts
from steelyard.core.errors import ConfigError, EvidenceError, Place, RecordError, choices
from steelyard.core.numerics import Floats
from steelyard.core.text import number_of, response_text
from steelyard.core.types import Case, Input, Judgment, Scores
from steelyard.io.cases import checked_line, placed_lines, read_placed_cases
from steelyard.io.hashing import file_hash
from steelyard.io.progress import log
from steelyard.io.scored_cases import HashCoverage
from steelyard.ranking.judgment_table import distinct_judgments
from steelyard.report.findings import finding_lines

CaseKey = tuple[str, str]
"""Prompt id and language of a case, as an item has them: the language is empty where there is none."""
_DO = "make it from the case file that was imported"


class ComparedPair(NamedTuple):
    """Two responses of a case that a task compares, or that people have compared."""

    key: CaseKey
    first: str
    second: str


class CommitteeMember(NamedTuple):
    """A model or a judge of one file. ``probabilities``: from pairs and their labels to what it says of each."""

    name: str
    file: str
    sha256: str
    probabilities: Callable[[Sequence[ComparedPair], Floats], MemberProbabilities]


def key_of(case: Case) -> CaseKey:
    """Return the key of a case as its item has it."""
    return (case.prompt.id, case.prompt.language or "")


def read_committee(
    scores: Sequence[Path], judged: Sequence[Path], cases: Mapping[CaseKey, Case], *, is_complete: bool
) -> list[CommitteeMember]:
    """Read the members of all files. With ``is_complete`` every case needs a line in every file.

    Raises RecordError with file and line, EvidenceError for a file without any verdict of a model, and ConfigError for
    a file that is given twice, also as a copy, and for a judge in two files: it would count twice in the mean.
    """
    repeated = [path for path in {*scores, *judged} if [*scores, *judged].count(path) > 1]
    if repeated:
        raise ConfigError(f"{repeated[0]} is given twice", where="--scores, --judged", do="name each file once")
    members = [_scored(path, cases, is_complete=is_complete) for path in scores]
    judges: dict[str, CommitteeMember] = {}
    for path in judged:
        for member in _judged(path, cases, is_complete=is_complete):
            known = judges.setdefault(member.name, member)
            if known is not member and known.sha256 != member.sha256:
                raise ConfigError(
                    f"the judge {member.name!r} is in {known.file} and in {member.file}",
                    where="--judged",
                    do=f"unite the two: steelyard merge {quote(known.file)} {quote(member.file)} --out united, "
                    "then --judged united/cases.jsonl",
                )
            members.append(member)
    _check_distinct(members)
    return members


def _check_distinct(members: Sequence[CommitteeMember]) -> None:
    """Raise ConfigError for two files with the same content. The judges of one file have its path in common."""
    places: dict[str, str] = {}
    for member in members:
        first = places.setdefault(member.sha256, member.file)
        if first != member.file:
            problem = f"{member.file} has the same lines as {first}"
            raise ConfigError(problem, where="--scores, --judged", do="name it once")


def _scored(path: Path, cases: Mapping[CaseKey, Case], *, is_complete: bool) -> CommitteeMember:
    """Read a file of scores: the difference of two scores is what the model says of a pair."""
    languages = _languages(cases)
    scores: dict[CaseKey, dict[str, float | None]] = {}
    lines: dict[CaseKey, Place] = {}
    coverage = HashCoverage()
    for place, line in placed_lines(path, Scores):
        key = (line.prompt, line.language or "")
        if line.language is None and len(languages.get(line.prompt, ())) == 1:
            key = (line.prompt, languages[line.prompt][0])
        case = _known(key, cases, languages, place)
        if key in lines:
            raise RecordError(f"prompt id {line.prompt!r} has its scores at {lines[key]} already", where=place)
        lines[key] = place
        scores[key] = checked_line(case, line, place).scores
        coverage.add(line)
    _check_complete(path, scores.keys(), cases, is_complete=is_complete)
    if not any(score is not None for of_case in scores.values() for score in of_case.values()):
        raise EvidenceError("has no score", where=str(path), do="let a model score the cases: steelyard score")

    def probabilities(pairs: Sequence[ComparedPair], label: Floats) -> MemberProbabilities:
        margins = [_margin(scores.get(pair.key, {}), pair) for pair in pairs]
        return probabilities_of_margins(np.array(margins, np.float64), label)

    file = Input(path=str(path), sha256=file_hash(path))
    for sentence in finding_lines(coverage.findings(file, ())):
        log(sentence)
    return CommitteeMember(_model_name(path), file.path, file.sha256, probabilities)


def _judged(path: Path, cases: Mapping[CaseKey, Case], *, is_complete: bool) -> list[CommitteeMember]:
    """Read a case file with verdicts of models: each judge is a member. People's verdicts are not evidence here."""
    languages = _languages(cases)
    judgments: defaultdict[str, dict[CaseKey, list[Judgment]]] = defaultdict(dict)
    seen: set[CaseKey] = set()
    for place, case in read_placed_cases(path):
        key = key_of(case)
        known = _known(key, cases, languages, place)
        _check_same_responses(case, known, place)
        seen.add(key)
        for judgment in distinct_judgments(case.judgments):
            if judgment.kind != "human" and judgment.verdict != "none":
                judgments[judgment.judge].setdefault(key, []).append(judgment)
    _check_complete(path, seen, cases, is_complete=is_complete)
    if not judgments:
        do = "let a model judge it: steelyard judge; what people say needs no queue"
        raise EvidenceError("has no verdict of a model", where=str(path), do=do)
    sha256 = file_hash(path)
    return [CommitteeMember(name, str(path), sha256, _verdicts(of_judge)) for name, of_judge in judgments.items()]


def _verdicts(
    judgments: Mapping[CaseKey, Iterable[Judgment]],
) -> Callable[[Sequence[ComparedPair], Floats], MemberProbabilities]:
    def probabilities(pairs: Sequence[ComparedPair], label: Floats) -> MemberProbabilities:
        counts = [verdict_counts(judgments.get(pair.key, ()), pair) for pair in pairs]
        return probabilities_of_verdicts(np.array(counts, np.float64).reshape(-1, 3), label)

    return probabilities


def verdict_counts(judgments: Iterable[Judgment], pair: ComparedPair) -> tuple[int, int, int]:
    """Count how often the first response of a pair won, lost and tied."""
    won = lost = tied = 0
    for each in judgments:
        if {each.left, each.right} != {pair.first, pair.second}:
            continue
        if each.verdict == "tie":
            tied += 1
        elif each.verdict in ("left", "right"):
            is_won = (each.verdict == "left") == (each.left == pair.first)
            won, lost = won + is_won, lost + (not is_won)
    return won, lost, tied


def _margin(scores: Mapping[str, float | None], pair: ComparedPair) -> float:
    first, second = scores.get(pair.first), scores.get(pair.second)
    return float("nan") if first is None or second is None else first - second


def _model_name(path: Path) -> str:
    """Return the name of a model by its file: that of the folder for the ``scores.jsonl`` of a run."""
    return path.absolute().parent.name if path.name == "scores.jsonl" else path.stem


def _languages(cases: Iterable[CaseKey]) -> dict[str, list[str]]:
    languages: defaultdict[str, list[str]] = defaultdict(list)
    for prompt, language in cases:
        languages[prompt].append(language)
    return dict(languages)


def _known(key: CaseKey, cases: Mapping[CaseKey, Case], languages: Mapping[str, list[str]], place: Place) -> Case:
    if key in cases:
        return cases[key]
    prompt, language = key
    if prompt in languages:
        allowed = ", ".join(sorted(each or "none" for each in languages[prompt]))
        raise RecordError(f"prompt id {prompt!r} has no item of language {language!r}", where=place, allowed=allowed)
    hint, mark, _ = choices(prompt, list(languages)).partition("? ")
    raise RecordError(f"unknown prompt id {prompt!r}", where=place, do=f"{hint}? {_DO}" if mark else _DO)


def _check_same_responses(case: Case, known: Case, place: Place) -> None:
    texts, known_texts = ({each.id: response_text(each) for each in of.responses} for of in (case, known))
    for name in known_texts.keys() ^ texts.keys():
        problem = "is not among its responses" if name in known_texts else "is none of its responses in the project"
        raise RecordError(f"prompt {case.prompt.id!r}: response {name!r} {problem}", where=place, do=_DO)
    for name, text in texts.items():
        if text != known_texts[name]:
            problem = f"prompt {case.prompt.id!r}: response {name!r} has another text than in the project"
            raise RecordError(problem, where=place, do=_DO)


def _check_complete(path: Path, seen: Iterable[CaseKey], cases: Mapping[CaseKey, Case], *, is_complete: bool) -> None:
    missing = [key for key in cases if key not in seen] if is_complete else []
    if missing:
        prompt, language = missing[0]
        raise RecordError(
            f"no line for prompt id {prompt!r}, language {language or None!r} "
            f"({len(missing)} of {number_of(len(cases), 'case')} without one)",
            where=str(path),
            do=_DO,
        )
