"""Work that waits for nobody: open tasks that no annotator may take, and items that no reviewer may decide on.

Only tasks that may be unassignable are looked at one by one: those of a later round, those that were handed back, and
all where the team is not larger than the number of answers that a task needs. All others are counted by category.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from sqlalchemy import Select, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.pipeline import REVIEWED_BY, SETTLED_BY
from steelyard.core.text import natural_order
from steelyard.core.types import Record
from steelyard.workbench.pipeline.offboarding import abandoned
from steelyard.workbench.pipeline.projects import ProjectSettings, settings_of
from steelyard.workbench.pipeline.queues import may_work
from steelyard.workbench.pipeline.review_placement import ROLE_OF
from steelyard.workbench.pipeline.work_limits import closed_categories
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)

Reason = Literal[
    "nobody", "not qualified", "skills", "record", "rework others", "rework same", "had", "no reviewer",
    "reviewers worked", "gone",
]  # fmt: skip
"""Why work is unassignable: nobody annotates; nobody is qualified; none has the category; all records of
those with it are too low (`work_limits`); the rule of rework leaves out everybody, in one way or the other; everybody
who may has had the task. Of items: no account has the role that decides; all of that role have worked on the item;
a person who has to align has a closed account, or another role by now."""
_WAITING = {state: ROLE_OF[layer] for state, layer in (REVIEWED_BY | SETTLED_BY).items()}
_MOST_TASKS = 5000
_NUM_EXAMPLES = 5


class UnassignableWork(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Tasks or items that wait for nobody. ``about``: their category, or the state of the items; ``examples``: prompts.

    ``is_least``: there may be more, for not all tasks were looked at.
    """

    reason: Reason
    about: str
    number: int
    examples: tuple[str, ...]
    is_least: bool = False


class _Annotator(NamedTuple):
    number: int
    skills: Collection[str]
    closed: Collection[str] = ()


class _UnassignableGroup(NamedTuple):
    """Tasks or items that wait for the same reason; ``items``: some of theirs, or all."""

    reason: Reason
    about: str
    number: int
    items: Sequence[int]
    is_least: bool = False


class _OpenTask(NamedTuple):
    """A task that more people may be assigned to, without its texts."""

    number: int
    item: int
    category: str
    round: int


class _Team(NamedTuple):
    """The active annotators, and those of them who may work in the project."""

    every: Sequence[_Annotator]
    qualified: Sequence[_Annotator]

    def skilled(self, category: str) -> set[int]:
        """Return those who may work on a category."""
        return {each.number for each in self._with_skill(category) if category not in each.closed}

    def _with_skill(self, category: str) -> list[_Annotator]:
        return [each for each in self.qualified if not (each.skills and category) or category in each.skills]

    def why_none(self, category: str) -> Reason | None:
        """Return why nobody may work on a category; null where a person may."""
        if not self.every:
            return "nobody"
        if not self.qualified:
            return "not qualified"
        if self.skilled(category):
            return None
        return "record" if self._with_skill(category) else "skills"


def unassignable_work(session: Session, project: StoredProject) -> tuple[UnassignableWork, ...]:
    """Return the work of a project that waits for nobody, by reason and category or state."""
    settings = settings_of(project)
    people = session.execute(
        select(StoredPerson.id, StoredPerson.skills).where(
            StoredPerson.role == "annotator", StoredPerson.is_active.is_(True)
        )
    ).all()
    closed = closed_categories(session, settings.limits, project=project.id)
    every = [_Annotator(number, frozenset(skills), frozenset(closed.get(number, ()))) for number, skills in people]
    qualified = [each for each in every if may_work(session, settings, project=project.id, person=each.number)]
    team = _Team(every, qualified)
    counts = select(StoredTask.category, func.count()).where(*_is_open(project.id)).group_by(StoredTask.category)
    categories = {category: number for category, number in session.execute(counts)}  # noqa: C416 - `dict` takes no rows
    groups = [
        _UnassignableGroup(reason, category, number, _first_items(session, project.id, category))
        for category, number in categories.items()
        if (reason := team.why_none(category)) is not None
    ]
    usable = [category for category in categories if team.why_none(category) is None]
    groups += _one_by_one(session, project.id, settings, team, usable)
    groups += _waiting_items(session, project.id)
    examples = [sorted(set(group.items))[:_NUM_EXAMPLES] for group in groups]
    prompts = _prompts(session, {item for items in examples for item in items})
    rows = [
        UnassignableWork(
            reason=group.reason,
            about=group.about,
            number=group.number,
            examples=tuple(prompts[item] for item in items),
            is_least=group.is_least,
        )
        for group, items in zip(groups, examples, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.number, row.reason, natural_order(row.about))))


def _is_open(project: int) -> tuple:
    return (StoredTask.project_id == project, StoredTask.is_gold.is_(False), StoredTask.is_open.is_(True))


def _one_by_one(
    session: Session, project: int, settings: ProjectSettings, team: _Team, categories: Sequence[str]
) -> list[_UnassignableGroup]:
    """Return the tasks that everybody who might take them has had, or is left out of by the rule of rework."""
    able = {category: team.skilled(category) for category in categories}
    is_small = min(map(len, able.values()), default=0) < settings.rules.num_annotators
    chosen = _candidates(project, categories, are_all=is_small)
    tasks = [_OpenTask(*row) for row in session.execute(chosen)]
    had, former = _people_of(session, chosen), _former_people(session, chosen)
    unassignable: dict[tuple[Reason, str], list[_OpenTask]] = defaultdict(list)
    for task in tasks:
        by_rule = _by_rule(able[task.category], former.get(task.item, {}), task.round, settings.rules.rework)
        if not by_rule:
            unassignable[
                "rework same" if settings.rules.rework == "same people" else "rework others", task.category
            ].append(task)
        elif by_rule <= had.get(task.number, set()):
            unassignable["had", task.category].append(task)
    is_least = len(tasks) == _MOST_TASKS
    return [
        _UnassignableGroup(reason, category, len(of_reason), [task.item for task in of_reason], is_least)
        for (reason, category), of_reason in unassignable.items()
    ]


def _candidates(project: int, categories: Sequence[str], *, are_all: bool) -> Select:
    """Select what an `_OpenTask` has of open tasks: of a later round and handed back ones, or ``are_all``."""
    columns = (StoredTask.id, StoredTask.item_id, StoredTask.category, StoredTask.round)
    chosen = select(*columns).where(*_is_open(project), StoredTask.category.in_(categories))
    if not are_all:
        handed_back = exists().where(StoredAssignment.task_id == StoredTask.id, StoredAssignment.state == "released")
        chosen = chosen.where(or_(StoredTask.round > 1, handed_back))
    return chosen.order_by(StoredTask.id).limit(_MOST_TASKS)


def _by_rule(able: set[int], former: Mapping[int, int], round_: int, rework: str) -> set[int]:
    """Return those who may take a task by the rule of rework; ``former`` has the first round of each earlier person."""
    earlier = {person for person, first in former.items() if first < round_}
    if round_ == 1 or rework == "anyone":
        return able
    return able - earlier if rework == "others" else able & earlier


def _people_of(session: Session, chosen: Select) -> dict[int, set[int]]:
    """Return who has had each of the chosen tasks; a person who let it expire may take it again."""
    # The tasks are chosen again: their numbers, thousands of parameters, would take longer.
    tasks, had = chosen.subquery(), defaultdict(set)
    rows = (
        select(StoredAssignment.task_id, StoredAssignment.person_id)
        .join(tasks, tasks.c.id == StoredAssignment.task_id)
        .where(StoredAssignment.state.not_in(("expired", "unseen")))
    )
    for task, person in session.execute(rows):
        had[task].add(person)
    return had


def _former_people(session: Session, chosen: Select) -> dict[int, dict[int, int]]:
    """Return who answered tasks of the items of chosen tasks of later rounds, with the first round of each person."""
    later = chosen.subquery()
    items = select(later.c.item_id).where(later.c.round > 1)
    former: dict[int, dict[int, int]] = defaultdict(dict)
    rows = (
        select(StoredTask.item_id, StoredAssignment.person_id, func.min(StoredTask.round))
        .join(StoredAssignment, StoredAssignment.task_id == StoredTask.id)
        .where(StoredTask.item_id.in_(items), StoredAssignment.state == "answered")
        .group_by(StoredTask.item_id, StoredAssignment.person_id)
    )
    for item, person, first in session.execute(rows):
        former[item][person] = first
    return former


def _waiting_items(session: Session, project: int) -> list[_UnassignableGroup]:
    """Return items that nobody may review, settle or align."""
    people: dict[str, set[int]] = defaultdict(set)
    for person, role in session.execute(
        select(StoredPerson.id, StoredPerson.role).where(StoredPerson.is_active.is_(True))
    ):
        people[role].add(person)
    groups: list[_UnassignableGroup] = []
    for state, role in _WAITING.items():
        waiting = select(StoredItem.id).where(StoredItem.project_id == project, StoredItem.state == state)
        if people[role]:
            groups += _group("reviewers worked", state, _worked_on_by_all(session, waiting, people[role]))
        else:
            groups += _group("no reviewer", state, session.scalars(waiting).all())
    other = aliased(StoredTask)
    gone = (
        select(StoredItem.id)
        .join(other, (other.item_id == StoredItem.id) & (other.round == StoredItem.round))
        .join(StoredAnswer, StoredAnswer.task_id == other.id)
        .join(StoredPerson, StoredAnswer.person_id == StoredPerson.id)
        .where(
            StoredItem.project_id == project,
            StoredItem.state == "aligning",
            StoredAnswer.stage == "annotation",
            or_(StoredPerson.is_active.is_(False), StoredPerson.role != "annotator"),
        )
        .distinct()
    )
    left = session.scalars(select(StoredItem).where(StoredItem.id.in_(gone)).order_by(StoredItem.id)).all()
    # Who left may have agreed with the others, or have proposed: then nothing waits for this person.
    return groups + _group("gone", "aligning", [item.id for item in abandoned(session, left)])


def _worked_on_by_all(session: Session, waiting: Select[int], people: Collection[int]) -> list[int]:
    """Return the waiting items on which all of these people have worked."""
    rows = session.execute(
        select(StoredTask.item_id, StoredAnswer.person_id)
        .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
        .where(
            StoredTask.item_id.in_(waiting),
            StoredAnswer.person_id.in_(people),
            StoredAnswer.stage.in_(("annotation", "proposal", "alignment")),
        )
        .distinct()
    )
    worked = Counter(item for item, _ in rows)
    return sorted(item for item, number in worked.items() if number == len(people))


def _group(reason: Reason, state: str, items: Sequence[int]) -> list[_UnassignableGroup]:
    return [_UnassignableGroup(reason, state, len(items), items)] if items else []


def _first_items(session: Session, project: int, category: str) -> Sequence[int]:
    items = select(StoredTask.item_id).where(*_is_open(project), StoredTask.category == category)
    return session.scalars(items.order_by(StoredTask.id).limit(_NUM_EXAMPLES * 10)).all()


def _prompts(session: Session, items: Collection[int]) -> dict[int, str]:
    rows = session.execute(select(StoredItem.id, StoredItem.prompt).where(StoredItem.id.in_(items)))
    return {item: prompt for item, prompt in rows}  # noqa: C416 - `dict` takes no rows
