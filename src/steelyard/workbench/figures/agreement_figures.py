"""Agreement: what two people say of the same task before they see each other's answer, and what gate and reviews say.

The measures are those of `statistics.agreement`, on sums that answers added to (`counters`). Shares over items have the
item as their unit, those of people and pairs of people the task: a person rarely has two tasks of an item.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Integer, cast, func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answer_counts import confusion, ratio_sums, turned
from steelyard.core.numerics import Floats
from steelyard.core.text import natural_order
from steelyard.core.types import Record
from steelyard.statistics.agreement import NUM_LABELS, TIED, alpha, beyond_chance, kappa
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import RatioSums, mean_of_sums
from steelyard.workbench.figures.agreement_clusters import agreement_effects, task_numbers
from steelyard.workbench.figures.dashboards import review_counts, week_number, week_of, week_start
from steelyard.workbench.figures.label_coincidences import AnswerSample, several_coincidences
from steelyard.workbench.pipeline.counters import DAY
from steelyard.workbench.pipeline.planted_reviews import ShownTable, shown_sums
from steelyard.workbench.storage.figure_tables import (
    StoredGateResult,
    StoredPairAgreement,
)
from steelyard.workbench.storage.tables import StoredPerson, StoredProject, StoredReview

_MOST_PAIRS = 200
_KEYS = ("id", "project_id", "kind", "category", "first_id", "second_id")
_SUMS = tuple(column for column in StoredPairAgreement.__table__.columns if column.name not in _KEYS)


class AgreementRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The agreement of a group: percent agreement, kappa and alpha beyond chance, and the mean of tau-b.

    Kappa is of a person and the others, or of two people; null where people have no order. ``people``: their numbers.
    ``num_tasks``: those that two people or more have answered. ``contradicted``: where both of two people prefer a
    response, the share in which they prefer opposite ones.
    """

    name: str
    people: tuple[int, ...]
    num_tasks: int
    same: Estimate
    kappa: Estimate | None
    alpha: Estimate
    tau: Estimate
    contradicted: Estimate = Estimate(None, None, None, 0)


class ShareRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A share of a group: items that passed the gate, or reviews that rejected. ``at``: the start of a week."""

    name: str
    share: Estimate
    at: float | None = None


class AgreementFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Agreement in all, by category, person and pair of people; the gate and the reviews by layer, person and week.

    ``alpha_sample``: what alpha stands on where it is not all answers, in large projects with three answers a task.
    """

    overall: AgreementRow
    alpha_sample: AnswerSample | None
    categories: tuple[AgreementRow, ...]
    people: tuple[AgreementRow, ...]
    pairs: tuple[AgreementRow, ...]
    gate: Estimate
    gate_weeks: tuple[ShareRow, ...]
    gate_categories: tuple[ShareRow, ...]
    rejected_layers: tuple[ShareRow, ...]
    rejected_people: tuple[ShareRow, ...]
    rejected_weeks: tuple[ShareRow, ...]


def agreement_figures(session: Session, project: StoredProject, planted: ShownTable | None = None) -> AgreementFigures:
    """Return the figures of agreement, gate and reviews of a project.

    ``planted``: the planted reviews that the reader sees; those that were decided count as reviews.
    """
    pairs, gates = _pair_sums(session, project.id), _gate_sums(session, project.id)
    names = _names(session)
    several, alike = several_coincidences(session, project), agreement_effects(session, project.id)
    # With two people a task is one comparison, and the sums have their number.
    numbers = None if several is None else task_numbers(session, project.id)
    whole = _Subject("", tau_effect=alike.tau, num_tasks=None if numbers is None else sum(numbers.categories.values()))
    categories = sorted({category for category, *_ in pairs}, key=natural_order)
    by_person: dict[int, list[Mapping[str, float]]] = defaultdict(list)
    by_pair: dict[tuple[int, int], list[Mapping[str, float]]] = defaultdict(list)
    for (_, first, second), sums in pairs.items():
        by_person[first].append(sums)
        # Each person is the first of the two in the sums of the person.
        by_person[second].append(turned(sums))
        by_pair[first, second].append(sums)
    most = sorted(by_pair, key=lambda pair: -sum(sums["num_tasks"] for sums in by_pair[pair]))[:_MOST_PAIRS]
    reviews = _reviews(session, project.id, planted)
    return AgreementFigures(
        overall=_row(whole, pairs.values(), _ratio(gates), None if several is None else several.total),
        alpha_sample=None if several is None else several.sample,
        categories=tuple(
            _row(
                _Subject(
                    category,
                    tau_effect=alike.tau_of_category.get(category, 1.0),
                    num_tasks=None if numbers is None else numbers.categories.get(category, 0),
                ),
                [sums for key, sums in pairs.items() if key[0] == category],
                _ratio([row for row in gates if row[0] == category]),
                None if several is None else several.of(category),
            )
            for category in categories
        ),
        people=tuple(
            _row(
                _Subject(
                    names.get(person, ""),
                    (person,),
                    same_effect=alike.same_of_person.get(person, 1.0),
                    tau_effect=alike.tau_of_person.get(person, 1.0),
                    num_tasks=None if numbers is None else numbers.people.get(person, 0),
                ),
                by_person[person],
            )
            for person in sorted(by_person, key=lambda person: (natural_order(names.get(person, "")), person))
        ),
        pairs=tuple(
            _row(_Subject(f"{names.get(first, '')} – {names.get(second, '')}", (first, second)), by_pair[first, second])
            for first, second in most
        ),
        gate=_share([(row[2], row[3]) for row in gates]),
        gate_weeks=_shares(((row[1], row[2], row[3]) for row in gates), are_weeks=True),
        gate_categories=_shares((row[0], row[2], row[3]) for row in gates),
        rejected_layers=_shares(_decisions(reviews, 0)),
        rejected_people=_shares(
            (names.get(person, ""), number, total) for person, number, total in _decisions(reviews, 1)
        ),
        rejected_weeks=_shares(_decisions(reviews, 2), are_weeks=True),
    )


def _pair_sums(session: Session, project: int) -> dict[tuple[str, int, int], dict[str, float]]:
    """Return the sums by category and the two people, over all kinds of tasks."""
    key = (StoredPairAgreement.category, StoredPairAgreement.first_id, StoredPairAgreement.second_id)
    rows = session.execute(
        select(*key, *(func.sum(column) for column in _SUMS))
        .where(StoredPairAgreement.project_id == project)
        .group_by(*key)
        .order_by(*key)
    ).all()
    names = [column.name for column in _SUMS]
    return {tuple(row[:3]): dict(zip(names, map(float, row[3:]), strict=True)) for row in rows}


def _gate_sums(session: Session, project: int) -> list[Sequence[Any]]:
    """Return rows of category, week, passed and all items, and the sums of a ratio over items, of verdicts at the gate.

    The last five are equal and judged verdicts, their squares, and their product.
    """
    gate, week = StoredGateResult, week_of(StoredGateResult.at)
    same, judged = gate.num_same, gate.num_judged
    sums = (same, judged, same * same, same * judged, judged * judged)
    rows = session.execute(
        select(gate.category, week, func.sum(cast(gate.is_passed, Integer)), func.count(), *map(func.sum, sums))
        .where(gate.project_id == project, gate.num_compared > 0)
        .group_by(gate.category, week)
        .order_by(gate.category, week)
    ).all()
    return [(row[0], row[1], *(int(value) for value in row[2:])) for row in rows]


def _ratio(gates: Sequence[Sequence[Any]]) -> RatioSums:
    same, judged, same_squared, product, judged_squared = (sum(row[place] for row in gates) for place in range(4, 9))
    return RatioSums(sum(row[3] for row in gates), same, judged, same_squared, product, judged_squared)


class _Subject(NamedTuple):
    """The subject of a row, with its design effects. ``num_tasks``: null where the sums have their number."""

    name: str
    people: tuple[int, ...] = ()
    same_effect: float = 1.0
    tau_effect: float = 1.0
    num_tasks: int | None = None


def _row(
    group: _Subject,
    parts: Iterable[Mapping[str, float]],
    items: RatioSums | None = None,
    several: Floats | None = None,
) -> AgreementRow:
    """Return the row of a group; ``items``: the sums over its items where these are the unit, else tasks are.

    ``several``: the coincidences where tasks have three answers or more, else they follow from the sums. Those of one
    or two people are of two labels each.
    """
    sums: dict[str, float] = dict.fromkeys((column.name for column in _SUMS), 0.0)
    for part in parts:
        for key, value in part.items():
            sums[key] += value
    ratio = items or ratio_sums(sums)
    same, cells = ratio.estimate(design_effect=group.same_effect), confusion(sums)
    matrix = cells.reshape(NUM_LABELS, NUM_LABELS)
    coincidences = (matrix + matrix.T).reshape(-1) if several is None else several
    strict = matrix[:TIED, :TIED]
    opposite = float(strict.sum() - np.trace(strict))
    return AgreementRow(
        name=group.name,
        people=group.people,
        num_tasks=round(sums["num_tasks"]) if group.num_tasks is None else group.num_tasks,
        same=same,
        kappa=_beyond_chance(kappa, cells, ratio, group.same_effect) if group.people and cells.sum() else None,
        alpha=_beyond_chance(alpha, coincidences, ratio, group.same_effect),
        tau=mean_of_sums(
            round(sums["num_taus"]),
            sums["sum_tau"],
            sums["sum_tau_squared"],
            low=-1.0,
            high=1.0,
            design_effect=group.tau_effect,
        ),
        contradicted=mean_of_sums(
            round(strict.sum()),
            opposite,
            opposite,
            low=0.0,
            high=1.0,
            design_effect=_effect_of_verdicts(ratio, group.same_effect),
        ),
    )


def _effect_of_verdicts(same: RatioSums, design_effect: float) -> float:
    """Return the variance of percent agreement over that of independent verdicts: those of an item are not."""
    if same.below <= 0 or not 0 < same.above < same.below:
        return max(design_effect, 1.0)
    share, (variance, _) = same.above / same.below, same.spread(design_effect=design_effect)
    return max(1.0, variance * same.below / (share * (1 - share)))


def _beyond_chance(
    coefficient: Callable[[Floats], Floats], cells: Floats, same: RatioSums, design_effect: float
) -> Estimate:
    """Return kappa or alpha of a table; units resemble each other as much as in percent agreement."""
    if same.below <= 0 or not cells.sum():
        return Estimate(None, None, None, 0)
    share, (variance, evidence) = same.above / same.below, same.spread(design_effect=design_effect)
    effect = variance * evidence.units / (share * (1 - share)) if 0 < share < 1 else 1.0
    return beyond_chance(float(coefficient(cells)), cells[None], same.below, evidence, effect or 1.0)


def _share(counts: Iterable[tuple[int, int]]) -> Estimate:
    """Return the share of counts of chosen and all."""
    rows = list(counts)
    chosen, total = sum(row[0] for row in rows), sum(row[1] for row in rows)
    return mean_of_sums(total, chosen, chosen, low=0.0, high=1.0)


def _shares(rows: Iterable[tuple[Any, int, int]], *, are_weeks: bool = False) -> tuple[ShareRow, ...]:
    """Return the share of each key, in their order, from rows of key, chosen and all."""
    groups: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for key, chosen, total in rows:
        groups[key].append((chosen, total))
    keys: list[Any] = sorted(groups, key=None if are_weeks else natural_order)
    return tuple(
        ShareRow(
            name="" if are_weeks else str(key), share=_share(groups[key]), at=week_start(key) if are_weeks else None
        )
        for key in keys
    )


def _reviews(session: Session, project: int, planted: ShownTable | None) -> list[Any]:
    """Return layer, person, week, decision and number of the reviews that the reader sees as made."""
    made = review_counts(session, project, StoredReview.layer, StoredReview.person_id, week_of(StoredReview.at))
    if planted is None:
        return made
    decided = (each for each in shown_sums(session, planted) if each.decision is not None)
    return made + [
        (planted.layer, each.person_id, week_number(each.day * DAY), each.decision, each.number) for each in decided
    ]


def _decisions(reviews: Sequence[Any], place: int) -> list[tuple[Any, int, int]]:
    """Return rows of a column of reviews, the rejected ones, and all."""
    return [(row[place], row[4] if row[3] == "rejected" else 0, row[4]) for row in reviews if row[place] is not None]


def _names(session: Session) -> dict[int, str]:
    return {person: name for person, name in session.execute(select(StoredPerson.id, StoredPerson.display_name))}  # noqa: C416
