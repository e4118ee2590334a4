"""Simulated people at work on a project, from the first task to the last item: annotation, gate, alignment, review.

They use the functions behind the pages, as people do through them. What they perceive is a latent quality of each
response plus noise (`annotation.simulated_annotators`): it tries the machinery and is evidence of nothing. Every
decision follows from the seed, the person and the item.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import LAYERS, SETTLED_BY, Layer
from steelyard.annotation.simulated_annotators import HUMAN, Noise, perceive
from steelyard.annotation.simulated_entries import SimulatedLook
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.config import Config
from steelyard.core.numerics import Floats, generator
from steelyard.core.text import response_text
from steelyard.core.types import Case
from steelyard.workbench.pipeline.adjudication_times import count_adjudication
from steelyard.workbench.pipeline.alignment import (
    adjudicate,
    all_items_to_align,
    items_to_adjudicate,
    pass_on,
    propose,
    tasks_to_align,
)
from steelyard.workbench.pipeline.disputes import are_alike, evidence_of
from steelyard.workbench.pipeline.planted_reviews import open_review
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of, count_states, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.pipeline.queues import Membership, may_work, next_assignments
from steelyard.workbench.pipeline.reviewing import Verdict, count_review, decide, items_to_review
from steelyard.workbench.pipeline.submissions import lock_assignment, submit
from steelyard.workbench.qualification.rounds import answer_task, decide_qualification, next_tasks
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAssignment, StoredItem, StoredPerson, StoredProject, StoredTask

_STATES: dict[Layer, str] = {layer: state for state, layer in SETTLED_BY.items()}
_MOST_ROUNDS = 100
_REMARK = "simulated: the two of us see it differently"
_REASON = "simulated: the ranking is not convincing"
_PARDON = "simulated: the reference was read again"
_MOST_QUALIFICATIONS = 3
_CANNOT = "simulated: outside my field"
_PROBLEM = "factual error"
_CARELESS = 0.2
_OVERLOOKED = 0.1
"""The share of responses to be discarded that an annotator does not notice."""


class Habits(Config, frozen=True):
    """How simulated people behave."""

    noise: Noise = HUMAN
    """The errors of annotators; whoever looks again, or reviews, errs half as much."""
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
    """How often a reviewer accepts a settled item, and sends a wrong answer back."""

    truths_accepted: float
    wrong_rejected: float


def reviewer_rates(simulation: Simulation, person: int) -> ReviewerRates:
    """Return the rates of a simulated reviewer: near those of the habits, or those of somebody who only agrees."""
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


def latent_qualities(cases: Sequence[Case], *, seed: int) -> dict[tuple[str, str], dict[str, float]]:
    """Return a quality from 0 to 1 for each response: the one in its ``meta``, else one drawn at random."""
    qualities: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    # The cases of a qualification may have prompts of the project, with other responses.
    for case in cases:
        qualities[case.prompt.id, case.prompt.language or ""] |= {
            response.id: _quality_of(response.meta or {}, seed, case.prompt.id, response.id)
            for response in case.responses
        }
    return dict(qualities)


def work_until_finished(simulation: Simulation) -> dict[str, int]:
    """Let everybody work, task after task and queue after queue, until every item has ended. Returns items by state."""
    states: dict[str, int] = {}
    for _ in range(_MOST_ROUNDS):
        num_done = annotate(simulation) + align(simulation) + adjudicate_layers(simulation) + review(simulation)
        with simulation.database.reading() as session:
            states = count_states(session, simulation.crew.project)
        if not num_done or not set(states) - {"finished", "dropped"}:
            break
    return states


def annotate(simulation: Simulation, *, most: int | None = None) -> int:
    """Let annotators answer in turn until nobody has a task, or ``most`` answers are given. Returns their number."""
    number = 0
    waiting = simulation.crew.annotators
    while waiting and number != most:
        turn = waiting if most is None else waiting[: most - number]
        served = simulation.database.write(
            lambda session, turn=turn: tuple(person for person in turn if _answer_next(simulation, session, person))
        )
        number += len(served)
        waiting = (*waiting[len(turn) :], *served)
    return number


def align(simulation: Simulation) -> int:
    """Let people align once around. Returns the number of items on which somebody did something."""
    return sum(
        simulation.database.write(lambda session, person=person: _align_all(simulation, session, person))
        for person in simulation.crew.annotators
    )


def adjudicate_layers(simulation: Simulation) -> int:
    """Let each layer settle, or pass on, what waits for it. Returns the number of items."""
    return _by_layer(simulation, _adjudicate_all)


def review(simulation: Simulation) -> int:
    """Let each layer review what waits for it. Returns the number of items."""
    return _by_layer(simulation, _review_all)


def _by_layer(simulation: Simulation, work: Callable[[Simulation, Session, Layer, int], int]) -> int:
    return sum(
        simulation.database.write(lambda session, layer=layer, person=person: work(simulation, session, layer, person))
        for layer in LAYERS
        for person in simulation.crew.layers[layer]
    )


def _answer_next(simulation: Simulation, session: Session, person: int) -> bool:
    project = session.get_one(StoredProject, simulation.crew.project)
    membership = Membership(session.get_one(StoredPerson, person), project, settings_of(project))
    at = _now(simulation, session)
    if not may_work(session, membership.settings, project=project.id, person=person):
        _qualify(simulation, session, membership, at)
    mine = next_assignments(session, membership, number=1, at=at)
    if not mine:
        return False
    task = session.get_one(StoredTask, mine[0].task_id)
    rng = generator(simulation.seed, "answer", person, mine[0].task_id)
    is_careless = float(generator(simulation.seed, "careless", person).random()) < simulation.habits.careless_share
    seconds = simulation.habits.seconds * float(np.exp(rng.normal(0, 0.6))) * (0.1 if is_careless else 1.0)
    care = _CARELESS if is_careless else 1.0
    answer = _look_at_task(simulation, session, task, rng, shown=mine[0].shown, care=care)
    if rng.random() < simulation.habits.unjudged_share:
        answer = TaskAnswer(cannot_judge=_CANNOT)
    elif task.kind == "triple" and not is_careless:
        case = case_of(session.get_one(StoredItem, task.item_id))
        answer = _with_remarks(simulation, membership.settings, case, answer, rng)
    locked = lock_assignment(session, mine[0].id, person=person)
    assert locked is not None, "assigned in this transaction"
    submit(session, locked, answer, seconds=seconds, at=at)
    return True


def _with_remarks(
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


def _qualify(simulation: Simulation, session: Session, membership: Membership, at: float) -> None:
    """Take a person through rounds of qualification; a manager lets repeat, and at last lets pass."""
    person = membership.person.id
    for number in range(_MOST_QUALIFICATIONS):
        while tasks := next_tasks(session, membership.project, person, number=1, at=at):
            task = tasks[0]
            case = msgspec.json.decode(task.case_json, type=Case)
            rng = generator(simulation.seed, "qualification", person, task.id, number)
            look = _LookedAt(case, task.kind, task.responses)
            answer = _look(simulation, membership.settings, look, rng)
            answer_task(session, membership.project, person, task.id, answer, seconds=simulation.habits.seconds, at=at)
        if may_work(session, membership.settings, project=membership.project.id, person=person):
            return
        decision = "let repeat" if number + 1 < _MOST_QUALIFICATIONS else "let pass"
        decide_qualification(session, membership.project, person, decision, _PARDON, by=None, at=at)
        session.flush()


def _align_all(simulation: Simulation, session: Session, person: int) -> int:
    mine = _of_project(simulation, [entry.item for entry in all_items_to_align(session, person)])
    return sum(_align_item(simulation, session, item, person) for item in mine)


def _of_project(simulation: Simulation, items: Sequence[StoredItem]) -> list[StoredItem]:
    """Return the items of the simulated project: queues have those of all projects."""
    return [item for item in items if item.project_id == simulation.crew.project]


def _align_item(simulation: Simulation, session: Session, item: StoredItem, person: int) -> bool:
    """Propose where it is this person's turn, and give way to what the other proposed, or give up with the item."""
    is_stubborn = _is_drawn(simulation, "stubborn", item, simulation.habits.stubborn_share)
    at, did_something = _now(simulation, session), False
    for evidence in tasks_to_align(session, item.id, person) or []:
        others = [proposal for other, proposal in evidence.proposals.items() if other != person]
        mine = evidence.proposals.get(person)
        is_turn = mine is None or (bool(others) and not are_alike(evidence.task, [mine, *others]))
        if not evidence.is_open or not is_turn:
            continue
        if others and is_stubborn:
            pass_on(session, item.id, _REMARK, state="aligning", person=person, at=at)
            return True
        rng = generator(simulation.seed, "second look", person, evidence.task.id)
        answer = others[-1] if others else _look_at_task(simulation, session, evidence.task, rng, care=2.0)
        spent = simulation.habits.seconds
        seconds = count_adjudication(session, item, stage="alignment", person=person, reported=spent, at=at)
        propose(session, item.id, evidence.task.id, answer, person=person, at=at, seconds=seconds)
        did_something = True
    return did_something


def _adjudicate_all(simulation: Simulation, session: Session, layer: Layer, person: int) -> int:
    at = _now(simulation, session)
    items = _of_project(simulation, items_to_adjudicate(session, layer, person))
    for item in items:
        if layer != LAYERS[-1] and _is_drawn(
            simulation, f"passed on by {layer}", item, simulation.habits.passed_on_share
        ):
            pass_on(session, item.id, _REMARK, state=_STATES[layer], person=person, at=at)
            continue
        while open_tasks := [each for each in evidence_of(session, [item])[item.id] if each.is_open]:
            task = open_tasks[0].task
            rng = generator(simulation.seed, "decision", person, task.id)
            answer = _look_at_task(simulation, session, task, rng, care=2.0)
            spent = simulation.habits.seconds
            seconds = count_adjudication(session, item, stage=layer, person=person, reported=spent, at=at)
            adjudicate(session, item.id, task.id, answer, layer=layer, person=person, at=at, seconds=seconds)
    return len(items)


def _review_all(simulation: Simulation, session: Session, layer: Layer, person: int) -> int:
    at = _now(simulation, session)
    items = _of_project(simulation, items_to_review(session, layer, person))
    for item in items:
        share = simulation.habits.rejected_share if layer == LAYERS[-1] and item.round == 1 else 0.0
        planted = open_review(session, item.id, layer, person)
        if planted is None:
            is_rejected = _is_drawn(simulation, "rejected", item, share)
        else:
            rates = reviewer_rates(simulation, person)
            rate = 1 - rates.truths_accepted if planted.changed is None else rates.wrong_rejected
            is_rejected = _is_drawn(simulation, f"planted, by {person}", item, rate)
        verdict = Verdict(is_accepted=not is_rejected, reason=_REASON if is_rejected else "")
        count_review(session, item, layer=layer, person=person, reported=simulation.habits.seconds, at=at)
        decide(session, item.id, verdict, layer=layer, person=person, at=at)
    return len(items)


class _LookedAt(NamedTuple):
    """What somebody looks at: responses of a case in a task of a kind."""

    case: Case
    kind: str
    responses: Sequence[str]


def _look_at_task(
    simulation: Simulation,
    session: Session,
    task: StoredTask,
    rng: np.random.Generator,
    *,
    shown: Sequence[str] | None = None,
    care: float = 1.0,
) -> TaskAnswer:
    case = case_of(session.get_one(StoredItem, task.item_id))
    settings = settings_of(session.get_one(StoredProject, task.project_id))
    looked_at = _LookedAt(case, task.kind, task.responses if shown is None else shown)
    return _look(simulation, settings, looked_at, rng, care=care)


def _look(
    simulation: Simulation,
    settings: ProjectSettings,
    looked_at: _LookedAt,
    rng: np.random.Generator,
    *,
    care: float = 1.0,
) -> TaskAnswer:
    """Return the answer of somebody who looks at a task with the usual errors, divided by ``care``."""
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


def _now(simulation: Simulation, session: Session | None = None) -> float:
    """Return the time of the simulation: each answer so far took its time, and people work at the same time."""
    if session is None:
        with simulation.database.reading() as reader:
            return _now(simulation, reader)
    spent = session.scalar(select(func.sum(StoredAssignment.seconds))) or 0.0
    return simulation.begun_at + simulation.pace * float(spent) / len(simulation.crew.annotators)


def _is_drawn(simulation: Simulation, what: str, item: StoredItem, share: float) -> bool:
    return float(generator(simulation.seed, what, item.prompt, item.language).random()) < share


def _quality_of(meta: Mapping[str, object], seed: int, prompt: str, response: str) -> float:
    quality = meta.get("quality")
    if isinstance(quality, int | float) and 0 <= quality <= 1:
        return float(quality)
    return float(generator(seed, "latent quality", prompt, response).random())
