"""Work that one person may still get of a project: a number of answers a day, and no categories of a poor record.

The record is the accuracy on gold tasks of a category. A category is closed to a person while the whole 95% interval of
that accuracy lies below the least one, so that a few bad answers close nothing. Gold tasks go on in closed categories:
the record can recover.
"""

from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import mean_of_sums
from steelyard.workbench.storage.figure_tables import StoredGoldResult
from steelyard.workbench.storage.tables import StoredAnswer, StoredTask

_DAY = 86_400.0
_MOST_ANSWERS = 100_000


class WorkLimits(Config, frozen=True):
    """The amount of work of one person, and the record that it takes."""

    is_paused: bool = False
    """No new tasks are given out, as before the end of a project; those in people's hands may still be answered."""
    most_answers_a_day: int = 0
    """Most answers of one person within 24 hours; 0 for no limit."""
    least_accuracy: float = 0.0
    """The accuracy on gold tasks of a category below which, with 95% confidence, a person gets no more of its tasks."""

    def __post_init__(self) -> None:
        if not 0 <= self.most_answers_a_day <= _MOST_ANSWERS:
            allowed = f"0 to {_MOST_ANSWERS:,}"
            raise ConfigError(f"{self.most_answers_a_day} answers", where="most_answers_a_day", allowed=allowed)
        if not 0 <= self.least_accuracy <= 1:
            raise ConfigError(f"{self.least_accuracy} is no share", where="least_accuracy", allowed="0 to 1")


def is_day_full(session: Session, limits: WorkLimits, *, project: int, person: int, at: float) -> bool:
    """Tell whether a person has given all the answers of a day. Tasks in the person's hands may still be answered."""
    if not limits.most_answers_a_day:
        return False
    answers = (
        select(func.count())
        .select_from(StoredAnswer)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .where(
            StoredAnswer.person_id == person,
            StoredAnswer.stage == "annotation",
            StoredAnswer.at > at - _DAY,
            StoredTask.project_id == project,
        )
    )
    return (session.scalar(answers) or 0) >= limits.most_answers_a_day


def closed_categories(
    session: Session, limits: WorkLimits, *, project: int, person: int | None = None
) -> Mapping[int, Mapping[str, Estimate]]:
    """Return the closed categories of a person, or of everybody who has any, each with the accuracy that closed it."""
    if not limits.least_accuracy:
        return {}
    gold = StoredGoldResult
    share = 1.0 * gold.num_same / gold.num_judged
    rows = (
        select(gold.person_id, StoredTask.category, func.count(), func.sum(share), func.sum(share * share))
        .join(StoredTask, gold.task_id == StoredTask.id)
        .where(gold.project_id == project, gold.is_void.is_(False), gold.num_judged > 0)
        .group_by(gold.person_id, StoredTask.category)
    )
    if person is not None:
        rows = rows.where(gold.person_id == person)
    closed: dict[int, dict[str, Estimate]] = {}
    for number, category, count, total, squares in session.execute(rows):
        accuracy = mean_of_sums(count, float(total), float(squares), low=0.0, high=1.0)
        if category and accuracy.high is not None and accuracy.high < limits.least_accuracy:
            closed.setdefault(number, {})[category] = accuracy
    return closed
