"""The export of a project: its finished items as cases, with every judgment and where it came from.

Items are read in blocks, each with its answers in one query: memory does not grow with the project, and the database is
asked a few times for hundreds of items.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy import Select, select, tuple_
from sqlalchemy.orm import Session

from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.task_kinds import TaskKind, kind_named
from steelyard.core.iteration import batched
from steelyard.core.types import Case, JsonObject
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.disputes import adjudication_order, letters_of
from steelyard.workbench.pipeline.projects import case_of
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredGuideline,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)

BLOCK = 500
"""The items that are read at a time."""
_CASES_IN_A_CHUNK = 50
ALIGNED = "alignment"
"""The judge of what people aligned; `meta.people` names them."""
Evidence = Literal["aligned", "both"]
"""The exported answers: the final ones, or the first answers of both people, too, which undo the alignment."""


class _ExportedAnswer(NamedTuple):
    """An answer of an item's present round, with what is exported of its task and its person.

    ``id`` and ``task`` are numbers in the database, ``number`` is that of the task within the item; ``shown`` is
    null for an answer without an assignment: what is settled is shown in the order of the letters.
    """

    item: int
    task: int
    round: int
    number: int
    kind: str
    responses: list[str]
    id: int
    stage: str
    seconds: float
    guideline: int | None
    guideline_version: int | None
    content: JsonObject
    pseudonym: str
    is_simulated: bool
    shown: list[str] | None


def export_cases(
    session: Session,
    project: StoredProject,
    *,
    evidence: Evidence,
    block: int = BLOCK,
    left_out: Select[int] | None = None,
) -> Iterator[Case]:
    """Yield the case of every finished item with its judgments and ratings, in the order of the import.

    ``both`` takes what two people wrote before they saw each other's answers, and what was aligned or settled as
    further judgments; ``aligned`` takes for each task only the answer that stands: the latest settled one, else both.
    ``block``: how many items are read at a time; the cases are the same with any number. ``left_out``: selects items
    that the reader is shown as unfinished.
    """
    after = -1, 0
    is_sent = [StoredItem.project_id == project.id, StoredItem.state == "finished"]
    if left_out is not None:
        is_sent.append(StoredItem.id.not_in(left_out))
    order = tuple_(StoredItem.place, StoredItem.id)
    finished = select(StoredItem).where(*is_sent).order_by(StoredItem.place, StoredItem.id).limit(block)
    while items := session.scalars(finished.where(order > after)).all():
        answers = _answers_of(session, items)
        for item in items:
            case = _with_evidence(project, item, answers.get(item.id, []), evidence)
            if case is not None:
                yield case
        after = items[-1].place, items[-1].id
        session.expunge_all()


def exported_chunks(session: Session, project: StoredProject, evidence: Evidence) -> Iterator[bytes]:
    """Yield lines of a case file, many in a chunk: each chunk waits for its turn between the requests of others."""
    for some in batched(export_cases(session, project, evidence=evidence), _CASES_IN_A_CHUNK):
        yield b"".join(map(encode_case, some))


def task_name(project: StoredProject, round_number: int, number: int) -> str:
    """Return how a task of an item is named outside the workbench: its project, its round and its number.

    The case may have evidence of another project already, or be joined with it: equal names would be one task there.
    """
    of_project = hashlib.sha256(f"{project.name} {project.created_at!r}".encode()).hexdigest()[:8]
    return f"{of_project}-{round_number}-{number}"


def _answers_of(session: Session, items: Sequence[StoredItem]) -> dict[int, list[_ExportedAnswer]]:
    """Return the answers to the tasks of the items' present rounds, by item and in the order of the tasks."""
    rows: Any = session.execute(
        select(
            StoredTask.item_id,
            StoredTask.id,
            StoredTask.round,
            StoredTask.number,
            StoredTask.kind,
            StoredTask.responses,
            StoredAnswer.id,
            StoredAnswer.stage,
            StoredAnswer.seconds,
            StoredAnswer.guideline_id,
            StoredGuideline.version,
            StoredAnswer.content,
            StoredPerson.pseudonym,
            StoredPerson.is_simulated,
            StoredAssignment.shown,
        )
        .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
        .join(StoredPerson, StoredAnswer.person_id == StoredPerson.id)
        .outerjoin(StoredAssignment, StoredAnswer.assignment_id == StoredAssignment.id)
        .outerjoin(StoredGuideline, StoredAnswer.guideline_id == StoredGuideline.id)
        .where(
            StoredTask.item_id.in_([item.id for item in items]),
            StoredTask.is_retired.is_(False),
            # Steps of a discussion: what came of it has a row of its own.
            StoredAnswer.stage != "proposal",
            # Answers to gold tasks measure people; the item had its people before.
            StoredTask.is_gold.is_(False),
        )
        .order_by(StoredTask.item_id, StoredTask.number, StoredAnswer.id)
    )
    rounds = {item.id: item.round for item in items}
    answers: dict[int, list[_ExportedAnswer]] = defaultdict(list)
    for answer in map(_ExportedAnswer._make, rows):
        if answer.round == rounds[answer.item]:
            answers[answer.item].append(answer)
    return answers


def _with_evidence(
    project: StoredProject, item: StoredItem, answers: Sequence[_ExportedAnswer], evidence: Evidence
) -> Case | None:
    """Return the case with its evidence, as the answers that stand change it; null where they drop the prompt."""
    case = case_of(item)
    letters = letters_of(item.id, case)
    annotators: dict[int, dict[str, bool]] = defaultdict(dict)
    for answer in answers:
        if answer.stage == "annotation":
            annotators[answer.task][answer.pseudonym] = answer.is_simulated
    settled = {answer.task: answer.id for answer in answers if answer.stage != "annotation"}
    judgments, ratings = list(case.judgments), list(case.ratings)
    standing: dict[int, tuple[TaskKind, TaskAnswer, Origin]] = {}
    for answer in answers:
        if evidence == "aligned" and settled.get(answer.task, answer.id) != answer.id:
            continue
        content, kind = msgspec.convert(answer.content, TaskAnswer), kind_named(answer.kind)
        shown = answer.shown or adjudication_order(answer.responses, kind, letters)
        name = task_name(project, answer.round, answer.number)
        origin = _origin(answer, name, tuple(shown), item.batch, annotators[answer.task])
        judgments += kind.judgments(content, origin)
        # A rating has no fields of its own for what a judgment names: the batch and the order shown.
        full = origin.meta | {"batch": item.batch, "shown": list(origin.shown)}
        ratings += kind.ratings(content, origin._replace(meta=full))
        if settled.get(answer.task) == answer.id or answer.task not in standing:
            standing[answer.task] = (kind, content, origin)
    meta: JsonObject = {"agreement": item.agreement, "discarded": list(item.discarded), "evidence": evidence}
    if case.meta.keys() & meta:
        # What the imported file, perhaps an earlier export, says under these names is another fact, and is kept.
        meta["imported"] = {name: case.meta[name] for name in (*meta, "imported") if name in case.meta}
    exported: Case | None = msgspec.structs.replace(
        case, judgments=tuple(judgments), ratings=tuple(ratings), meta=case.meta | meta
    )
    for kind, content, origin in standing.values():
        exported = None if exported is None else kind.revise(exported, content, origin)
    return exported


def _origin(answer: _ExportedAnswer, task: str, shown: tuple[str, ...], batch: str, people: dict[str, bool]) -> Origin:
    """Return where an answer comes from. ``people``: who annotated its task, and whether they are simulated.

    What they aligned is the answer of them all, not of the one who agreed last: its judge is `ALIGNED`. A name for each
    pair of people would make hundreds of judges of a few judgments each.
    """
    is_joint = answer.stage == "alignment"
    is_simulated = any(people.values()) if is_joint else answer.is_simulated
    return Origin(
        judge=ALIGNED if is_joint else answer.pseudonym,
        task=task + ("" if answer.stage == "annotation" else f"-{answer.stage}"),
        shown=shown,
        batch=batch,
        # Nobody measures how long people settle a task, and some tools report no time: 0 would be a wrong figure.
        meta={"stage": answer.stage, "seconds": answer.seconds or None, "guideline": answer.guideline}
        | ({} if answer.guideline_version is None else {"guideline_version": answer.guideline_version})
        # Reports say so wherever such a judgment counts.
        | ({"simulated": True} if is_simulated else {})
        | ({"people": sorted(people)} if is_joint else {}),
    )
