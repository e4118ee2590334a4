"""Checks of the answers of another tool: those to store, those that are left out, and those stored before."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.external_answers import ExternalAnswer, missing_parts, task_answer
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.errors import ConfigError, Faults, Place, RecordError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Record
from steelyard.workbench.exchange.external_forms import WRONG_ANSWERS
from steelyard.workbench.exchange.external_tasks import ManifestTask, TaskManifest, blind_entry
from steelyard.workbench.pipeline.projects import case_of, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)
from steelyard.workbench.views.blinding import BlindTask


class LeftOut(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An answer that was not imported: its place in the export, whose it is, and why."""

    source: str
    task: str
    person: str
    reason: str


class ReadyAnswer(NamedTuple):
    """An answer that fits its task and its person, with the ids of the responses."""

    external: ExternalAnswer
    entry: ManifestTask
    person: int
    content: TaskAnswer


def check_answers(
    session: Session,
    project: StoredProject,
    manifest: TaskManifest,
    answers: Sequence[ExternalAnswer],
    people: Mapping[str, StoredPerson],
) -> tuple[list[ReadyAnswer], list[LeftOut], int]:
    """Return the answers to store, those that are left out, and the number of those that are stored already.

    Raises RecordError with all answers that are wrong.
    """
    entries, settings = manifest.by_key, settings_of(project)
    faults = Faults(WRONG_ANSWERS)
    seen: dict[tuple[str, int], ExternalAnswer] = {}
    ready: list[ReadyAnswer] = []
    left_out: list[LeftOut] = []
    num_before = 0
    for external in answers:
        entry, person = entries[external.task], people[external.person]
        earlier = seen.setdefault((external.task, person.id), external)
        with faults.gathered():
            if earlier is not external:
                _check_equal(earlier, external)
                continue
            task, blind = _task_of(session, project, entry, external.source)
            if missing := missing_parts(external, entry.letters, has_scores=entry.has_scores):
                left_out.append(leave_out(external, f"incomplete: {'; '.join(missing)}"))
                continue
            content = _stored_content(external, entry, blind)
            if _is_stored(session, task, person, content, external):
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
                left_out.append(leave_out(external, f"contradictory: {reasons}"))
            else:
                ready.append(ReadyAnswer(external, entry, person.id, content))
    faults.check()
    return ready, left_out, num_before


def _check_equal(earlier: ExternalAnswer, external: ExternalAnswer) -> None:
    """Raise RecordError for an answer that differs from an earlier one of the same person to the task."""
    if earlier._replace(source=external.source, seconds=external.seconds, at=external.at) != external:
        raise RecordError(
            f"a second answer of {external.person!r} to {external.task}; the other one is at {earlier.source}",
            where=external.source,
            do="leave one of the two out",
        )


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


def _is_stored(
    session: Session, task: StoredTask, person: StoredPerson, content: TaskAnswer, external: ExternalAnswer
) -> bool:
    """Return whether the workbench has the answer. Raises RecordError where it has another one of the person."""
    stored = session.scalar(
        select(StoredAnswer.content).where(
            StoredAnswer.task_id == task.id, StoredAnswer.person_id == person.id, StoredAnswer.stage == "annotation"
        )
    )
    if stored is not None and msgspec.convert(stored, TaskAnswer) != content:
        raise RecordError(
            f"{person.name!r} has given another answer to {external.task} in the workbench",
            where=external.source,
            do="leave this one out: answers are not replaced",
        )
    return stored is not None


def leave_out(external: ExternalAnswer, reason: str) -> LeftOut:
    """Return an answer that is not imported, with the reason."""
    return LeftOut(source=str(external.source), task=external.task, person=external.person, reason=reason)
