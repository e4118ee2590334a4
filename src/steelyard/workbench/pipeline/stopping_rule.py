"""Whether an item needs further people: its tasks ask for the fewest at first, and for one more while unsure.

The order of a task is sure enough where the stored fit of the people gives it a high enough probability, on average
over the pairs of its responses. It is decided on the locked item, in the transaction of the answer that completes it.
Nobody's place is ever taken back: a task begins with few places and gets more, up to ``num_annotators``. A tenth of the
items, drawn by the seed, asks everybody: by them people are known. Without a fit, or with an answer of somebody whom
the fit knows by fewer than `FEWEST_SHARED` answers, nothing is sure.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.plackett_luce import RankingAnswer, choices_of
from steelyard.annotation.rater_reliability import FEWEST_SHARED
from steelyard.annotation.stopping import sureness
from steelyard.annotation.strengths import item_strengths
from steelyard.workbench.pipeline.item_assessments import known_raters
from steelyard.workbench.pipeline.projects import ProjectSettings
from steelyard.workbench.pipeline.rater_fits import StoredPanel, latest_panel, ranked_tiers
from steelyard.workbench.storage.audit_log import Deed, record
from steelyard.workbench.storage.figure_tables import StoredEarlyStop
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredTask

_UNKNOWN = 0.5


def ask_further(session: Session, item: StoredItem, settings: ProjectSettings, *, at: float) -> bool:
    """Ask one more person about each task of a complete item that is not sure enough. Returns whether any was asked."""
    rules = settings.rules
    if rules.fewest_annotators is None:
        return False
    tasks = _tasks(session, item)
    below = [task for task in tasks if task.num_wanted < rules.num_annotators]
    if not below:
        return False
    panel = latest_panel(session, item.project_id)
    sure = _sureness(session, tasks, panel)
    unsure = [task for task in below if sure[task.id] < rules.sure_enough]
    least = min(sure[task.id] for task in below)
    detail = {"sureness": round(least, 4), "fit": None if panel is None else panel.note.fit, "tasks": len(unsure)}
    if unsure:
        places = {"num_wanted": StoredTask.num_wanted + 1, "is_open": True}
        session.execute(update(StoredTask).where(StoredTask.id.in_([task.id for task in unsure])).values(**places))
        record(session, Deed("further people asked", "item", item.id, None, detail), at=at)
        return True
    assert panel is not None, "without a fit no task is sure"
    saved = sum(rules.num_annotators - task.num_wanted for task in below)
    record(session, Deed("sure enough", "item", item.id, None, detail | {"saved": saved}), at=at)
    # People may take a response out while they align: the tasks that are added then complete the round once more.
    known = select(StoredEarlyStop).where(StoredEarlyStop.item_id == item.id, StoredEarlyStop.round == item.round)
    stop = session.scalar(known) or StoredEarlyStop(project_id=item.project_id, item_id=item.id, round=item.round)
    stop.fit_id, stop.sureness, stop.at = panel.note.fit, least, at
    stop.num_answers, stop.num_saved = sum(task.num_wanted for task in tasks), saved
    session.add(stop)
    return False


def _tasks(session: Session, item: StoredItem) -> Sequence[StoredTask]:
    return session.scalars(
        select(StoredTask)
        .where(
            StoredTask.item_id == item.id,
            StoredTask.round == item.round,
            StoredTask.is_retired.is_(False),
            StoredTask.is_gold.is_(False),
        )
        .order_by(StoredTask.id)
        .execution_options(populate_existing=True)
    ).all()


def _sureness(session: Session, tasks: Sequence[StoredTask], panel: StoredPanel | None) -> Mapping[int, float]:
    """Return the probability that the order of each task is right, from all answers to the tasks of the item."""
    unknown = dict.fromkeys((task.id for task in tasks), _UNKNOWN)
    rows = session.execute(
        select(StoredAnswer.person_id, StoredAnswer.content)
        .where(StoredAnswer.task_id.in_(unknown), StoredAnswer.stage == "annotation")
        .order_by(StoredAnswer.id)
    ).all()
    people = list(dict.fromkeys(person for person, _ in rows))
    if panel is None or not all(person in panel.raters for person in people):
        return unknown
    if any(panel.raters[person].num_answers < FEWEST_SHARED for person in people):
        return unknown
    places: dict[str, int] = {}
    answers = [
        RankingAnswer(0, people.index(person), tiers)
        for person, content in rows
        if (tiers := ranked_tiers(msgspec.convert(content, TaskAnswer), places))
    ]
    if not answers:
        return unknown
    items = item_strengths(choices_of(answers), known_raters(panel, people), num_items=1, width=len(places))
    sure = sureness(items)
    shown = {task.id: tuple(places[name] for name in task.responses if name in places) for task in tasks}
    return unknown | {
        task: float(sure.of_tasks(np.zeros(1, np.int64), np.array([ranked]))[0])
        for task, ranked in shown.items()
        if len(ranked) > 1
    }
