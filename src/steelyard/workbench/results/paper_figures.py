"""The figures of a project that a paper reports: people, gate, reviews, agreement, gold tasks, time, guidelines.

They are those of the dashboards (`figures`), with what only a paper asks for: medians of the time, how
far items climbed, and the versions of the guidelines that answers were given under. People are pseudonyms.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, SETTLED_BY, Layer
from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import mean_of_sums
from steelyard.workbench.figures.agreement_figures import AgreementFigures, AgreementRow, agreement_figures
from steelyard.workbench.figures.dashboards import ItemCounts, ProgressFigures, progress_figures
from steelyard.workbench.figures.label_coincidences import AnswerSample
from steelyard.workbench.figures.people_figures import PeopleFigures, people_figures
from steelyard.workbench.pipeline.adjudication_times import adjudication_hours
from steelyard.workbench.pipeline.discards import DiscardCounts
from steelyard.workbench.pipeline.projects import ProjectSettings, settings_of
from steelyard.workbench.storage.figure_tables import StoredGateResult
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import (
    StoredAdjudicationTime,
    StoredAnswer,
    StoredEvent,
    StoredGuideline,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredReview,
    StoredTask,
)

_ALIGNED = "alignment"


class PaperCategory(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A category: its items, those that are finished, tasks with two answers, agreement, and the share past the gate.

    Agreement is null where no task has two answers; ``gate`` is the share of rounds of items that passed.
    """

    name: str
    items: int
    finished: int
    double_tasks: int
    same: Estimate | None
    alpha: Estimate | None
    tau: Estimate | None
    gate: Estimate | None


class PaperLayer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A layer of review. ``drawn``: the share of a batch that it checks; ``reviewed``: reviews that it made.

    ``people`` reviewed or settled something, in ``hours`` of active time. ``passed_on``: the share of rounds of items
    at the gate that came to it because those before it could not settle them; ``settled_tasks``: tasks that it decided.
    """

    name: Layer
    people: int
    hours: float
    drawn: float
    reviewed: int
    rejected: Estimate
    passed_on: Estimate
    settled_tasks: int


class PaperPerson(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An annotator under the pseudonym. ``kappa``: Cohen's, of this person and the others; null without a partner.

    ``median_seconds`` is null where no answer has a time: those from another tool may have none.
    """

    pseudonym: str
    answers: int
    hours: float
    median_seconds: float | None
    same: Estimate | None
    kappa: Estimate | None
    tau: Estimate | None
    gold_answers: int
    gold: Estimate


class PaperReviewer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Planted reviews of a person under the pseudonym, of a layer, or of all layers: right decisions of ``planted``.

    ``pseudonym`` is empty for more than one person.
    """

    layer: Layer | Literal["all"]
    pseudonym: str
    planted: int
    right: Estimate
    truths_accepted: Estimate
    wrong_rejected: Estimate


class PaperGuideline(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A version of a guideline and the number of answers that were given under it. ``category``: empty for all."""

    category: str
    language: str
    version: int
    at: float
    answers: int


class PaperFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything that the methods paragraph and the tables of a project state. Times are seconds since 1970 in UTC.

    ``gates`` counts rounds of items at the gate, ``uncompared`` those beside them whose tasks had one answer each;
    ``aligned`` is the share of the gates that the annotators settled. ``people_a_task``: the fewest and the most people
    that a task with all its answers has; null without one.
    ``seconds`` are quartiles of the active time of an answer, null where none has a time; ``tasks`` are those with an
    answer, gold tasks excepted. ``hours``: all active time, that of ``alignment_hours`` and of the layers included.
    """

    project: str
    version: str
    at: float
    is_simulated: bool
    settings: ProjectSettings
    items: ItemCounts
    answers: int
    tasks: int
    first_day: float | None
    last_day: float | None
    hours: float
    alignment_hours: float
    pace: Estimate
    seconds: tuple[float, float, float] | None
    people_a_task: tuple[int, int] | None
    gates: int
    uncompared: int
    gate: Estimate
    aligned: Estimate
    aligned_tasks: int
    agreement: AgreementRow
    alpha_sample: AnswerSample | None
    discards: DiscardCounts
    gold: Estimate
    layers: tuple[PaperLayer, ...]
    categories: tuple[PaperCategory, ...]
    people: tuple[PaperPerson, ...]
    reviewers: tuple[PaperReviewer, ...]
    guidelines: tuple[PaperGuideline, ...]


class _AdjudicationCounts(NamedTuple):
    """Counts of rounds of items at the gate, settled in a state or passed on from it, and of settled tasks by stage."""

    gates: int
    rounds: Counter[tuple[str, str]]
    settled_tasks: Counter[str]

    def share(self, event: str, state: str) -> Estimate:
        """Return the share of all rounds to which an event happened in a state."""
        number = self.rounds[event, state]
        return mean_of_sums(self.gates, number, number, low=0.0, high=1.0)


def paper_figures(session: Session, project: StoredProject, *, at: float) -> PaperFigures:
    """Return the figures of a project at a time."""
    progress = progress_figures(session, project, at=at)
    agreement, quality = agreement_figures(session, project), people_figures(session, project)
    seconds = _seconds_by_person(session, project.id)
    every = np.concatenate(list(seconds.values())) if seconds else np.empty(0)
    climb = _climb(session, project.id, progress.rounds.compared)
    adjudicated = adjudication_hours(session, project.id, StoredAdjudicationTime.stage)
    days = [day.at for day in progress.days if day.answers]
    return PaperFigures(
        project=project.name,
        version=version("steelyard"),
        at=at,
        is_simulated=project.is_simulated or _has_simulated_people(session, list(seconds)),
        settings=settings_of(project),
        items=progress.items,
        answers=progress.answers,
        tasks=_num_answered_tasks(session, project.id),
        first_day=min(days, default=None),
        last_day=max(days, default=None),
        hours=sum(day.hours for day in progress.days),
        alignment_hours=adjudicated.get(_ALIGNED, 0.0),
        pace=progress.pace,
        seconds=_quartiles(every),
        people_a_task=_people_a_task(session, project.id),
        gates=climb.gates,
        uncompared=progress.rounds.gates - climb.gates,
        gate=agreement.gate,
        aligned=climb.share("settled", "aligning"),
        aligned_tasks=climb.settled_tasks[_ALIGNED],
        agreement=agreement.overall,
        alpha_sample=agreement.alpha_sample,
        discards=progress.discards,
        gold=quality.gold,
        layers=_layers(session, project, agreement, climb, adjudicated),
        categories=_categories(progress, agreement),
        people=_people(progress, agreement, quality, seconds),
        reviewers=_reviewers(quality),
        guidelines=_guidelines(session, project.id),
    )


def _median(values: np.ndarray) -> float | None:
    quartiles = _quartiles(values)
    return None if quartiles is None else quartiles[1]


def _quartiles(values: np.ndarray) -> tuple[float, float, float] | None:
    """Return the quartiles of the times that are known: an answer from a tool that records none has 0."""
    values = values[values > 0]
    if not len(values):
        return None
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return low, middle, high


def _seconds_by_person(session: Session, project: int) -> dict[int, np.ndarray]:
    """Return the active seconds of every answer, by person."""
    rows = session.execute(
        select(StoredAnswer.person_id, StoredAnswer.seconds)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .where(StoredTask.project_id == project, StoredAnswer.stage == "annotation")
        .order_by(StoredAnswer.person_id, StoredAnswer.id)
    ).all()
    seconds: dict[int, list[float]] = defaultdict(list)
    for person, value in rows:
        seconds[person].append(value)
    return {person: np.array(values) for person, values in seconds.items()}


def _num_answered_tasks(session: Session, project: int) -> int:
    number = select(func.count()).where(
        StoredTask.project_id == project, StoredTask.num_answered > 0, StoredTask.is_gold.is_(False)
    )
    return session.scalar(number) or 0


def _people_a_task(session: Session, project: int) -> tuple[int, int] | None:
    """Return the fewest and the most people of a task that has all its answers: settings may have changed since."""
    wanted = StoredTask.num_wanted
    least, most = session.execute(
        select(func.min(wanted), func.max(wanted)).where(
            StoredTask.project_id == project,
            StoredTask.is_gold.is_(False),
            StoredTask.is_retired.is_(False),
            StoredTask.num_answered >= wanted,
        )
    ).one()
    return None if least is None else (least, most)


def _has_simulated_people(session: Session, people: Sequence[int]) -> bool:
    simulated = select(StoredPerson.id).where(is_among(StoredPerson.id, people), StoredPerson.is_simulated.is_(True))
    return session.scalar(simulated.limit(1)) is not None


def _climb(session: Session, project: int, gates: int) -> _AdjudicationCounts:
    """Return how far the items of a project climbed, from the audit log and the answers that settled tasks."""
    events = session.execute(
        select(StoredEvent.action, StoredEvent.subject_id, StoredEvent.detail)
        .join(StoredItem, StoredItem.id == StoredEvent.subject_id)
        .where(
            StoredItem.project_id == project,
            StoredEvent.subject == "item",
            StoredEvent.action.in_(("settled", "unresolved")),
        )
    ).all()
    # An item with one answer a task came to alignment only where the person could not judge: it had no gate to pass.
    gate = StoredGateResult
    bare = select(gate.item_id, gate.round).where(gate.project_id == project, gate.num_compared == 0)
    uncompared = {(item, number) for item, number in session.execute(bare)}
    rounds = {
        (action, detail["from"], item, detail["round"])
        for action, item, detail in events
        if (item, detail["round"]) not in uncompared
    }
    tasks = session.execute(
        select(StoredAnswer.stage, func.count())
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .where(StoredTask.project_id == project, StoredAnswer.stage.in_((_ALIGNED, *LAYERS)))
        .group_by(StoredAnswer.stage)
    ).all()
    return _AdjudicationCounts(
        gates,
        Counter((action, state) for action, state, _, _ in rounds),
        Counter({stage: number for stage, number in tasks}),  # noqa: C416 - `dict` takes no rows
    )


def _layers(
    session: Session,
    project: StoredProject,
    agreement: AgreementFigures,
    climb: _AdjudicationCounts,
    hours: Mapping[str, float],
) -> tuple[PaperLayer, ...]:
    rules = settings_of(project).rules
    checked: dict[Layer, float] = {
        "delivery": rules.delivery_share,
        "operations": rules.operations_share,
        "research": float(rules.validation),
    }
    rejected = {row.name: row.share for row in agreement.rejected_layers}
    people = _people_of_layers(session, project.id)
    # An item comes to a layer from the state before that in which the layer settles it.
    states = ("aligning", *SETTLED_BY)
    before = {layer: states[states.index(state) - 1] for state, layer in SETTLED_BY.items()}
    return tuple(
        PaperLayer(
            name=layer,
            people=len(people[layer]),
            hours=hours.get(layer, 0.0),
            drawn=checked[layer],
            reviewed=rejected[layer].n if layer in rejected else 0,
            rejected=rejected.get(layer, Estimate(None, None, None, 0)),
            passed_on=climb.share("unresolved", before[layer]),
            settled_tasks=climb.settled_tasks[layer],
        )
        for layer in LAYERS
    )


def _people_of_layers(session: Session, project: int) -> dict[str, set[int]]:
    """Return who reviewed or settled something, by layer."""
    people: dict[str, set[int]] = {layer: set() for layer in LAYERS}
    reviews = select(StoredReview.layer, StoredReview.person_id).where(
        StoredReview.project_id == project, StoredReview.layer.in_(LAYERS), StoredReview.person_id.is_not(None)
    )
    answers = (
        select(StoredAnswer.stage, StoredAnswer.person_id)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .where(StoredTask.project_id == project, StoredAnswer.stage.in_(LAYERS))
    )
    for statement in (reviews, answers):
        for layer, person in session.execute(statement.distinct()).all():
            people[layer].add(person)
    return people


def _categories(progress: ProgressFigures, agreement: AgreementFigures) -> tuple[PaperCategory, ...]:
    rows = {row.name: row for row in agreement.categories}
    gates = {row.name: row.share for row in agreement.gate_categories}
    return tuple(
        PaperCategory(
            name=counts.name,
            items=counts.total,
            finished=counts.finished,
            double_tasks=rows[counts.name].num_tasks if counts.name in rows else 0,
            same=rows[counts.name].same if counts.name in rows else None,
            alpha=rows[counts.name].alpha if counts.name in rows else None,
            tau=rows[counts.name].tau if counts.name in rows else None,
            gate=gates.get(counts.name),
        )
        for counts in progress.categories
    )


def _people(
    progress: ProgressFigures, agreement: AgreementFigures, quality: PeopleFigures, seconds: dict[int, np.ndarray]
) -> tuple[PaperPerson, ...]:
    """Return the annotators by pseudonym: their order tells nothing of the accounts behind them."""
    rows = {row.people[0]: row for row in agreement.people}
    qualities = {row.person: row for row in quality.people}
    people = [
        PaperPerson(
            pseudonym=pace.pseudonym,
            answers=pace.answers,
            hours=pace.hours,
            median_seconds=_median(seconds[pace.person]),
            same=rows[pace.person].same if pace.person in rows else None,
            kappa=rows[pace.person].kappa if pace.person in rows else None,
            tau=rows[pace.person].tau if pace.person in rows else None,
            gold_answers=qualities[pace.person].gold_answers,
            gold=qualities[pace.person].gold,
        )
        for pace in progress.people
    ]
    return tuple(sorted(people, key=lambda person: person.pseudonym))


def _reviewers(quality: PeopleFigures) -> tuple[PaperReviewer, ...]:
    """Return the accuracy of all layers, then of each layer with its people by pseudonym."""
    order = ("all", *LAYERS)
    rows = [msgspec.convert(row, PaperReviewer, from_attributes=True) for row in quality.reviewers]
    return tuple(sorted(rows, key=lambda row: (order.index(row.layer), row.pseudonym)))


def _guidelines(session: Session, project: int) -> tuple[PaperGuideline, ...]:
    """Return every version of the guidelines of a project with the number of answers of people under it."""
    number = func.count(StoredAnswer.id)
    answered = (StoredAnswer.guideline_id == StoredGuideline.id) & (StoredAnswer.stage == "annotation")
    rows = session.execute(
        select(StoredGuideline, number)
        .outerjoin(StoredAnswer, answered)
        .where(StoredGuideline.project_id == project)
        .group_by(StoredGuideline.id)
        .order_by(StoredGuideline.category, StoredGuideline.language, StoredGuideline.version)
    ).all()
    return tuple(
        PaperGuideline(category=row.category, language=row.language, version=row.version, at=row.at, answers=answers)
        for row, answers in rows
    )
