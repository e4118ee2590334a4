"""Answers from another tool into a workbench: as the answers of the named people, through the same gate.

Everything is checked before anything is stored: unknown tasks and people, two answers of a person to a task, and an
answer that differs from one the workbench has are errors with their place. An answer that is incomplete or contradicts
itself is left out, with its reason: its person can settle it on the page. What is stored already is recognised, so
that the same export can be imported any number of times, also after an interruption.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.external_answers import ExternalAnswer
from steelyard.core.errors import ConfigError, Place
from steelyard.core.names import normalize_name
from steelyard.core.remedies import NAME, Advice, Command, Remedy
from steelyard.core.types import Record
from steelyard.workbench.accounts.permissions import ALLOWED
from steelyard.workbench.exchange.answer_checks import LeftOut, ReadyAnswer, check_answers, leave_out
from steelyard.workbench.exchange.external_tasks import ReadExport, TaskManifest
from steelyard.workbench.pipeline.projects import project_named, settings_of
from steelyard.workbench.pipeline.queues import Membership, assign_task, may_work
from steelyard.workbench.pipeline.submissions import lock_assignment, submit
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import (
    StoredPerson,
    StoredProject,
)

_BLOCK = 100
"""Answers of one transaction: people who work meanwhile wait for one block at most."""


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
    RecordError with all answers that are wrong.
    """
    manifest, every = exported.manifest, list(exported.answers)
    with database.reading() as session:
        row = _project_of(session, project, manifest)
        numbers = _people(session, every, people)
        _check_qualified(session, row, every, numbers)
        ready, left_out, num_before = check_answers(session, row, manifest, every, numbers)
    counted = Counter(entry.reason.partition(":")[0] for entry in left_out)
    num_stored = 0
    for start in range(0, len(ready), _BLOCK):
        block = ready[start : start + _BLOCK]
        outcomes = database.write(lambda session, block=block: _store(session, row.id, block, at))
        num_stored += sum(outcomes)
        left_out += [
            leave_out(each.external, "too late: the task has its answers")
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


def _store(session: Session, project: int, block: Sequence[ReadyAnswer], at: float) -> list[bool]:
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
