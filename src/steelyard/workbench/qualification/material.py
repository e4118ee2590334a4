"""The tasks of a qualification: made of cases with reference answers, or of gold tasks that are made public."""

from collections.abc import Iterable

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.qualification import reference_answer, reference_reason, scored_points
from steelyard.annotation.task_kinds import Design, TaskKind, kind_named, kinds_of
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.item_states import retire_tasks
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.storage.audit_log import Deed, record
from steelyard.workbench.storage.qualification_tables import StoredQualificationTask
from steelyard.workbench.storage.tables import StoredItem, StoredProject, StoredTask


def import_qualification(
    session: Session, project: StoredProject, cases: Iterable[Case], *, by: int | None, at: float
) -> int:
    """Make qualification tasks of cases with reference answers. Returns their number.

    Raises EvidenceError for a case that gets no task, or whose reference lacks something: nothing is imported.
    """
    settings, number = settings_of(project), 0
    catalogues = catalogues_of(settings)
    for case in cases:
        kind, design = _plan(case, settings)
        for responses in design:
            number += 1
            row = StoredQualificationTask(
                project_id=project.id,
                kind=kind.name,
                case_json=encode_case(case).decode(),
                responses=list(responses),
                reference=msgspec.to_builtins(reference_answer(kind, case, responses, catalogues)),
                reason=reference_reason(case, responses),
            )
            session.add(row)
    session.flush()
    record(session, Deed("qualification tasks imported", "project", project.id, by, {"tasks": number}), at=at)
    return number


def take_gold(session: Session, project: StoredProject, *, most: int, by: int | None, at: float) -> int:
    """Make qualification tasks of gold tasks, which check nobody from then on. Returns their number."""
    rows = session.execute(
        select(StoredTask, StoredItem)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .where(StoredTask.project_id == project.id, StoredTask.is_gold.is_(True), StoredTask.is_retired.is_(False))
        .order_by(StoredTask.id)
    ).all()
    taken: list[int] = []
    for task, item in rows:
        gold = msgspec.convert(task.gold, TaskAnswer)
        if len(taken) == most or not scored_points(kind_named(task.kind), task.responses, gold):
            continue
        taken.append(task.id)
        row = StoredQualificationTask(
            project_id=project.id,
            kind=task.kind,
            case_json=encode_case(case_of(item)).decode(),
            responses=task.responses,
            reference=task.gold,
            reason=gold.remark or "",
        )
        session.add(row)
    if taken:
        retire_tasks(session, StoredTask.id.in_(taken))
        record(session, Deed("gold made public", "project", project.id, by, {"tasks": len(taken)}), at=at)
    session.flush()
    return len(taken)


def num_qualification_tasks(session: Session, project: StoredProject) -> int:
    """Count the qualification tasks of a project."""
    live = (StoredQualificationTask.project_id == project.id, StoredQualificationTask.is_retired.is_(False))
    return session.scalar(select(func.count()).where(*live)) or 0


def _plan(case: Case, settings: ProjectSettings) -> tuple[TaskKind, Design]:
    for kind in kinds_of(settings.tasks):
        design = kind.design(case, settings.tasks, seed=settings.seed)
        if design is not None:
            return kind, design
    raise EvidenceError(
        f"prompt {case.prompt.id!r} gets no task",
        where="qualification cases",
        allowed=f"for the kind {settings.tasks.kind!r}: {kinds_of(settings.tasks)[-1].needs}",
        do="leave the case out",
    )
