"""Checks of people by items that have just been finished: gold tasks, and planted reviews.

Planted reviews show the truth, or one task with a wrong answer: one that nobody gave and that differs from what was
settled on a point. They lie ready until it is their turn (`review_placement`).
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import LAYERS, Layer
from steelyard.annotation.task_kinds import Catalogues, kind_named
from steelyard.core.numerics import generator
from steelyard.core.types import Record
from steelyard.workbench.pipeline.disputes import TaskEvidence, are_alike, evidence_of
from steelyard.workbench.pipeline.gold_tasks import gold_from_finished
from steelyard.workbench.pipeline.projects import ProjectSettings, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.pipeline.review_placement import can_review
from steelyard.workbench.storage.tables import StoredItem, StoredPlantedReview, StoredProject, StoredReview

_BLOCK = 500
_MOST_READY = 20
"""Planted reviews of a layer that lie ready: each time, the one comes that is most like the item before it."""
_CHANGED_SHARE = 0.5


class SpoiledTask(Record, frozen=True, kw_only=True):
    """A task of a planted review as it is shown: the wrong answers of its people, by number, and the settled one."""

    task: int
    answers: dict[str, TaskAnswer] = {}  # noqa: RUF012 - msgspec copies it
    proposals: dict[str, TaskAnswer] = {}  # noqa: RUF012
    settled: TaskAnswer | None = None


def plant_finished(session: Session, project: StoredProject, items: Sequence[StoredItem], *, at: float) -> None:
    """Make gold tasks and planted reviews of finished items: what was settled in them checks people from now on."""
    finished = [item for item in items if item.state == "finished"]
    session.flush()
    for start in range(0, len(finished), _BLOCK):
        block = finished[start : start + _BLOCK]
        gold_from_finished(session, project, [item.id for item in block], at=at)
        _prepare_reviews(session, project, block)


def _prepare_reviews(session: Session, project: StoredProject, items: Sequence[StoredItem]) -> None:
    """Make planted reviews of items that have just been finished, as far as the layers need some.

    Items with a task on which its people differ, and that nobody settled, have no truth. Delivery and operations get
    items that they had not drawn: others were in their queue before.
    """
    settings = settings_of(project)
    if not settings.rules.review_gold_share:
        return
    drawn_shares: dict[Layer, float] = {
        "delivery": settings.rules.delivery_share,
        "operations": settings.rules.operations_share,
    }
    checked: dict[Layer, float] = {**drawn_shares, "research": float(settings.rules.validation)}
    room = {layer: _MOST_READY - _num_ready(session, project.id, layer) for layer in LAYERS if checked[layer]}
    if not any(number > 0 for number in room.values()):
        return
    evidence = evidence_of(session, items)
    for item in items:
        if not evidence[item.id] or any(each.is_open for each in evidence[item.id]):
            continue
        # Those first that have the fewest. One review of an item, in one layer: nobody meets the item in two ways.
        for layer in sorted(LAYERS, key=lambda layer: -room.get(layer, 0)):
            is_new = checked[layer] == 1 or not _had_drawn(session, item, layer)
            if room.get(layer, 0) > 0 and is_new and _is_unknown(session, item, layer):
                made = _prepared(item, evidence[item.id], layer, settings)
                session.add_all(made)
                room[layer] -= len(made)
                break
    session.flush()


def _num_ready(session: Session, project: int, layer: Layer) -> int:
    planted = StoredPlantedReview
    ready = select(func.count()).where(
        planted.project_id == project,
        planted.layer == layer,
        planted.decision.is_(None),
        planted.placed_at.is_(None),
        planted.is_retired.is_(False),
    )
    return session.scalar(ready) or 0


def _had_drawn(session: Session, item: StoredItem, layer: Layer) -> bool:
    drawn = select(StoredReview.id).where(StoredReview.item_id == item.id, StoredReview.layer == layer)
    return session.scalar(drawn.limit(1)) is not None


def _is_unknown(session: Session, item: StoredItem, layer: Layer) -> bool:
    """Tell whether a person of a layer does not know an item, and it has no planted review of this round yet."""
    known = select(StoredItem.id).where(StoredItem.id == item.id, can_review(layer))
    planted = select(StoredPlantedReview.id).where(
        StoredPlantedReview.item_id == item.id,
        StoredPlantedReview.round == item.round,
    )
    return session.scalar(known) is not None and session.scalar(planted) is None


def _prepared(
    item: StoredItem, evidence: Sequence[TaskEvidence], layer: Layer, settings: ProjectSettings
) -> list[StoredPlantedReview]:
    """Return the planted review of an item for a layer; none where a wrong answer is drawn and cannot be made."""
    rng = generator(settings.seed, "planted review", item.id, item.round, LAYERS.index(layer))
    changed = None
    if rng.random() < _CHANGED_SHARE:
        catalogues = catalogues_of(settings)
        order = [evidence[place] for place in rng.permutation(len(evidence))]
        changed = next(
            (spoiled for each in order if (spoiled := spoil_task(each, catalogues, settings.seed)) is not None), None
        )
        if changed is None:
            return []
    return [
        StoredPlantedReview(
            project_id=item.project_id,
            item_id=item.id,
            round=item.round,
            layer=layer,
            changed=None if changed is None else msgspec.to_builtins(changed),
            remarks=[],
        )
    ]


def spoil_task(evidence: TaskEvidence, catalogues: Catalogues, seed: int) -> SpoiledTask | None:
    """Return a task with a wrong answer: all its people give it, or it was settled; null where none is clearly wrong.

    Nobody may have given it: what a person said before a dispute was settled is not clearly wrong.
    """
    task = evidence.task
    kind = kind_named(task.kind)

    def falsified(answer: TaskAnswer) -> TaskAnswer | None:
        # The same draw for everybody: people who agreed agree on what is shown.
        return kind.falsify(answer, catalogues, generator(seed, "wrong answer", task.id))

    if evidence.settled is not None:
        agreeing = {
            str(person): answer
            for person, answer in evidence.proposals.items()
            if are_alike(task, [evidence.settled, answer])
        }
        proposals = {person: wrong for person, answer in agreeing.items() if (wrong := falsified(answer)) is not None}
        settled, answers = falsified(evidence.settled), {}
        shown = [settled, *proposals.values()]
        is_whole = len(proposals) == len(agreeing)
    else:
        drawn = {str(person): falsified(answer) for person, answer in evidence.answers.items()}
        answers = {person: wrong for person, wrong in drawn.items() if wrong is not None}
        settled, proposals = None, {}
        shown = list(answers.values())
        is_whole = len(answers) == len(evidence.answers)
    wrong_answers = [wrong for wrong in shown if wrong is not None]
    if not is_whole or not wrong_answers or len(wrong_answers) != len(shown) or not are_alike(task, wrong_answers):
        return None
    true = [*evidence.answers.values(), *([] if evidence.settled is None else [evidence.settled])]
    if any(are_alike(task, [wrong, answer]) for wrong in wrong_answers for answer in true):
        return None
    if any(kind.contradictions(wrong, task.responses) for wrong in wrong_answers):
        return None
    return SpoiledTask(task=task.id, answers=answers, proposals=proposals, settled=settled)


def answers_shown(planted: StoredPlantedReview) -> dict[tuple[int, str, int | None], TaskAnswer]:
    """Return the changed answers of a planted review by task, stage and person; those that settled have no person."""
    if planted.changed is None:
        return {}
    spoiled = msgspec.convert(planted.changed, SpoiledTask)
    changed: dict[tuple[int, str, int | None], TaskAnswer] = {}
    for stage, answers in (("annotation", spoiled.answers), ("proposal", spoiled.proposals)):
        changed |= {(spoiled.task, stage, int(person)): answer for person, answer in answers.items()}
    if spoiled.settled is not None:
        changed[spoiled.task, "settled", None] = spoiled.settled
    return changed
