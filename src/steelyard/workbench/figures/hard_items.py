"""Items about which people differ more than their noise explains: the worst first, and the categories that have most.

Items are assessed beside the requests (`item_assessments`): a page reads what is stored.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt

import msgspec
import numpy as np
from sqlalchemy import Integer, and_, cast, func, or_, select
from sqlalchemy.orm import Session

from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate, student
from steelyard.statistics.linearised import RatioSums, mean_of_sums
from steelyard.statistics.significance import holm
from steelyard.workbench.pipeline.item_assessments import count_waiting
from steelyard.workbench.pipeline.planted_reviews import ShownTable, item_with_number, reviews_of
from steelyard.workbench.pipeline.rater_fits import FitNote, latest_panel
from steelyard.workbench.storage.figure_tables import StoredDisagreement
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredGuideline,
    StoredItem,
    StoredProject,
    StoredTask,
)

PAGE_SIZE = 20
LEVEL = 0.05
"""The p-value from which an item's disagreement counts as excess: by noise alone 5% of items have it."""
FEWEST_ITEMS = 10
"""Items below which nothing is said of a category."""
_REPEATS = (
    "people answer several tasks of one item, and how alike one person's answers to an item are is assumed, not "
    "estimated: hard items would be missed"
)


class HardItem(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An item with its disagreement (`ExcessDisagreement`), and the versions of the guideline of its answers.

    ``prompt``: the id of the prompt; null for people who review.
    """

    item: int
    prompt: str | None
    language: str
    category: str
    batch: str
    state: str
    round: int
    num_compared: int
    num_different: int
    expected: float
    excess: float
    p: float
    guidelines: tuple[str, ...]


class CategoryDisagreement(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The items of a category: the share of verdicts that differ, what noise explains, and the share of hard items.

    ``excess``: the mean over items in standard deviations of the simulations. ``p``: that of the test that it is larger
    than in the other categories, corrected for their number; null with one category or few items.
    """

    name: str
    num_items: int
    different: Estimate
    explained: float
    hard: Estimate
    excess: Estimate
    p: float | None
    needs_work: bool


class DisagreementFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Hard items, the worst first, and the categories. ``num_waiting``: items that are still to be assessed.

    ``why``: the reason for showing neither; null where they are shown.
    """

    fit: FitNote | None
    num_items: int
    num_waiting: int
    categories: tuple[CategoryDisagreement, ...]
    items: tuple[HardItem, ...]
    following: int | None
    why: str | None = None


def disagreement_figures(
    session: Session,
    project: StoredProject,
    *,
    category: str | None = None,
    after: int | None = None,
    planted: ShownTable | None = None,
) -> DisagreementFigures:
    """Return the categories and a page of the hardest items, of one category or all; ``after``: the item before it.

    ``planted``: the planted reviews that the reader sees; these items have the states that are shown.
    """
    panel = latest_panel(session, project.id)
    note = None if panel is None else panel.note
    if panel is not None and panel.has_repeats:
        return DisagreementFigures(
            fit=note, num_items=0, num_waiting=0, categories=(), items=(), following=None, why=_REPEATS
        )
    categories = _categories(session, project.id)
    if after is not None:
        after = item_with_number(reviews_of(session, planted, [after]), after) or -1
    worst = _worst(session, project.id, category, after)
    if planted is not None:
        worst = tuple(msgspec.structs.replace(row, prompt=None) for row in worst)
    reviews = reviews_of(session, planted, [row.item for row in worst])
    items = tuple(
        row
        if (review := reviews.get(row.item)) is None
        else msgspec.structs.replace(
            row, item=review.number, batch=review.batch, state=review.state, round=review.round
        )
        for row in worst
    )
    return DisagreementFigures(
        fit=note,
        num_items=sum(row.num_items for row in categories),
        num_waiting=count_waiting(session, project.id),
        categories=categories,
        items=items,
        following=items[-1].item if len(items) == PAGE_SIZE else None,
    )


def _worst(session: Session, project: int, category: str | None, after: int | None) -> tuple[HardItem, ...]:
    row = StoredDisagreement
    wanted = [row.project_id == project]
    if category is not None:
        wanted.append(row.category == category)
    if after is not None:
        place = session.scalar(select(row.excess).where(row.project_id == project, row.item_id == after))
        if place is None:
            return ()
        wanted.append(or_(row.excess < place, and_(row.excess == place, row.item_id > after)))
    rows = session.execute(
        select(row, StoredItem)
        .join(StoredItem, StoredItem.id == row.item_id)
        .where(*wanted)
        .order_by(row.excess.desc(), row.item_id)
        .limit(PAGE_SIZE)
    ).all()
    guidelines = _guidelines_of(session, [item.id for _, item in rows])
    return tuple(
        HardItem(
            item=item.id,
            prompt=item.prompt,
            language=item.language,
            category=item.category,
            batch=item.batch,
            state=item.state,
            round=item.round,
            num_compared=assessment.num_compared,
            num_different=assessment.num_different,
            expected=assessment.expected,
            excess=assessment.excess,
            p=assessment.p,
            guidelines=tuple(guidelines[item.id]),
        )
        for assessment, item in rows
    )


def _guidelines_of(session: Session, items: Sequence[int]) -> dict[int, list[str]]:
    """Return the guidelines under which each item was answered: category (empty: of all), language and version."""
    guideline = StoredGuideline
    rows = session.execute(
        select(StoredTask.item_id, guideline.category, guideline.language, guideline.version)
        .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
        .join(guideline, guideline.id == StoredAnswer.guideline_id)
        .where(StoredTask.item_id.in_(items), StoredAnswer.stage == "annotation")
        .distinct()
        .order_by(StoredTask.item_id, guideline.category, guideline.language, guideline.version)
    )
    versions: dict[int, list[str]] = defaultdict(list)
    for item, category, language, version in rows:
        versions[item].append(" ".join(filter(None, (category, language, f"v{version}"))))
    return versions


def _categories(session: Session, project: int) -> tuple[CategoryDisagreement, ...]:
    row = StoredDisagreement
    different, compared, excess = 1.0 * row.num_different, 1.0 * row.num_compared, row.excess
    sums = (
        different, compared, different * different, different * compared, compared * compared, row.expected,
        cast(row.p <= LEVEL, Integer), excess, excess * excess,
    )  # fmt: skip
    rows = session.execute(
        select(row.category, func.count(), *map(func.sum, sums))
        .where(row.project_id == project)
        .group_by(row.category)
        .order_by(row.category)
    ).all()
    groups = {name: np.array(values, np.float64) for name, *values in rows}
    p_values = _tests({name: values[[0, 8, 9]] for name, values in groups.items()})
    made = [_category(name, values, p_values.get(name)) for name, values in groups.items()]
    return tuple(sorted(made, key=lambda each: -(each.excess.value or 0.0)))


def _category(name: str, sums: np.ndarray, p: float | None) -> CategoryDisagreement:
    number, *shares, expected, hard, excess, squares = sums.tolist()
    mean = excess / number
    ends: tuple[float | None, float | None] = (None, None)
    if number > 1:
        reach = student(number - 1) * sqrt(max(squares / number - mean**2, 0.0) / (number - 1))
        ends = mean - reach, mean + reach
    return CategoryDisagreement(
        name=name,
        num_items=round(number),
        different=RatioSums(round(number), *shares).estimate(),
        explained=expected / shares[1],
        hard=mean_of_sums(round(number), hard, hard, low=0.0, high=1.0),
        excess=Estimate(mean, *ends, round(number)),
        p=p,
        needs_work=p is not None and p < LEVEL,
    )


def _tests(groups: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return p-values, corrected (Holm), that the mean excess of a category is above that of all others (Welch).

    ``groups``: number of items, sum and sum of squares.
    """
    from scipy.special import stdtr

    total = sum(groups.values(), np.zeros(3))
    p_values: dict[str, float] = {}
    for name, mine in groups.items():
        other = total - mine
        if min(mine[0], other[0]) < FEWEST_ITEMS:
            continue
        sides = [(each[0], each[1] / each[0], _error_squared(each)) for each in (mine, other)]
        variance = sum(side[2] for side in sides)
        freedom = variance**2 / sum(error**2 / (size - 1) for size, _, error in sides)
        p_values[name] = float(stdtr(freedom, -(sides[0][1] - sides[1][1]) / sqrt(variance)))
    return dict(zip(p_values, holm(list(p_values.values())), strict=True))


def _error_squared(sums: np.ndarray) -> float:
    """Return the variance of a mean from the number of values, their sum and that of the squares."""
    number, total, squares = sums.tolist()
    return max(squares / number - (total / number) ** 2, 1e-12) / (number - 1)
