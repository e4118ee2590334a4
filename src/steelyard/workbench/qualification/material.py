"""The tasks of a qualification, made of cases with reference answers; gold tasks that are made public are others."""

import hashlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.qualification import reference_answer, reference_reason
from steelyard.annotation.task_kinds import category_of_tasks
from steelyard.core.errors import EvidenceError, Faults, Place
from steelyard.core.types import Case
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.case_import import NO_PLACES, CasePlaces, place_of
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.pipeline.round_plans import no_task, plan_case
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.qualification_tables import StoredQualificationTask
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredProject


class ImportedQualification(NamedTuple):
    """Numbers of tasks that an import made, that were there, and that people of an export left without one answer."""

    num_tasks: int
    num_before: int
    num_undecided: int = 0


def import_qualification(
    session: Session,
    project: StoredProject,
    cases: Iterable[Case],
    *,
    by: int | None,
    at: float,
    places: CasePlaces = NO_PLACES,
) -> ImportedQualification:
    """Make qualification tasks of cases with reference answers; a task that is there with its reference stays one.

    A task of an exported case on which people differ, and which nobody settled, has no reference and is left out.
    Raises RefusedError with all cases that get no task, and EvidenceError with all whose reference lacks something: at
    their places in the file, where ``places`` has them.
    """
    settings, num_tasks, num_before, num_undecided = settings_of(project), 0, 0, 0
    catalogues = catalogues_of(settings)
    known = {_content(row) for row in session.scalars(select(StoredQualificationTask).where(*_live_tasks(project)))}
    without_task = Faults("cases get no task, and nothing was imported", RefusedError)
    faults = Faults("references are wrong, and nothing was imported", EvidenceError)
    for case in cases:
        planned = plan_case(case, settings)
        if planned is None:
            with without_task.gathered():
                raise no_task(case, settings, where=_place(case, "responses", places), do="leave the case out")
            continue
        kind, design = planned
        for responses in design:
            reference: TaskAnswer | None = None
            with faults.gathered():
                try:
                    reference = reference_answer(kind, case, responses, catalogues)
                except EvidenceError as error:
                    if "evidence" not in case.meta:
                        field = error.where.path if isinstance(error.where, Place) else None
                        raise error.at(_place(case, field, places)) from error
                    num_undecided += 1
            if reference is None:
                continue
            row = StoredQualificationTask(
                project_id=project.id,
                kind=kind.name,
                case_json=encode_case(case).decode(),
                responses=list(responses),
                reference=msgspec.to_builtins(reference),
                reason=reference_reason(case, responses),
            )
            if (content := _content(row)) in known:
                num_before += 1
                continue
            known.add(content)
            session.add(row)
            num_tasks += 1
    without_task.check()
    faults.check()
    session.flush()
    if num_undecided and not num_tasks + num_before:
        raise RefusedError(
            "people differ on every task, and nobody settled one",
            words="undecided",
            where="qualification cases",
            do="add the reference answers to the cases",
        )
    if num_tasks:
        event = AuditEvent("qualification tasks imported", "project", project.id, by, {"tasks": num_tasks})
        record(session, event, at=at)
    return ImportedQualification(num_tasks, num_before, num_undecided)


def _place(case: Case, field: str | None, places: CasePlaces) -> Place:
    return place_of(case, field, places, otherwise="qualification cases")


def _content(row: StoredQualificationTask) -> bytes:
    parts = (row.kind, row.case_json, row.responses, row.reference, row.reason)
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).digest()


def _live_tasks(project: StoredProject) -> tuple[ColumnElement[bool], ...]:
    return StoredQualificationTask.project_id == project.id, StoredQualificationTask.is_retired.is_(False)


class QualificationTasks(NamedTuple):
    """The numbers of a project's qualification tasks, each with what real tasks of its case would be filed under."""

    category_of: dict[int, str]

    def for_skills(self, skills: Collection[str]) -> list[int]:
        """Return the tasks of a person with these skills, as the person gets real ones; all without skills."""
        return [task for task, category in self.category_of.items() if not (skills and category) or category in skills]


def qualification_tasks(session: Session, project: StoredProject) -> QualificationTasks:
    """Return the qualification tasks of a project."""
    rules, task = settings_of(project).tasks, StoredQualificationTask
    live = select(task.id, task.case_json).where(*_live_tasks(project)).order_by(task.id)
    return QualificationTasks(
        {
            number: category_of_tasks(msgspec.json.decode(text, type=Case), rules)
            for number, text in session.execute(live)
        }
    )
