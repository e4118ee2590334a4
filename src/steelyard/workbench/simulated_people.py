"""Simulated people: their habits, the project that they work on, what they perceive of an item, and when they do.

What they perceive is a latent quality of each response plus noise (`annotation.simulated_annotators`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import Layer
from steelyard.annotation.simulated_annotators import HUMAN, Noise, perceive
from steelyard.annotation.simulated_entries import SimulatedLook
from steelyard.annotation.task_kinds import TaskRules, kind_named, kinds_of
from steelyard.core.config import Config
from steelyard.core.numerics import Floats, generator
from steelyard.core.text import response_text
from steelyard.core.types import Case
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAssignment, StoredItem, StoredProject, StoredTask

CARELESS = 0.2


class Habits(Config, frozen=True):
    """Habits of simulated people."""

    noise: Noise = HUMAN
    """The errors of annotators; people who look again, or review, err half as much."""
    seconds: float = 40.0
    """The median time of an answer; half of them take between 0.7 and 1.5 times as long."""
    stubborn_share: float = 0.2
    """The share of items on which two people who differ cannot settle."""
    passed_on_share: float = 0.3
    """The share of these that a layer passes on to the next, too."""
    rejected_share: float = 0.1
    """The share of items that the last layer sends back in their first round."""
    discarded_share: float = 0.01
    """The share of responses to triples that annotators discard, nearly all of them the same ones."""
    marked_share: float = 0.03
    """The share of responses to triples in which an annotator marks a problem."""
    unjudged_share: float = 0.005
    """The share of tasks that an annotator says cannot be judged."""
    truths_accepted: float = 0.95
    """The share of settled items that a reviewer accepts, on average over reviewers."""
    wrong_rejected: float = 0.75
    """The share of wrong answers that a reviewer sends back, on average over those who read them."""
    agreeable_share: float = 0.2
    """The share of reviewers who accept everything."""
    careless_share: float = 0.07
    """The share of annotators who hardly look: five times the errors, in a tenth of the time."""


class Crew(NamedTuple):
    """The simulated people of a project by their numbers: annotators, and who is in each layer."""

    project: int
    annotators: tuple[int, ...]
    layers: Mapping[Layer, tuple[int, ...]]


class Simulation(NamedTuple):
    """Simulated people, their habits, and the latent quality of each response by prompt, language and response."""

    database: Database
    crew: Crew
    qualities: Mapping[tuple[str, str], Mapping[str, float]]
    habits: Habits = Habits()
    seed: int = 0
    begun_at: float = 0.0
    """The time of the first answer, in seconds since 1970."""
    pace: float = 1.0
    """Seconds of the calendar for each second that a person works."""


class ReviewerRates(NamedTuple):
    """Rates at which a reviewer accepts a settled item, and sends a wrong answer back."""

    truths_accepted: float
    wrong_rejected: float


def reviewer_rates(simulation: Simulation, person: int) -> ReviewerRates:
    """Return the rates of a simulated reviewer: near those of the habits, or those of a person who only agrees."""
    rng = generator(simulation.seed, "reviewer", person)
    if rng.random() < simulation.habits.agreeable_share:
        return ReviewerRates(1.0, 0.0)
    habits = simulation.habits
    # Of the distance to the nearer end half: every rate stays within 0 and 1.
    shifts = rng.uniform(-0.5, 0.5, 2)
    rates = [
        rate + shift * min(rate, 1 - rate)
        for rate, shift in zip((habits.truths_accepted, habits.wrong_rejected), shifts.tolist(), strict=True)
    ]
    return ReviewerRates(*rates)


def latent_qualities(cases: Sequence[Case], tasks: TaskRules, *, seed: int) -> dict[tuple[str, str], dict[str, float]]:
    """Return a quality from 0 to 1 for each response: the one in its ``meta``, else as the kind of tasks draws it."""
    kind, *_ = kinds_of(tasks)
    qualities: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    # The cases of a qualification may have prompts of the project, with other responses.
    for case in cases:
        qualities[case.prompt.id, case.prompt.language or ""] |= {
            response.id: float(quality)
            if isinstance(quality := (response.meta or {}).get("quality"), int | float) and 0 <= quality <= 1
            else kind.latent_quality(case, response.id, seed=seed)
            for response in case.responses
        }
    return dict(qualities)


class ViewedItem(NamedTuple):
    """The material of an answer: responses of a case in a task of a kind."""

    case: Case
    kind: str
    responses: Sequence[str]


def look_at_task(
    simulation: Simulation,
    session: Session,
    task: StoredTask,
    rng: np.random.Generator,
    *,
    shown: Sequence[str] | None = None,
    care: float = 1.0,
) -> TaskAnswer:
    """Return the answer of a person who looks at the responses of a task, or at those that are ``shown``."""
    case = case_of(session.get_one(StoredItem, task.item_id))
    settings = settings_of(session.get_one(StoredProject, task.project_id))
    looked_at = ViewedItem(case, task.kind, task.responses if shown is None else shown)
    return look_at(simulation, settings, looked_at, rng, care=care)


def look_at(
    simulation: Simulation,
    settings: ProjectSettings,
    looked_at: ViewedItem,
    rng: np.random.Generator,
    *,
    care: float = 1.0,
) -> TaskAnswer:
    """Return the answer of a person who looks at a task with the usual errors, divided by ``care``."""
    case, kind, responses = looked_at
    noise, item = simulation.habits.noise, (case.prompt.id, case.prompt.language or "")
    careful = Noise(spread=noise.spread / care, tie_band=noise.tie_band)
    texts = {response.id: response_text(response) for response in case.responses}
    perceived: Floats = np.empty(0)
    if responses:
        qualities = np.array([simulation.qualities[item][response] for response in responses])
        lengths = np.array([max(1, len(texts[response])) for response in responses], np.float64)
        perceived = perceive(qualities, lengths, careful, rng)
    look = SimulatedLook(
        texts={response: texts[response] for response in responses},
        perceived=perceived,
        noise=careful,
        item=item,
        care=care,
        rng=rng,
        seed=simulation.seed,
    )
    return kind_named(kind).simulate(look, catalogues_of(settings))


def simulated_time(simulation: Simulation, session: Session | None = None) -> float:
    """Return the time of the simulation: each answer so far took its time, and people work at the same time."""
    if session is None:
        with simulation.database.reading() as reader:
            return simulated_time(simulation, reader)
    spent = session.scalar(select(func.sum(StoredAssignment.seconds))) or 0.0
    return simulation.begun_at + simulation.pace * float(spent) / len(simulation.crew.annotators)


def is_drawn(simulation: Simulation, what: str, item: StoredItem, share: float) -> bool:
    """Return whether an event of this share of the items happens to an item."""
    return float(generator(simulation.seed, what, item.prompt, item.language).random()) < share


_PROBLEM = "factual error"


_OVERLOOKED = 0.1
"""The share of responses to be discarded that an annotator does not notice."""


def with_remarks(
    simulation: Simulation, settings: ProjectSettings, case: Case, answer: TaskAnswer, rng: np.random.Generator
) -> TaskAnswer:
    """Return the answer to a triple with the responses that a person discards, and the problems marked in others."""
    habits, item = simulation.habits, (case.prompt.id, case.prompt.language or "")
    texts = {response.id: response_text(response) for response in case.responses}
    shown = sorted(answer.scores)
    is_garbled = {
        response: float(generator(simulation.seed, "garbled", *item, response).random()) < habits.discarded_share
        for response in shown
    }
    discarded = [response for response in shown if is_garbled[response] and rng.random() > _OVERLOOKED]
    judged = [response for response in shown if response not in discarded]
    marked = [response for response in judged if rng.random() < habits.marked_share and texts[response]]
    tiers = (tuple(response for response in tier if response in judged) for tier in answer.ranking)
    return msgspec.structs.replace(
        answer,
        scores={response: answer.scores[response] for response in judged},
        comparisons=tuple(each for each in answer.comparisons if {each.first, each.second} <= set(judged)),
        ranking=tuple(tier for tier in tiers if tier),
        discarded=dict.fromkeys(discarded, settings.discard_reasons[0]),
        spans={response: ((0, min(20, len(texts[response])), _PROBLEM, None),) for response in marked},
    )
