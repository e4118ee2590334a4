"""The rounds of items: the tasks of the first and of each further one, and the reviews that the layers draw."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS
from steelyard.annotation.review import draw_for_review
from steelyard.annotation.task_kinds import Design, TaskKind, kinds_of
from steelyard.core.errors import Place
from steelyard.core.names import mark_unseen
from steelyard.core.text import number_of
from steelyard.core.types import Case, JsonObject
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of, settings_of
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredItem, StoredProject, StoredReview, StoredTask


def plan_case(case: Case, settings: ProjectSettings) -> tuple[TaskKind, Design] | None:
    """Return the first kind of the project that the case has enough responses for, and its tasks."""
    for kind in kinds_of(settings.tasks):
        design = kind.design(case, settings.tasks, seed=settings.seed)
        if design is not None:
            return kind, design
    return None


def first_tasks(number: int, item: JsonObject, case: Case, settings: ProjectSettings) -> Iterator[JsonObject]:
    """Yield the values of the tasks of a new item."""
    planned = plan_case(case, settings)
    assert planned is not None, "an importable case has tasks"
    kind, design = planned
    place = {"project_id": item["project_id"], "item_id": number, "category": item["category"]}
    for task, shown in enumerate(design, start=1):
        yield _task_values(place, task, kind.name, shown, num_wanted=settings.rules.num_annotators)


def tasks_of_next_round(
    session: Session, item: StoredItem, settings: ProjectSettings, *, restores_discarded: bool
) -> list[StoredTask]:
    """Return the tasks of the new round of an item; none where there is nothing to ask.

    The kind of the project's tasks may be another by now, for which the item lacks something: it then gets the tasks of
    the round before once more.
    """
    discarded = [] if restores_discarded else item.discarded
    if tasks := plan_tasks(item, case_of(item), settings, discarded=discarded):
        item.discarded = discarded
        return tasks
    former = select(StoredTask).where(
        StoredTask.item_id == item.id,
        StoredTask.round == item.round - 1,
        StoredTask.is_retired.is_(False),
        StoredTask.is_gold.is_(False),
    )
    return [
        task_of(item, number, task.kind, task.responses, num_wanted=settings.rules.num_annotators)
        for number, task in enumerate(session.scalars(former.order_by(StoredTask.number)).all(), start=1)
    ]


def plan_tasks(
    item: StoredItem,
    case: Case,
    settings: ProjectSettings,
    *,
    discarded: Sequence[str],
) -> list[StoredTask]:
    """Return the tasks of the present round over the responses that were not discarded; none for too few."""
    remaining = msgspec.structs.replace(
        case, responses=tuple(response for response in case.responses if response.id not in discarded)
    )
    planned = plan_case(remaining, settings)
    if planned is None:
        return []
    kind, design = planned
    return [
        task_of(item, number, kind.name, shown, num_wanted=settings.rules.num_annotators)
        for number, shown in enumerate(design, start=1)
    ]


def task_of(item: StoredItem, number: int, kind: str, responses: Sequence[str], *, num_wanted: int) -> StoredTask:
    """Return a new task of the present round of an item."""
    place = {"project_id": item.project_id, "item_id": item.id, "round": item.round, "category": item.category}
    return StoredTask(**_task_values(place, number, kind, responses, num_wanted=num_wanted))


def _task_values(place: JsonObject, number: int, kind: str, responses: Sequence[str], *, num_wanted: int) -> JsonObject:
    """Return the columns of a new task. ``place`` has those that come from its item."""
    return {**place, "number": number, "kind": kind, "responses": list(responses), "num_wanted": num_wanted}


def no_task(case: Case, settings: ProjectSettings, *, where: Place | str, do: str) -> RefusedError:
    """Return the refusal of a case that gets no task."""
    return RefusedError(
        f"prompt {case.prompt.id!r} with {number_of(len(case.responses), 'response')} gets no task",
        words="no task",
        values={"prompt": mark_unseen(case.prompt.id), "responses": f"{len(case.responses)}"},
        where=where,
        allowed=f"for the kind {settings.tasks.kind!r}: {kinds_of(settings.tasks)[-1].needs}",
        do=do,
    )


def draw_reviews(
    session: Session,
    project: StoredProject,
    names: Mapping[str, int],
    batch: str,
    *,
    rounds: Mapping[int, int] | None = None,
) -> dict[str, int]:
    """Write a review to be made for every item that a layer checks; research checks whole batches.

    ``names`` are the `lasting_name` of each item, with their ids; ``rounds`` their rounds by id, 1 by default.
    Returns the number of items that each layer has drawn.
    """
    settings = settings_of(project)
    shares = {"delivery": settings.rules.delivery_share, "operations": settings.rules.operations_share}
    numbers: dict[str, int] = {}
    for layer in LAYERS:
        if layer not in shares:
            continue
        drawn = draw_for_review(tuple(names), layer, share=shares[layer], batch=batch, seed=settings.seed)
        reviews = [
            {
                "project_id": project.id,
                "item_id": names[name],
                "round": (rounds or {}).get(names[name], 1),
                "layer": layer,
            }
            for name in sorted(drawn)
        ]
        if reviews:
            session.execute(insert(StoredReview), reviews)
        numbers[layer] = len(drawn)
    return numbers


def lasting_name(prompt: str, language: str) -> str:
    """Return the name of an item that stays the same wherever its case is imported."""
    return msgspec.json.encode([prompt, language]).decode()
