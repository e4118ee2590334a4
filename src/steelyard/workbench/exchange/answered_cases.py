"""Answers from another tool straight to a case file: the cases with the judgments and scores of the named people.

Judgments and ratings are evidence as it was given. A ranking that contradicts the scores stays beside them, both are
counted, and the ``meta`` of each says what contradicts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.external_answers import ExternalAnswer, missing_parts, task_answer
from steelyard.annotation.task_kinds import TaskKind, kind_named
from steelyard.core.errors import ConfigError, EvidenceError, Faults, RecordError
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.types import Case, Judgment, Rating, Record
from steelyard.workbench.exchange.external_forms import WRONG_ANSWERS
from steelyard.workbench.exchange.external_tasks import ManifestTask, ReadExport, TaskManifest, blind_entry


class AnswerCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Outcomes of the answers of an export. ``before``: answers that the case file had already.

    ``contradictory`` answers are written with their contradictions; of ``incomplete`` ones what they have.
    """

    answers: int
    written: int
    before: int
    incomplete: int
    contradictory: int
    not_answers: dict[str, int]


class AnsweredCases(NamedTuple):
    """The cases with the new evidence, and the counts."""

    cases: tuple[Case, ...]
    counts: AnswerCounts


class _AnswerEvidence(NamedTuple):
    """The evidence of one answer, and what is wrong with it."""

    external: ExternalAnswer
    judgments: tuple[Judgment, ...]
    ratings: tuple[Rating, ...]
    is_incomplete: bool
    contradictions: tuple[str, ...]


def add_answers(cases: Iterable[Case], exported: ReadExport, *, people: Mapping[str, str]) -> AnsweredCases:
    """Return the cases with the evidence of the answers. ``people``: names by the name or number in the tool.

    Raises ConfigError for the manifest of a workbench's project, RecordError for a second answer of a person to a task,
    and EvidenceError for an answer to a case that is not there.
    """
    manifest = exported.manifest
    if manifest.project is not None:
        raise ConfigError(
            f"these are tasks of the project {manifest.project!r}",
            where="tasks",
            do=Advice("import the answers into it: ", Remedy("project", manifest.project)),
        )
    entries = manifest.by_key
    of_case: defaultdict[tuple[str, str | None], list[ExternalAnswer]] = defaultdict(list)
    faults = Faults(WRONG_ANSWERS)
    every = _without_repeats(exported.answers, faults)
    for answer in every:
        entry = entries[answer.task]
        of_case[entry.prompt, entry.language].append(answer)
    added: list[_AnswerEvidence] = []
    num_before = 0
    written: list[Case] = []
    for case in cases:
        new: list[_AnswerEvidence] = []
        for answer in of_case.pop((case.prompt.id, case.prompt.language), ()):
            person = people.get(answer.person, answer.person)
            with faults.gathered():
                evidence = _evidence(case, manifest, entries[answer.task], answer, person)
                if _is_known(case, evidence):
                    num_before += 1
                else:
                    new.append(evidence)
        added += new
        written.append(
            msgspec.structs.replace(
                case,
                judgments=(*case.judgments, *(judgment for each in new for judgment in each.judgments)),
                ratings=(*case.ratings, *(rating for each in new for rating in each.ratings)),
            )
        )
    faults.check()
    for (prompt, _), orphans in of_case.items():
        raise EvidenceError(
            f"the case file lacks the prompt {prompt!r} of {orphans[0].task}",
            where=str(orphans[0].source),
            do=Advice("name the case file that the tasks were made of: ", Remedy("cases", FILE)),
        )
    counts = AnswerCounts(
        answers=len(every),
        written=len(added),
        before=num_before,
        incomplete=sum(each.is_incomplete for each in added),
        contradictory=sum(bool(each.contradictions) for each in added),
        not_answers=exported.not_answers,
    )
    return AnsweredCases(tuple(written), counts)


def _without_repeats(answers: Iterable[ExternalAnswer], faults: Faults) -> list[ExternalAnswer]:
    seen: dict[tuple[str, str], ExternalAnswer] = {}
    for answer in answers:
        earlier = seen.setdefault((answer.task, answer.person), answer)
        with faults.gathered():
            if earlier._replace(source=answer.source, seconds=answer.seconds, at=answer.at) != answer:
                raise RecordError(
                    f"a second answer of {answer.person!r} to {answer.task}; the other one is at {earlier.source}",
                    where=answer.source,
                    do="leave one of the two out",
                )
    return list(seen.values())


def _evidence(
    case: Case, manifest: TaskManifest, entry: ManifestTask, external: ExternalAnswer, judge: str
) -> _AnswerEvidence:
    kind = kind_named("triple" if entry.has_scores else "pairwise")
    missing = missing_parts(external, entry.letters, has_scores=entry.has_scores)
    answer = _stored(case, entry, external)
    # Without a place for every response the order is not known, and no verdict follows.
    is_ordered = not any(part.startswith("no place") for part in missing)
    contradictions = () if missing else tuple(_contradictions(kind, answer, entry))
    meta = {"tool": manifest.tool, "order_seed": manifest.seed}
    meta |= {} if external.seconds is None else {"seconds": external.seconds}
    meta |= {} if external.remark is None else {"remark": external.remark}
    meta |= {"contradictions": list(contradictions)} if contradictions else {}
    origin = Origin(judge=judge, task=entry.key, shown=entry.shown, batch=None, meta=meta)
    return _AnswerEvidence(
        external,
        kind.judgments(answer, origin) if is_ordered else (),
        kind.ratings(answer, origin),
        bool(missing),
        contradictions,
    )


def _stored(case: Case, entry: ManifestTask, external: ExternalAnswer) -> TaskAnswer:
    """Return the answer with the ids of the responses. Raises RecordError for what does not fit the case."""
    if not set(entry.shown) <= {response.id for response in case.responses}:
        raise RecordError(
            f"the case {case.prompt.id!r} lacks responses of {entry.key}",
            where=external.source,
            do=Advice("name the case file that the tasks were made of: ", Remedy("cases", FILE)),
        )
    try:
        return blind_entry(entry, case).stored(task_answer(external, entry.letters, has_scores=entry.has_scores))
    except ConfigError as error:
        raise RecordError(error.problem, where=external.source, allowed=error.allowed) from None


def _contradictions(kind: TaskKind, answer: TaskAnswer, entry: ManifestTask) -> Iterator[str]:
    letters = dict(zip(entry.shown, entry.letters, strict=True))
    for each in kind.contradictions(answer, entry.shown):
        yield f"{each.problem}: {', '.join(letters.get(name, name) for name in each.responses)}"


def _is_known(case: Case, evidence: _AnswerEvidence) -> bool:
    """Tell whether a case has the evidence of an answer. Raises RecordError where it has other evidence of its ids."""
    known: dict[str | None, object] = {judgment.id: judgment for judgment in case.judgments}
    known |= {rating.id: rating for rating in case.ratings}
    new: Sequence[Judgment | Rating] = (*evidence.judgments, *evidence.ratings)
    same = [known.get(each.id) for each in new]
    if any(before is not None and before != each for before, each in zip(same, new, strict=True)):
        raise RecordError(
            f"the case file has another answer of {evidence.external.person!r} to {evidence.external.task}",
            where=evidence.external.source,
            do="leave this one out: answers are not replaced",
        )
    return bool(new) and None not in same
