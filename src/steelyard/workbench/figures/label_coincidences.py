"""Coincidences of verdicts for alpha where tasks have answers of three people or more, from the answers themselves.

The sums of two people's verdicts (`figure_tables`) hold no number of labels, by which Krippendorff weighs a pair of
them: an item whose m people labelled it adds each ordered pair with 1 / (m - 1). With two answers a task the weight is
1 and the sums are enough. With more, tasks under way, discards and people who could not judge leave fewer labels.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer, outcome_of
from steelyard.core.numerics import Floats
from steelyard.core.types import Record
from steelyard.statistics.agreement import FIRST, NUM_CELLS, SECOND, TIED, Labels, coincidences
from steelyard.workbench.pipeline.listings import latest_answers_of
from steelyard.workbench.pipeline.rater_fits import count_answers
from steelyard.workbench.storage.tables import StoredProject, StoredTask

MOST_ANSWERS = 20_000
"""The latest answers of a project that are counted: reading more would hold the page up."""
_LABELS = {"left": FIRST, "right": SECOND, "tie": TIED}


class AnswerSample(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The answers to ordinary tasks that a figure stands on: the latest ``num_read`` of ``num_answers``."""

    num_read: int
    num_answers: int


class CategoryCoincidences(NamedTuple):
    """The coincidence matrices of the categories, flattened (cell,). ``sample`` is null where all answers count."""

    by_category: Mapping[str, Floats]
    sample: AnswerSample | None = None

    @property
    def total(self) -> Floats:
        """The sum over all categories."""
        return sum(self.by_category.values(), np.zeros(NUM_CELLS))

    def of(self, category: str) -> Floats:
        """Return the matrix of a category; zeros for one without labels."""
        return self.by_category.get(category, np.zeros(NUM_CELLS))


class _Label(NamedTuple):
    category: str
    task: int
    pair: int
    person: int
    label: int


def several_coincidences(session: Session, project: StoredProject) -> CategoryCoincidences | None:
    """Return the coincidences of the categories; null where no task asks for three answers."""
    ordinary = (StoredTask.project_id == project.id, StoredTask.is_gold.is_(False))
    if (session.scalar(select(func.max(StoredTask.num_wanted)).where(*ordinary)) or 0) < 3:
        return None
    labels = sorted(_labels(session, project.id), key=lambda each: (each.task, each.pair, each.person))
    names = sorted({each.category for each in labels})
    items = {key: number for number, key in enumerate(dict.fromkeys((each.task, each.pair) for each in labels))}
    columns = Labels(
        np.array([items[each.task, each.pair] for each in labels], np.int64),
        np.array([each.person for each in labels], np.int64),
        np.array([each.label for each in labels], np.int64),
    )
    place = {name: number for number, name in enumerate(names)}
    group = np.array([place[each.category] for each in labels], np.int64)
    cells = coincidences(columns, group, len(names)) if labels else np.zeros((0, NUM_CELLS))
    number = count_answers(session, project.id)
    sample = AnswerSample(num_read=MOST_ANSWERS, num_answers=number) if number > MOST_ANSWERS else None
    return CategoryCoincidences({name: cells[place[name]] for name in names}, sample)


def _labels(session: Session, project: int) -> Iterator[_Label]:
    latest = latest_answers_of(project, MOST_ANSWERS)
    rows = session.execute(
        select(StoredTask.category, StoredTask.id, StoredTask.responses, latest.c.person_id, latest.c.content).join(
            StoredTask, latest.c.task_id == StoredTask.id
        )
    )
    for category, task, responses, person, content in rows:
        answer = msgspec.convert(content, TaskAnswer)
        for number, pair in enumerate(combinations(responses, 2)):
            label = _LABELS.get(outcome_of(answer, *pair) or "")
            if label is not None:
                yield _Label(category, task, number, person, label)
