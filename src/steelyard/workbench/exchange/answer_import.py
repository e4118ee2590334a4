"""Answers from another tool into a workbench: as the answers of the named people, through the same gate.

Everything is checked before anything is stored: unknown tasks and people, two answers of a person to a task, and an
answer that differs from one the workbench has are errors with their place. An answer that is incomplete or contradicts
itself is left out, with its reason: its person can settle it on the page. What is stored already is recognised, so
that the same export can be imported any number of times, also after an interruption.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.external_answers import ExternalAnswer, missing_parts, task_answer
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.names import normalize_name
from steelyard.core.remedies import NAME, Advice, Command, Remedy
from steelyard.core.types import Record
from steelyard.workbench.accounts.permissions import ALLOWED
from steelyard.workbench.exchange.external_tasks import ManifestTask, ReadExport, TaskManifest, blind_entry
from steelyard.workbench.pipeline.projects import case_of, project_named, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.pipeline.queues import Membership, assign_task, may_work
from steelyard.workbench.pipeline.submissions import lock_assignment, submit
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)
from steelyard.workbench.views.blinding import BlindTask

_BLOCK = 100
"""Answers of one transaction: people who work meanwhile wait for one block at most."""


class LeftOut(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An answer that was not imported: its place in the export, whose it is, and why."""

    source: str
    task: str
    person: str
    reason: str


class ImportedAnswers(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Outcomes of the answers of an export. ``before``: answers that the workbench had already.

    ``incomplete`` and ``contradictory`` answers were left out, and so were those ``too_late``: the task has the answers
    that it asks for, or is not open any more. ``without_time`` were stored with no time: the tool records none.
    """

    answers: int
    stored: int
    before: int
    incomplete: int
    contradictory: int
    too_late: int
    without_time: int
    not_answers: dict[str, int]
    left_out: tuple[LeftOut, ...]


class _ReadyAnswer(NamedTuple):
    """An answer that fits its task and its person, with the ids of the responses."""

    external: ExternalAnswer
    entry: ManifestTask
    person: int
    content: TaskAnswer


def import_answers(
    database: Database,
    project: str,
    exported: ReadExport,
    *,
    people: Mapping[str, str],
    at: float,
) -> ImportedAnswers:
    """Store the answers of an export in a project of the workbench, and say what became of each.

    ``people``: names of accounts by the name or number in the tool; others have the same name in both. Answers without
    a time are filed at ``at``. Raises ConfigError for people without an account and for another project's manifest, and
    RecordError for the first answer that is wrong.
    """
    manifest, every = exported.manifest, list(exported.answers)
    with database.reading() as session:
        row = _project_of(session, project, manifest)
        numbers = _people(session, every, people)
        _check_qualified(session, row, every, numbers)
        ready, left_out, num_before = _checked(session, row, manifest, every, numbers)
    counted = Counter(entry.reason.partition(":")[0] for entry in left_out)
    num_stored = 0
    for start in range(0, len(ready), _BLOCK):
        block = ready[start : start + _BLOCK]
        outcomes = database.write(lambda session, block=block: _store(session, row.id, block, at))
        num_stored += sum(outcomes)
        left_out += [
            _left_out(each.external, "too late: the task has its answers")
            for each, is_stored in zip(block, outcomes, strict=True)
            if not is_stored
        ]
    made = ImportedAnswers(
        answers=len(every),
        stored=num_stored,
        before=num_before,
        incomplete=counted["incomplete"],
        contradictory=counted["contradictory"],
        too_late=len(ready) - num_stored,
        without_time=sum(each.external.seconds is None for each in ready),
        not_answers=exported.not_answers,
        left_out=tuple(left_out),
    )
    detail = {"tool": manifest.tool, "seed": manifest.seed, "stored": made.stored, "left out": len(made.left_out)}
    event = AuditEvent("answers imported", "project", row.id, None, detail)
    database.write(lambda session: record(session, event, at=at))
    return made


def _project_of(session: Session, name: str, manifest: TaskManifest) -> StoredProject:
    project = project_named(session, name)
    if project is None or manifest.project != project.name:
        whose = "a case file" if manifest.project is None else f"the project {manifest.project!r}"
        raise ConfigError(
            f"these are tasks of {whose}, not of the project {name!r}",
            where="tasks",
            do="name the folder that the project's tasks were exported to",
        )
    return project


def _people(session: Session, answers: Sequence[ExternalAnswer], people: Mapping[str, str]) -> dict[str, StoredPerson]:
    """Return the account of everybody in the export. Raises ConfigError for those without one that may annotate."""
    first: dict[str, Place] = {}
    for answer in answers:
        first.setdefault(answer.person, answer.source)
    names = {person: normalize_name(people.get(person, person)) for person in first}
    rows = session.scalars(select(StoredPerson).where(is_among(StoredPerson.name, set(names.values()))))
    accounts = {row.name: row for row in rows}
    known = {person: accounts[name] for person, name in names.items() if name in accounts}
    if unknown := [person for person in first if person not in known]:
        raise ConfigError(
            f"{', '.join(map(repr, unknown[:10]))} of the tool is nobody's account here",
            where=str(first[unknown[0]]),
            do=Advice(
                "say who it is: ",
                Remedy("person", (f"{unknown[0]}=NAME",)),
                "; accounts are made by ",
                Command("workbench add-person", (NAME,)),
            ),
        )
    for person, row in known.items():
        if "annotate" not in ALLOWED[row.role] or not row.is_active:
            raise ConfigError(
                f"{row.name!r} cannot annotate: the account is closed, or has the role {row.role}",
                where=str(first[person]),
                allowed="open accounts with the role annotator",
            )
    return known


def _check_qualified(
    session: Session, project: StoredProject, answers: Sequence[ExternalAnswer], people: Mapping[str, StoredPerson]
) -> None:
    """Raise ConfigError for the first answer of a person who has not passed the qualification of the project."""
    settings = settings_of(project)
    may = {name: may_work(session, settings, project=project.id, person=row.id) for name, row in people.items()}
    for answer in answers:
        if not may[answer.person]:
            raise ConfigError(
                f"{people[answer.person].name!r} has not passed the qualification of the project",
                where=str(answer.source),
                do="let the person take it, or pass: Manage, the project, Qualification",
            )


def _checked(
    session: Session,
    project: StoredProject,
    manifest: TaskManifest,
    answers: Sequence[ExternalAnswer],
    people: Mapping[str, StoredPerson],
) -> tuple[list[_ReadyAnswer], list[LeftOut], int]:
    """Return the answers to store, those that are left out, and the number of those that are stored already."""
    entries, settings = manifest.by_key, settings_of(project)
    seen: dict[tuple[str, int], ExternalAnswer] = {}
    ready: list[_ReadyAnswer] = []
    left_out: list[LeftOut] = []
    num_before = 0
    for external in answers:
        entry, person = entries[external.task], people[external.person]
        earlier = seen.setdefault((external.task, person.id), external)
        if earlier is not external:
            if earlier._replace(source=external.source, seconds=external.seconds, at=external.at) == external:
                continue
            raise RecordError(
                f"a second answer of {external.person!r} to {external.task}; the other one is at {earlier.source}",
                where=external.source,
                do="leave one of the two out",
            )
        task, blind = _task_of(session, project, entry, external.source)
        if missing := missing_parts(external, entry.letters, has_scores=entry.has_scores):
            left_out.append(_left_out(external, f"incomplete: {'; '.join(missing)}"))
            continue
        content = _stored_content(external, entry, blind)
        stored = _stored_answer(session, task.id, person.id)
        if stored is not None:
            if stored != content:
                raise RecordError(
                    f"{person.name!r} has given another answer to {external.task} in the workbench",
                    where=external.source,
                    do="leave this one out: answers are not replaced",
                )
            num_before += 1
            continue
        if wrong := kind_named(task.kind).misfits(content, _texts(blind), catalogues_of(settings)):
            raise RecordError(f"the answer has {wrong[0]}", where=external.source)
        if open_points := kind_named(task.kind).contradictions(content, task.responses):
            letters = {response: letter for letter, response in blind.ids.items()}
            reasons = "; ".join(
                f"{each.problem} ({', '.join(letters.get(name, name) for name in each.responses)})"
                for each in open_points
            )
            left_out.append(_left_out(external, f"contradictory: {reasons}"))
        else:
            ready.append(_ReadyAnswer(external, entry, person.id, content))
    return ready, left_out, num_before


def _task_of(
    session: Session, project: StoredProject, entry: ManifestTask, place: Place
) -> tuple[StoredTask, BlindTask]:
    """Return the task of an entry. Raises RecordError where the project has none with these responses."""
    task = None if entry.number is None else session.get(StoredTask, entry.number)
    item = None if task is None else session.get_one(StoredItem, task.item_id)
    is_same = (
        task is not None
        and item is not None
        and (task.project_id, item.prompt, item.language) == (project.id, entry.prompt, entry.language or "")
        and sorted(task.responses) == sorted(entry.shown)
    )
    if task is None or item is None or not is_same:
        raise RecordError(
            f"the project has no task {entry.key} with these responses",
            where=place,
            do=Advice("name the database that the tasks were exported from: ", Remedy("database")),
        )
    return task, blind_entry(entry, case_of(item))


def _stored_content(external: ExternalAnswer, entry: ManifestTask, blind: BlindTask) -> TaskAnswer:
    """Return the answer with ids and places of the stored texts. Raises RecordError for what fits no text."""
    try:
        return blind.stored(task_answer(external, entry.letters, has_scores=entry.has_scores))
    except ConfigError as error:
        raise RecordError(error.problem, where=external.source, allowed=error.allowed) from None


def _texts(blind: BlindTask) -> dict[str, str]:
    """Return the stored texts of the responses by id."""
    return {response: blind.texts[letter].stored for letter, response in blind.ids.items()}


def _stored_answer(session: Session, task: int, person: int) -> TaskAnswer | None:
    content = session.scalar(
        select(StoredAnswer.content).where(
            StoredAnswer.task_id == task, StoredAnswer.person_id == person, StoredAnswer.stage == "annotation"
        )
    )
    return None if content is None else msgspec.convert(content, TaskAnswer)


def _store(session: Session, project: int, block: Sequence[_ReadyAnswer], at: float) -> list[bool]:
    """Store answers in one transaction. Returns for each whether the task still had a slot for it."""
    row = session.get_one(StoredProject, project)
    settings, outcomes = settings_of(row), []
    for each in block:
        assert each.entry.number is not None, "tasks of a workbench have numbers"
        membership = Membership(session.get_one(StoredPerson, each.person), row, settings)
        answered_at = each.external.at or at
        assignment = assign_task(session, membership, each.entry.number, each.entry.shown, at=answered_at)
        if assignment is None:
            outcomes.append(False)
            continue
        # The whole time is known: nothing is added between two signs of life of a page.
        assignment.seconds = each.external.seconds or 0.0
        locked = lock_assignment(session, assignment.id, person=each.person)
        assert locked is not None, "assigned in this transaction"
        outcomes.append(submit(session, locked, each.content, seconds=0.0, at=answered_at) != "too late")
    return outcomes


def _left_out(external: ExternalAnswer, reason: str) -> LeftOut:
    return LeftOut(source=str(external.source), task=external.task, person=external.person, reason=reason)
