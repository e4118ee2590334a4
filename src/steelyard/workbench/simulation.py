"""Simulated people at work on a project, from the first task to the last item: annotation, gate, alignment, review.

They use the functions behind the pages, as people do through them. What they perceive is a latent quality of each
response plus noise (`annotation.simulated_annotators`): it tries the machinery and is evidence of nothing. Every
decision follows from the seed, the person and the item.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import LAYERS, SETTLED_BY, Layer
from steelyard.core.numerics import generator
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
from steelyard.workbench.pipeline.projects import ENDED, case_of, count_states, settings_of
from steelyard.workbench.pipeline.queues import Membership, may_work, next_assignments
from steelyard.workbench.pipeline.reviewing import Verdict, count_review, decide, items_to_review
from steelyard.workbench.pipeline.submissions import lock_assignment, submit
from steelyard.workbench.qualification.rounds import answer_task, decide_qualification, next_tasks
from steelyard.workbench.simulated_people import (
    CARELESS,
    Simulation,
    ViewedItem,
    is_drawn,
    look_at,
    look_at_task,
    reviewer_rates,
    simulated_time,
    with_remarks,
)
from steelyard.workbench.storage.tables import StoredItem, StoredPerson, StoredProject, StoredTask

_STATES: dict[Layer, str] = {layer: state for state, layer in SETTLED_BY.items()}
_MOST_ROUNDS = 100
_REMARK = "simulated: the two of us see it differently"
_REASON = "simulated: the ranking is not convincing"
_PARDON = "simulated: the reference was read again"
_MOST_QUALIFICATIONS = 3
_CANNOT = "simulated: outside my field"


def work_until_finished(simulation: Simulation) -> dict[str, int]:
    """Let everybody work, task after task and queue after queue, until every item has ended. Returns items by state."""
    states: dict[str, int] = {}
    for _ in range(_MOST_ROUNDS):
        num_done = sum(work(simulation) for work in (annotate, adjudicate_items, adjudicate_layers, review))
        with simulation.database.reading() as session:
            states = count_states(session, simulation.crew.project)
        if not num_done or not set(states) - ENDED:
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


def adjudicate_items(simulation: Simulation) -> int:
    """Let people adjudicate items once around. Returns the number of items with any work."""
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
    def work_of(layer: Layer, person: int) -> int:
        return simulation.database.write(lambda session: work(simulation, session, layer, person))

    return sum(work_of(layer, person) for layer in LAYERS for person in simulation.crew.layers[layer])


def _answer_next(simulation: Simulation, session: Session, person: int) -> bool:
    project = session.get_one(StoredProject, simulation.crew.project)
    membership = Membership(session.get_one(StoredPerson, person), project, settings_of(project))
    at = simulated_time(simulation, session)
    if not may_work(session, membership.settings, project=project.id, person=person):
        _qualify(simulation, session, membership, at)
    mine = next_assignments(session, membership, number=1, at=at)
    if not mine:
        return False
    task = session.get_one(StoredTask, mine[0].task_id)
    rng = generator(simulation.seed, "answer", person, mine[0].task_id)
    is_careless = float(generator(simulation.seed, "careless", person).random()) < simulation.habits.careless_share
    seconds = simulation.habits.seconds * float(np.exp(rng.normal(0, 0.6))) * (0.1 if is_careless else 1.0)
    care = CARELESS if is_careless else 1.0
    answer = look_at_task(simulation, session, task, rng, shown=mine[0].shown, care=care)
    if rng.random() < simulation.habits.unjudged_share:
        answer = TaskAnswer(cannot_judge=_CANNOT)
    elif task.kind == "triple" and not is_careless:
        case = case_of(session.get_one(StoredItem, task.item_id))
        answer = with_remarks(simulation, membership.settings, case, answer, rng)
    locked = lock_assignment(session, mine[0].id, person=person)
    assert locked is not None, "assigned in this transaction"
    submit(session, locked, answer, seconds=seconds, at=at)
    return True


def _qualify(simulation: Simulation, session: Session, membership: Membership, at: float) -> None:
    """Take a person through rounds of qualification; a manager lets repeat, and at last lets pass."""
    person = membership.person.id
    for number in range(_MOST_QUALIFICATIONS):
        while tasks := next_tasks(session, membership.project, person, number=1, at=at):
            task = tasks[0]
            case = msgspec.json.decode(task.case_json, type=Case)
            rng = generator(simulation.seed, "qualification", person, task.id, number)
            look = ViewedItem(case, task.kind, task.responses)
            answer = look_at(simulation, membership.settings, look, rng)
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
    is_stubborn = is_drawn(simulation, "stubborn", item, simulation.habits.stubborn_share)
    at, did_something = simulated_time(simulation, session), False
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
        answer = others[-1] if others else look_at_task(simulation, session, evidence.task, rng, care=2.0)
        spent = simulation.habits.seconds
        seconds = count_adjudication(session, item, stage="alignment", person=person, reported=spent, at=at)
        propose(session, item.id, evidence.task.id, answer, person=person, at=at, seconds=seconds)
        did_something = True
    return did_something


def _adjudicate_all(simulation: Simulation, session: Session, layer: Layer, person: int) -> int:
    at = simulated_time(simulation, session)
    items = _of_project(simulation, items_to_adjudicate(session, layer, person))
    for item in items:
        if layer != LAYERS[-1] and is_drawn(
            simulation, f"passed on by {layer}", item, simulation.habits.passed_on_share
        ):
            pass_on(session, item.id, _REMARK, state=_STATES[layer], person=person, at=at)
            continue
        while open_tasks := [each for each in evidence_of(session, [item])[item.id] if each.is_open]:
            task = open_tasks[0].task
            rng = generator(simulation.seed, "decision", person, task.id)
            answer = look_at_task(simulation, session, task, rng, care=2.0)
            spent = simulation.habits.seconds
            seconds = count_adjudication(session, item, stage=layer, person=person, reported=spent, at=at)
            adjudicate(session, item.id, task.id, answer, layer=layer, person=person, at=at, seconds=seconds)
    return len(items)


def _review_all(simulation: Simulation, session: Session, layer: Layer, person: int) -> int:
    at = simulated_time(simulation, session)
    items = _of_project(simulation, items_to_review(session, layer, person))
    for item in items:
        share = simulation.habits.rejected_share if layer == LAYERS[-1] and item.round == 1 else 0.0
        planted = open_review(session, item.id, layer, person)
        if planted is None:
            is_rejected = is_drawn(simulation, "rejected", item, share)
        else:
            rates = reviewer_rates(simulation, person)
            rate = 1 - rates.truths_accepted if planted.changed is None else rates.wrong_rejected
            is_rejected = is_drawn(simulation, f"planted, by {person}", item, rate)
        verdict = Verdict(is_accepted=not is_rejected, reason=_REASON if is_rejected else "")
        count_review(session, item, layer=layer, person=person, reported=simulation.habits.seconds, at=at)
        decide(session, item.id, verdict, layer=layer, person=person, at=at)
    return len(items)
