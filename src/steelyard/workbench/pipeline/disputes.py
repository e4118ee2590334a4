"""Evidence of people on each task of an item: their answers, what they propose while they align, and what was settled.

Answers of the stage ``proposal`` are steps of a discussion: the latest of a person counts. The answer that people align
on has the stage ``alignment``, the one of a layer its name: either settles the task.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from string import ascii_uppercase

import msgspec
from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from steelyard.annotation.agreement import disputed_points
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import SETTLED_BY
from steelyard.annotation.questions import Point
from steelyard.annotation.task_kinds import TaskKind, kind_named
from steelyard.core.iteration import batched
from steelyard.core.numerics import generator
from steelyard.core.types import Case
from steelyard.workbench.pipeline.item_states import move
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredTask

_BLOCK = 1000
ALIGNING = ("aligning", *SETTLED_BY)
"""The states of an item whose tasks are to be settled."""
# Every step of a discussion asks this: building the statement takes longer than running it.
_EVIDENCE = (
    select(StoredTask, StoredAnswer)
    .join(StoredItem, StoredTask.item_id == StoredItem.id)
    .outerjoin(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
    .where(
        StoredTask.item_id.in_(bindparam("items", expanding=True)),
        StoredTask.round == StoredItem.round,
        StoredTask.is_retired.is_(False),
        StoredTask.is_gold.is_(False),
    )
    .order_by(StoredTask.item_id, StoredTask.number, StoredAnswer.id)
)


@dataclass
class TaskEvidence:
    """A task with the answers to it by person: ``answers`` before people saw each other's, ``proposals`` after it."""

    task: StoredTask
    answers: dict[int, TaskAnswer] = field(default_factory=dict)
    proposals: dict[int, TaskAnswer] = field(default_factory=dict)
    settled: TaskAnswer | None = None
    settled_by: str = ""

    @property
    def is_complete(self) -> bool:
        """True after all wanted people have answered."""
        return len(self.answers) >= self.task.num_wanted

    @property
    def is_disputed(self) -> bool:
        """True where the people's answers differ on a point, or one of them could not judge."""
        answers = list(self.answers.values())
        return any(answer.cannot_judge is not None for answer in answers) or not are_alike(self.task, answers)

    @property
    def is_open(self) -> bool:
        """True for a disputed task that is not settled yet."""
        return self.settled is None and self.is_disputed

    @property
    def disputed(self) -> tuple[Point, ...]:
        """The points on which any two people differ, in the order of the task."""
        return disputed_among(self.task, list(self.answers.values()))

    @property
    def discarded(self) -> dict[str, str]:
        """The responses that all people of the task discard, or that were discarded in settling it, with reasons."""
        if self.settled is not None:
            return self.settled.discarded
        if not self.is_complete:
            return {}
        first, *others = self.answers.values()
        return {
            response: reason
            for response, reason in first.discarded.items()
            if all(response in other.discarded for other in others)
        }


def evidence_of(session: Session, items: Iterable[StoredItem]) -> dict[int, list[TaskEvidence]]:
    """Return the tasks of the present round of each item with their answers, in the order of their numbers."""
    evidence: dict[int, list[TaskEvidence]] = {item.id: [] for item in items}
    # Databases limit the number of values in one statement.
    blocks = (session.execute(_EVIDENCE, {"items": block}).all() for block in batched(evidence, _BLOCK))
    for task, answer in chain.from_iterable(blocks):
        of_item = evidence[task.item_id]
        if not of_item or of_item[-1].task.id != task.id:
            of_item.append(TaskEvidence(task))
        if answer is None:
            continue
        content = msgspec.convert(answer.content, TaskAnswer)
        if answer.stage == "annotation":
            of_item[-1].answers[answer.person_id] = content
        elif answer.stage == "proposal":
            of_item[-1].proposals[answer.person_id] = content
        else:
            of_item[-1].settled, of_item[-1].settled_by = content, answer.stage
    return evidence


def letters_of(item: int, case: Case) -> dict[str, str]:
    """Return the letter of each response of the item of a number, the first letter first.

    It is the same in all tasks of the item and for everybody; letters are drawn, so that none belongs to a model.
    """
    order = generator(item, "letters").permutation(len(case.responses)).tolist()
    return {case.responses[place].id: _letter(number) for number, place in enumerate(order)}


def adjudication_order(responses: Sequence[str], kind: TaskKind, letters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the responses of a task in the order of the pages where it is settled: by their letters.

    A kind with a fixed order keeps it.
    """
    if not kind.is_shuffled:
        return tuple(responses)
    return tuple(sorted(responses, key=lambda response: (len(letters[response]), letters[response])))


def finish_if_settled(session: Session, item: StoredItem, *, person: int | None, at: float) -> None:
    """Move an item on whose tasks are all settled or undisputed; nothing happens in other states or before that."""
    if item.state not in ALIGNING:
        return
    session.flush()
    if not any(evidence.is_open for evidence in evidence_of(session, [item])[item.id]):
        move(session, item, "settled", person=person, at=at)


def are_alike(task: StoredTask, answers: Sequence[TaskAnswer]) -> bool:
    """Tell whether all answers to a task say the same on every point."""
    return not disputed_among(task, answers)


def disputed_among(task: StoredTask, answers: Sequence[TaskAnswer]) -> tuple[Point, ...]:
    """Return the points on which not all answers to a task say the same, in the order of the task."""
    kind = kind_named(task.kind)
    different: dict[Point, None] = {}
    for other in answers[1:]:
        different |= dict.fromkeys(disputed_points(task.responses, (answers[0], other), kind))
    in_order = dict.fromkeys(point for answer in answers for point in kind.points(answer, task.responses))
    return tuple(point for point in in_order if point in different)


def _letter(number: int) -> str:
    return ascii_uppercase[number % 26] + (str(number // 26 + 1) if number >= 26 else "")
