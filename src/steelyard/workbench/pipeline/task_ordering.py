"""Ordering the open items of a project by what a committee of models and judges says of them.

Only items that nobody has begun get a new place: what was begun comes first, so that it is finished, and keeps the
record of how it was chosen. The rules of the queue (`queues`) stay as they are: they take the task of the highest
priority that a person may have.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np
from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from steelyard.annotation.task_priority import NUM_DECILES, consensus, deciles, item_means, queue_order
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import Floats, Integers, derived_seeds
from steelyard.core.types import Case, Record
from steelyard.ranking.judgment_table import distinct_judgments
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.projects import case_of, item_name, settings_of
from steelyard.workbench.pipeline.queue_sources import CaseKey, CommitteeMember, ComparedPair, key_of, verdict_counts
from steelyard.workbench.storage.audit_log import Deed, record
from steelyard.workbench.storage.queue_tables import StoredQueue, StoredQueuePlace
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredItem, StoredProject, StoredTask

_BEGUN = 2.0
"""The priority of tasks of items that people have begun. Those of a queue are above 0 and at most 1."""
_BLOCK = 500


class QueueSource(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A member of the committee: its file with the hash, and the pairs of open items on which it has an opinion.

    ``num_labels``: the pairs labelled by people that it is fitted to; ``fitted``: the steepness of a model's margins,
    or the accuracy of a judge, null where there were too few labels.
    """

    name: str
    file: str
    sha256: str
    num_pairs: int
    num_labels: int
    fitted: float | None


class QueueItem(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An item in its place, counted from 1: `queue_tables.StoredQueuePlace`. ``item`` is its number."""

    item: int
    prompt: str
    language: str
    place: int
    priority: float | None
    uncertainty: float | None
    disagreement: float | None
    decile: int
    is_random: bool


class DecileRange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A tenth of the items by priority, 1 the highest: how many they are, and their priorities in bits."""

    decile: int
    num_items: int
    lowest: float
    mean: float
    highest: float


class QueuePlan(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A queue to be stored. ``num_unknown``: items without any opinion; ``num_begun``: those not moved."""

    random_share: float
    sources: tuple[QueueSource, ...]
    deciles: tuple[DecileRange, ...]
    num_random: int
    num_unknown: int
    num_begun: int
    items: tuple[QueueItem, ...]


class _OpenItems(NamedTuple):
    """The open items that nobody has begun, and the pairs that their tasks compare, with the position of the item."""

    rows: Sequence[StoredItem]
    pairs: Sequence[ComparedPair]
    positions: Integers
    num_begun: int


def cases_of(session: Session, project: StoredProject) -> dict[CaseKey, Case]:
    """Return every case of a project as it was imported."""
    items = session.scalars(select(StoredItem).where(StoredItem.project_id == project.id).order_by(StoredItem.id))
    return {key_of(case): case for case in map(case_of, items)}


def plan_queue(
    session: Session,
    project: StoredProject,
    committee: Sequence[CommitteeMember],
    *,
    random_share: float,
    batch: str | None = None,
) -> QueuePlan:
    """Return the order of the open items, of a batch or of the project. Raises ConfigError where none can be ordered.

    A model's margins and a judge's verdicts become probabilities by what people have said: in the cases that were
    imported, and in finished items that did not come by priority, since those that did are harder than others.
    """
    check_share(random_share)
    opened = _open_items(session, project, batch)
    if not opened.pairs:
        kind = settings_of(project).tasks.kind
        problem = "no open item compares responses that nobody has begun to answer" if batch is None else "no task"
        do = "import cases to be compared"
        raise RefusedError(problem, words="nothing to order", where=f"project {project.name} ({kind})", do=do)
    labelled, label = _labels(session, project)
    pairs = [*opened.pairs, *labelled]
    label = np.concatenate([np.full(len(opened.pairs), np.nan), label])
    spoken = [member.probabilities(pairs, label) for member in committee]
    number = len(opened.pairs)
    probability = np.stack([each.probability[:number] for each in spoken])
    sources = tuple(
        QueueSource(
            name=member.name,
            file=member.file,
            sha256=member.sha256,
            num_pairs=int(np.isfinite(each.probability[:number]).sum()),
            num_labels=each.num_labels,
            fitted=each.fitted,
        )
        for member, each in zip(committee, spoken, strict=True)
    )
    return _planned(opened, probability, sources, seed=settings_of(project).seed, random_share=random_share)


def store_queue(session: Session, project: StoredProject, plan: QueuePlan, *, by: int | None, at: float) -> int:
    """Give the items of a plan their places, as far as nobody has begun them since. Returns how many have one.

    The order that they have already is not recorded again: the same command may be repeated.
    """
    # Locked until the end: who would begin one of them now waits for its new place.
    free = set(session.scalars(untouched_items(project).with_for_update()))
    items = [item for item in plan.items if item.item in free]
    if _is_present_order(session, project, plan, items):
        return len(items)
    queue = StoredQueue(
        project_id=project.id,
        person_id=by,
        at=at,
        random_share=plan.random_share,
        sources=[msgspec.to_builtins(source) for source in plan.sources],
    )
    session.add(queue)
    session.flush()
    rows = [
        {"project_id": project.id, "item_id": each.item, "queue_id": queue.id}
        | {name: getattr(each, name) for name in _COLUMNS}
        for each in items
    ]
    _lift_begun(session, project, free)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        session.execute(delete(StoredQueuePlace).where(StoredQueuePlace.item_id.in_([row["item_id"] for row in block])))
        session.execute(insert(StoredQueuePlace), block)
    numbers = [{"item": item.item, "value": 1 - (item.place - 1) / len(plan.items)} for item in items]
    if numbers:
        session.connection().execute(_SET_PRIORITY, numbers)
    detail = {"queue": queue.id, "items": len(items), "random share": plan.random_share}
    sources = [{"name": source.name, "file": source.file, "sha256": source.sha256} for source in plan.sources]
    record(session, Deed("queue ordered", "project", project.id, by, detail | {"sources": sources}), at=at)
    return len(items)


def _is_present_order(session: Session, project: StoredProject, plan: QueuePlan, items: Sequence[QueueItem]) -> bool:
    """Return whether the latest queue has the sources of a plan and these items in their places."""
    latest = session.scalar(
        select(StoredQueue).where(StoredQueue.project_id == project.id).order_by(StoredQueue.id.desc()).limit(1)
    )
    sources = [msgspec.to_builtins(source) for source in plan.sources]
    if latest is None or (latest.random_share, latest.sources) != (plan.random_share, sources):
        return False
    columns = [StoredQueuePlace.item_id, *(getattr(StoredQueuePlace, name) for name in _COLUMNS)]
    places = {
        row[0]: tuple(row[1:])
        for row in session.execute(select(*columns).where(StoredQueuePlace.queue_id == latest.id))
    }
    return all(places.get(each.item) == tuple(getattr(each, name) for name in _COLUMNS) for each in items)


_COLUMNS = ("place", "priority", "uncertainty", "disagreement", "decile", "is_random")
_TASKS = StoredTask.__table__
_SET_PRIORITY = (
    update(_TASKS)  # pyright: ignore[reportArgumentType] - the Table of a declared class
    .where(_TASKS.c.item_id == bindparam("item"), _TASKS.c.is_gold.is_(False), _TASKS.c.is_retired.is_(False))
    .values(priority=bindparam("value"))
)


def check_share(share: float) -> None:
    """Raise ConfigError for a share of random items that is none."""
    if not 0 <= share <= 1:
        raise ConfigError(f"a share of {share}", where="--random-share", allowed="0 to 1")


def _planned(
    opened: _OpenItems, probability: Floats, sources: tuple[QueueSource, ...], *, seed: int, random_share: float
) -> QueuePlan:
    number = len(opened.rows)
    of_pairs = consensus(probability)
    means = [item_means(value, opened.positions, number) for value in of_pairs]
    names = [item_name(item) for item in opened.rows]
    draw = np.array(derived_seeds(seed, ("random part of the queue",), names), np.float64) / 2**63
    order = queue_order(means[0], draw, random_share=random_share)
    tenth = deciles(means[0])
    places = [(place, int(position)) for place, position in enumerate(order.items, start=1)]
    return QueuePlan(
        random_share=random_share,
        sources=sources,
        deciles=_decile_ranges(means[0], tenth),
        num_random=int(order.is_random.sum()),
        num_unknown=int((~np.isfinite(means[0])).sum()),
        num_begun=opened.num_begun,
        items=tuple(
            QueueItem(
                item=opened.rows[position].id,
                prompt=opened.rows[position].prompt,
                language=opened.rows[position].language,
                place=place,
                priority=_known(means[0][position]),
                uncertainty=_known(means[1][position]),
                disagreement=_known(means[2][position]),
                decile=int(tenth[position]),
                is_random=bool(order.is_random[position]),
            )
            for place, position in places
        ),
    )


def _decile_ranges(priority: Floats, tenth: Integers) -> tuple[DecileRange, ...]:
    groups = [(decile, priority[tenth == decile]) for decile in range(1, NUM_DECILES + 1)]
    return tuple(
        DecileRange(
            decile=decile,
            num_items=len(values),
            lowest=float(values.min()),
            mean=float(values.mean()),
            highest=float(values.max()),
        )
        for decile, values in groups
        if len(values)
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def untouched_items(project: StoredProject):  # noqa: ANN201 - the type of a statement says less than the statement
    """Return the statement for items of the first round without a task that is answered or in anybody's hands."""
    begun = select(StoredTask.item_id).where(StoredTask.project_id == project.id, StoredTask.num_reserved > 0)
    return (
        select(StoredItem.id)
        .where(
            StoredItem.project_id == project.id,
            StoredItem.state == "annotating",
            StoredItem.round == 1,
            StoredItem.id.not_in(begun),
        )
        .order_by(StoredItem.id)
    )


def _open_items(session: Session, project: StoredProject, batch: str | None) -> _OpenItems:
    """Return the items to be ordered, those whose tasks compare responses."""
    in_work = select(func.count()).where(StoredItem.project_id == project.id, StoredItem.state == "annotating")
    free = select(StoredItem).where(StoredItem.id.in_(untouched_items(project).order_by(None))).order_by(StoredItem.id)
    rows = session.scalars(free if batch is None else free.where(StoredItem.batch == batch)).all()
    tasks: defaultdict[int, list[Sequence[str]]] = defaultdict(list)
    stated = select(StoredTask.item_id, StoredTask.responses).where(
        StoredTask.project_id == project.id, StoredTask.is_gold.is_(False), StoredTask.is_retired.is_(False)
    )
    for item, responses in session.execute(stated):
        tasks[item].append(responses)
    compared = [item for item in rows if any(len(task) > 1 for task in tasks[item.id])]
    pairs, positions = list[ComparedPair](), list[int]()
    for position, item in enumerate(compared):
        of_item = [
            ComparedPair((item.prompt, item.language), *two)
            for task in tasks[item.id]
            for two in combinations(sorted(task), 2)
        ]
        pairs += of_item
        positions += [position] * len(of_item)
    num_begun = (session.scalar(in_work) or 0) - len(rows) if batch is None else 0
    return _OpenItems(compared, pairs, np.array(positions, np.int64), num_begun)


def _labels(session: Session, project: StoredProject) -> tuple[list[ComparedPair], Floats]:
    """Return the pairs that people have compared, with 1 where the first response is better, -1 worse, 0 neither."""
    cases = cases_of(session, project)
    by_priority = _chosen_keys(session, project)
    for case in export_cases(session, project, evidence="aligned"):
        if key_of(case) not in by_priority:
            cases[key_of(case)] = case
    pairs, labels = list[ComparedPair](), list[float]()
    for key, case in cases.items():
        by_people = [each for each in distinct_judgments(case.judgments) if each.kind == "human"]
        for first, second in sorted({tuple(sorted((each.left, each.right))) for each in by_people}):
            pair = ComparedPair(key, first, second)
            won, lost, _ = verdict_counts(by_people, pair)
            pairs.append(pair)
            labels.append(float(np.sign(won - lost)))
    return pairs, np.array(labels, np.float64)


def _chosen_keys(session: Session, project: StoredProject) -> set[CaseKey]:
    """Return the keys of the items that came by priority."""
    rows = session.execute(
        select(StoredItem.prompt, StoredItem.language)
        .join(StoredQueuePlace, StoredQueuePlace.item_id == StoredItem.id)
        .where(StoredItem.project_id == project.id, StoredQueuePlace.is_random.is_(False))
    )
    return {(prompt, language) for prompt, language in rows}


def _lift_begun(session: Session, project: StoredProject, free: set[int]) -> None:
    """Let the items that people have begun come before all others."""
    begun = session.scalars(
        select(StoredItem.id).where(StoredItem.project_id == project.id, StoredItem.state == "annotating")
    )
    numbers: list[Mapping[str, float]] = [{"item": item, "value": _BEGUN} for item in begun if item not in free]
    if numbers:
        session.connection().execute(_SET_PRIORITY, numbers)
